"""Which groups teach nothing, and which have one outcome for all their rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rlvitals.metrics.groups import Groups
    from rlvitals.metrics.rollouts import BoolArray

COLLAPSE_TOLERANCE = 1e-6  # tau of arXiv 2605.21125, there on the std, here on max - min


class Outcomes(NamedTuple):
    """Mark groups; none of the marks is set where success is unknown."""

    all_fail: BoolArray  # every rollout failed for certain
    all_pass: BoolArray  # every rollout is correct
    none_correct: BoolArray  # no rollout is correct, whether it failed for certain or not


def collapsed(
    groups: Groups, tolerance: float = COLLAPSE_TOLERANCE, *, several: bool = False
) -> BoolArray:
    """Mark groups of two or more whose rewards are all equal: max - min <= ``tolerance``.

    Not std == 0: seven float32 rewards of 0.1 have a std of 8e-9, while bfloat16 rewards one
    last place apart are a live group. ``several`` says that no group has fewer than two.
    """
    flat: BoolArray = groups.reward_max - groups.reward_min <= tolerance
    return flat if several else flat & (groups.size > 1)


def outcomes(groups: Groups) -> Outcomes:
    """Mark groups by the outcome of their rollouts."""
    size, correct = groups.size, groups.n_correct
    if correct is None:
        unknown = np.zeros(size.shape, np.bool_)
        return Outcomes(unknown, unknown, unknown)
    none = correct == 0
    fail = none if groups.n_failed is None else none & (groups.n_failed == size)
    return Outcomes(fail, correct == size, none)
