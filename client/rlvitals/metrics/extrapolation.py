"""pass@k beyond the rollouts there are: a forecast from a fit, and bounds without one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlvitals.metrics.beta import all_fail_chance
from rlvitals.metrics.means import judged_cells, weighted_mean
from rlvitals.metrics.pass_at_k import PassAtK, problem_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROUNDING = 1e-12  # shares from a fit may add up to a little over one


def extrapolate_pass_at_k(
    k: int,
    alpha: float,
    beta: float,
    *,
    never: float = 0.0,
    always: float = 0.0,
    counts: Mapping[int, Sequence[int]] | None = None,
) -> PassAtK:
    """Forecast mean pass@k beyond the rollouts there are, from a fit; marked as extrapolated.

    always + (1 - never - always) (1 - B(alpha, beta+k) / B(alpha, beta)): a share ``never`` of
    the problems is never solved, a share ``always`` always, the success rate of the others is
    Beta(alpha, beta). With ``counts`` (see ``pass_at_k_interval``) ``low`` and ``high`` are
    ``pass_at_k_bounds``, true whatever the spread of difficulty; else 0 and 1.
    """
    if k < 1:
        raise ValueError(f"k: want at least one rollout, got {k}")
    between = share_between(never, always)
    solved = between * (1.0 - all_fail_chance(alpha, beta, k)) if between else 0.0
    low, high = (0.0, 1.0) if counts is None else pass_at_k_bounds(counts, k)
    return PassAtK(k, min(1.0, always + solved), math.nan, low, high, extrapolated=True)


def share_between(never: float, always: float) -> float:
    """Give the share of problems that are neither never nor always solved."""
    if not (never >= 0 and always >= 0 and never + always <= 1 + ROUNDING):
        raise ValueError(f"never, always: want shares of one whole, got {never} and {always}")
    return max(0.0, 1.0 - never - always)


def pass_at_k_bounds(counts: Mapping[int, Sequence[int]], k: int) -> tuple[float, float]:
    """Bound mean pass@k for k beyond the n rollouts of a problem, without any fit.

    pass@n <= pass@k <= 1 - (1 - pass@n)^(k/n): pass@k rises in k, and q^(k/n) is convex, so by
    Jensen E[(1-p)^k] >= E[(1-p)^n]^(k/n). n is the smallest number of rollouts; the noise of
    pass@n itself is not in it. Raises ValueError for k < n, where ``pass_at_k_interval`` counts.
    """
    cells = judged_cells(counts)
    n = min(size for size, _, _ in cells)
    if k < n:
        raise ValueError(f"k: want k >= {n}, the rollouts there are, got {k}")
    seen, _ = weighted_mean(*problem_values(cells, n))
    return seen, 1.0 - (1.0 - seen) ** (k / n)
