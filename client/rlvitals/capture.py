"""Copy what the trainer hands over, on its own thread, and read it later on ours.

Nothing here waits for a device: a tensor on a GPU is cloned on the trainer's stream together
with an event, and only the reading thread waits for that event.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np

from rlvitals.losses import describe

PLAIN: frozenset[type] = frozenset(
    {float, int, bool, str, NoneType}
    | {np.float64, np.float32, np.float16, np.int64, np.int32, np.bool_}
)


@dataclass(slots=True)
class DeviceCopy:
    """Hold a clone on a device and the event after which it may be read."""

    tensor: Any
    ready: Any


@dataclass(slots=True)
class Unusable:
    """Stand for a value that is no number, and say why."""

    reason: str


def copy_scalars(metrics: Any) -> dict[Any, Any]:
    """Copy a mapping of names to numbers so that later changes do not show."""
    copied = dict(metrics)
    if not PLAIN.issuperset(map(type, copied.values())):
        for name, value in copied.items():
            if type(value) not in PLAIN:
                copied[name] = _copied(value)
    return copied


def copy_scalar(value: Any) -> Any:
    """Copy one number: NumPy and torch values are taken off their buffers."""
    if hasattr(value, "detach"):
        return copy_tensor(value) if value.numel() == 1 else Unusable("a tensor of several values")
    if isinstance(value, np.ndarray):
        return value.copy() if value.size == 1 else Unusable("an array of several values")
    return value if isinstance(value, float | int | np.generic) else _from_array_like(value)


def copy_values(values: Any) -> Any:
    """Copy rewards, advantages or ids: array, tensor, flat list or list of rows."""
    if values is None or isinstance(values, str):
        return values
    if isinstance(values, np.ndarray):
        return values.copy()
    if hasattr(values, "detach"):
        return copy_tensor(values)
    if isinstance(values, list | tuple):
        if not values or type(values[0]) in PLAIN:
            return list(values)
        return [copy_values(row) for row in values]
    if hasattr(values, "__array__"):
        return np.array(values)
    return list(values) if hasattr(values, "__iter__") else values


def copy_tensor(tensor: Any) -> Any:
    """Clone a tensor on its device without waiting for the device."""
    tensor = _replicated(tensor.detach())
    if isinstance(tensor, Unusable):
        return tensor
    copied = tensor.clone()
    if copied.device.type != "cuda":
        return copied
    cuda = sys.modules["torch"].cuda
    ready = cuda.Event()
    ready.record(cuda.current_stream(copied.device))
    return DeviceCopy(copied, ready)


def land(value: Any) -> Any:
    """Bring a copy into host memory; waits for the device, so never on the training thread."""
    if isinstance(value, DeviceCopy):
        value.ready.synchronize()
        return value.tensor.cpu()
    if isinstance(value, list) and value and isinstance(value[0], DeviceCopy | list):
        return [land(row) for row in value]
    if isinstance(value, Unusable):
        raise ValueError(value.reason)  # noqa: TRY004 - it says which values are meant
    return value


def number(value: Any) -> float | None:
    """Read a captured scalar as a float; None stays None.

    Raises ValueError with the reason for anything that is not one number.
    """
    if value is None or type(value) is float:
        return value
    value = land(value)
    if isinstance(value, str | bytes):
        return _parsed(value)
    if isinstance(value, complex | dict | list | tuple | set) or not hasattr(value, "__float__"):
        raise ValueError(f"a value of type {type(value).__name__}")
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"a {type(value).__name__} that is no number ({error})") from None


def _copied(value: Any) -> Any:
    try:
        return copy_scalar(value)
    except Exception as error:  # noqa: BLE001 - one bad value must not cost the others
        return Unusable(f"a {type(value).__name__} that cannot be copied ({describe(error)})")


def _parsed(text: str | bytes) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a text that is no number") from None


def _from_array_like(value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value
    if hasattr(value, "__array__"):
        return copy_scalar(np.array(value))
    if hasattr(value, "__float__"):
        return float(value)
    return Unusable(f"a value of type {type(value).__name__}")


def _replicated(tensor: Any) -> Any:
    """Take the local part of a distributed tensor that is whole on every rank.

    Gathering a sharded one is a collective, which one rank alone must never start.
    """
    placements = getattr(tensor, "placements", None)
    if placements is None:
        return tensor
    if all(placement.is_replicate() for placement in placements):
        return tensor.to_local()
    return Unusable("a sharded tensor; call .full_tensor() on all ranks first")
