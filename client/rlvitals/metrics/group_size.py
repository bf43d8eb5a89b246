"""What the collapse rate would be with groups of another size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvitals.metrics.beta_binomial import judged_groups
from rlvitals.metrics.larger_groups import collapse_at_larger
from rlvitals.metrics.smaller_groups import CollapseAt, collapse_at_smaller

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike


class Sides(NamedTuple):
    """Hold the chances that all rollouts of a group fail, and that all pass."""

    all_fail: float
    all_pass: float

    @property
    def rate(self) -> float:
        """Give the chance of a collapse on either side."""
        return self.all_fail + self.all_pass


def expected_collapse(rates: ArrayLike, n: int) -> Sides:
    """Give the expected shares of all-fail and all-pass groups of n over prompts of known rates.

    Means of (1 - p)^n and p^n; their sum is at least that of the mean rate (Jensen) and falls in
    n. Rates must be known, not estimated from the same few rollouts: with c / m in place of p the
    shares come out too high. Raises ValueError for rates outside [0, 1], none at all, or n < 1.
    """
    known = np.asarray(rates, np.float64).ravel()
    if not len(known) or not ((known >= 0) & (known <= 1)).all():
        raise ValueError("rates: want chances between 0 and 1, one or more")
    if n < 1:
        raise ValueError(f"n: a group has at least one rollout, got {n}")
    return Sides(float(((1 - known) ** n).mean()), float((known**n).mean()))


def collapse_at(
    counts: Mapping[int, Sequence[int]], n: int, *, level: float = 0.95, seed: int = 0
) -> CollapseAt:
    """Estimate the collapse rate at group size n, from whatever size the groups have.

    Counted (``collapse_at_smaller``) where most groups have n rollouts or more, else forecast
    from a fit (``collapse_at_larger``).
    """
    held = judged_groups(counts)
    large = sum(sum(held[size]) for size in held if size >= n)
    if 2 * large >= sum(map(sum, held.values())):
        return collapse_at_smaller(held, n, level=level)
    return collapse_at_larger(held, n, level=level, seed=seed)
