"""Focal weighting: what a group has mostly solved should move the policy less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.remedies.checks import check_number

if TYPE_CHECKING:
    from rlvitals.metrics.groups import Groups
    from rlvitals.metrics.rollouts import FloatArray


@dataclass(frozen=True, slots=True)
class Focal:
    """Set focal weighting; ``gamma`` 0 is plain GRPO, the paper uses 0.5 or 1."""

    gamma: float

    def __post_init__(self) -> None:
        check_number(self.gamma, "focal.gamma", 0, 10)


def focal_weight(groups: Groups, gamma: float) -> FloatArray:
    """Give each group its weight (1 - c/n)^gamma, the success rate c/n being that of the group.

    F-GRPO (arXiv 2602.06717), with one weight for all rollouts of a group, whatever advantage the
    variant gives them (see ``group_advantages``). Groups that are not mixed (0 < c < n) keep
    weight 1: they have no signal to weigh, and another remedy may give them one.
    """
    weight = np.ones(len(groups))
    mixed = is_mixed(groups)
    if groups.n_correct is not None:
        weight[mixed] = (1.0 - groups.n_correct[mixed] / groups.size[mixed]) ** gamma
    return weight


def is_mixed(groups: Groups) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark groups with at least one correct rollout and one that is not."""
    if groups.n_correct is None:
        return np.zeros(len(groups), np.bool_)
    return (groups.n_correct > 0) & (groups.n_correct < groups.size)


def mean_update_scale(gamma: float, *, std_division: bool = True) -> float:
    """Give what is left of the mean |A| under focal weights, if success rates are uniform.

    E[g |A|] / E[|A|] for p uniform on (0, 1): with |A| ~ sqrt(p (1-p)) it is (4 / sqrt pi)
    Gamma(gamma + 3/2) / Gamma(gamma + 3), the matched learning rate of F-GRPO; for centred
    advantages, |A| ~ p (1-p), it is 6 / ((gamma + 2) (gamma + 3)). Times the learning rate, it is
    the control that moves as much without choosing where. Raises ValueError for gamma below 0.
    """
    if not 0 <= gamma < math.inf:
        raise ValueError(f"gamma: want a finite number of at least 0, got {gamma}")
    if not std_division:
        return 6.0 / ((gamma + 2.0) * (gamma + 3.0))
    log_ratio = math.lgamma(gamma + 1.5) - math.lgamma(gamma + 3.0)
    return 4.0 / math.sqrt(math.pi) * math.exp(log_ratio)
