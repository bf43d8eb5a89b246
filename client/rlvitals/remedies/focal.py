"""Focal weighting: what a group has mostly solved should move the policy less."""

from __future__ import annotations

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

    F-GRPO (arXiv 2602.06717), with one weight for all rollouts of a group. Groups that are not
    mixed (0 < c < n) keep weight 1: they have no signal to weigh, and another remedy may give
    them one.
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
