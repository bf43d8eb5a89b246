"""The gradient norm of a plain PyTorch loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    from rlvitals.run import Run

Parameters: TypeAlias = torch.Tensor | Iterable[torch.Tensor]


def clip_grad_norm(
    parameters: Parameters, max_norm: float, run: Run, *, step: int | None = None, **kwargs: Any
) -> torch.Tensor:
    """Clip gradients like torch.nn.utils.clip_grad_norm_ and log their norm before clipping.

    `kwargs` go to torch. Call it on every rank: the norm of sharded gradients is gathered here.
    """
    norm = whole(torch.nn.utils.clip_grad_norm_(parameters, max_norm, **kwargs))
    run.log({"grad_norm": norm}, step=step)
    return norm


def grad_norm(parameters: Parameters, norm_type: float = 2.0) -> torch.Tensor:
    """Give the total norm of the gradients that exist; 0 when there are none."""
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    return whole(torch.nn.utils.get_total_norm(grads, norm_type))


def whole(tensor: Any) -> torch.Tensor:
    """Gather a distributed tensor; a plain one passes."""
    gathered: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return gathered
