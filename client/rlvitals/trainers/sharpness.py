"""Token weights of GRPO-SG as tensors, for use within a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from rlvitals.remedies.sharpness import Sharpness


@dataclass(frozen=True, slots=True, eq=False)
class TensorWeights:
    """Hold what ``rlvitals.remedies.sharpness.TokenWeights`` holds, each a tensor on the device.

    Taking a number out of one (``item``) waits for the device: do it where a step logs anyway.
    """

    weights: torch.Tensor
    mean_weight: torch.Tensor
    share_low: torch.Tensor
    share_high: torch.Tensor
    unknown: torch.Tensor


def token_weights(
    scores: torch.Tensor, settings: Sharpness, mask: torch.Tensor | None = None
) -> TensorWeights:
    """Give each token its weight of Eq. 20, with no gradient through it.

    The numbers of ``rlvitals.remedies.token_weights``, on the device and in the float type of
    ``scores``; half precision is widened to float32 in between. Nothing here waits for the
    device. Shares are those of the tokens of this process.
    """
    h = scores.detach()
    h = h if h.dtype == torch.float64 else h.float()
    counted = torch.ones_like(h, dtype=torch.bool) if mask is None else mask > 0
    if counted.shape != h.shape:
        shapes = f"{tuple(counted.shape)}, want that of the scores, {tuple(h.shape)}"
        raise ValueError(f"mask: shape {shapes}")
    known = counted & ~h.isnan()
    unbounded = settings.alpha * (torch.sigmoid(h / settings.tau) - settings.mu)
    weights = torch.where(known, unbounded.clamp(settings.low, settings.high), 1.0)
    tokens = known.sum()
    some = tokens.clamp(min=1)
    mean = torch.where(known, weights, 0.0).sum() / some
    return TensorWeights(
        weights.to(scores.dtype if scores.is_floating_point() else h.dtype),
        mean_weight=torch.where(tokens > 0, mean, 1.0),
        share_low=(known & (unbounded <= settings.low)).sum() / some,
        share_high=(known & (unbounded >= settings.high)).sum() / some,
        unknown=(counted & ~known).sum(),
    )
