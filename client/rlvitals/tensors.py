"""The door between tensors and NumPy, by what a tensor can do, so that torch stays unimported."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_numpy(values: Any) -> Any:
    """Read a tensor into NumPy; anything else passes.

    float64, integers and bools stay; other floats (bfloat16 has no NumPy twin) become float32.
    """
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach()
    if tensor.is_floating_point() and str(tensor.dtype) != "torch.float64":
        tensor = tensor.float()
    return tensor.cpu().numpy()


def like(given: Any, computed: Any) -> Any:
    """Give computed numbers the kind, dtype, device and shape of the given ones."""
    if hasattr(given, "detach"):
        return given.new_tensor(computed).reshape(given.shape)
    if isinstance(given, np.ndarray):
        return np.asarray(computed, dtype=given.dtype)
    return computed.tolist() if isinstance(computed, np.ndarray) else computed
