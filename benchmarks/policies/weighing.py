"""Arms of a comparison: ways to weigh the advantages of a batch, the product's among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlvitals.remedies import Remedies, next_threshold, reweight

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    # (advantages, rewards, threshold) -> advantages, both of shape [groups, rollouts]
    Weigh = Callable[[Floats, Floats, float], Floats]
    # (threshold, effective collapse rate of the step, mean rewards so far) -> next threshold
    Move = Callable[[float, float, Floats], float]

EPS, DDOF = 1e-4, 0  # the std of a group is that of a population here


@dataclass(frozen=True, slots=True)
class Arm:
    """Name a way to weigh advantages, and how its threshold moves; None leaves them as they are."""

    name: str
    weigh: Weigh | None = None
    threshold: float = 0.5
    move: Move | None = None


GRPO = Arm("GRPO")


def remedied(name: str, remedies: Remedies) -> Arm:
    """Weigh as the product does, with the threshold it would steer."""

    def weigh(advantages: Floats, rewards: Floats, threshold: float) -> Floats:
        return reweight(
            advantages,
            rewards,
            remedies,
            success_threshold=0.5,
            threshold=threshold,
            eps=EPS,
            ddof=DDOF,
        ).advantages

    avspo = remedies.avspo
    if avspo is None:
        return Arm(name, weigh)
    return Arm(
        name,
        weigh,
        avspo.threshold,
        lambda threshold, effective, _rewards: next_threshold(threshold, effective, avspo),
    )


def standardised(rewards: Floats) -> Floats:
    """Give the advantages of GRPO: (r - mean) / (std + 1e-4) along the last axis."""
    centred: Floats = rewards - rewards.mean(axis=-1, keepdims=True)
    return centred / (rewards.std(axis=-1, ddof=DDOF, keepdims=True) + EPS)
