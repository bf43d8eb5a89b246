"""Means over groups or problems, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.collapse import wilson_interval
from rlvitals.metrics.histograms import check_histogram
from rlvitals.metrics.resampling import normal_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.metrics.rollouts import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Mean:
    """Hold a mean with its standard error and interval, over ``count`` groups or problems.

    ``se`` is NaN, undefined, for a single group, and the interval then all that is possible.
    """

    value: float
    se: float
    low: float
    high: float
    count: int


def mean_of_shares(values: FloatArray, times: IntArray, level: float = 0.95) -> Mean:
    """Take the mean of numbers in [0, 1], each counted ``times`` times, and its interval.

    The standard error is sd (ddof=1) / sqrt(count): that of groups drawn at random.
    """
    count = int(times.sum())
    value, se = weighted_mean(values, times)
    low, high = share_interval(value, se, count, level)
    return Mean(value, se, low, high, count)


def weighted_mean(values: FloatArray, times: IntArray) -> tuple[float, float]:
    """Give mean and standard error, sd (ddof=1) / sqrt(count); NaN for a count of one."""
    count = int(times.sum())
    above = values - values[0]  # equal values must have exactly themselves for a mean
    shift = float(times @ above) / count
    spread = float(times @ (above - shift) ** 2)
    se = math.sqrt(spread / (count - 1) / count) if count > 1 else math.nan
    return float(values[0]) + shift, se


def share_interval(
    value: float, se: float, trials: float, level: float = 0.95
) -> tuple[float, float]:
    """Give the interval of a mean of shares: Wilson's, with the trials that its error is worth.

    A standard error se is worth value (1 - value) / se^2 all-or-nothing trials. At 0 and at 1 the
    spread says nothing, so there the ``trials`` count as all or nothing. (0, 1) when se is NaN.
    """
    z = normal_quantile(level)
    if math.isnan(se):
        return 0.0, 1.0
    variance = value * (1 - value)
    if variance <= 0:
        return wilson_interval(round(value) * trials, trials, z)
    if se == 0:
        return value, value
    worth = variance / (se * se)
    return wilson_interval(value * worth, worth, z) if math.isfinite(worth) else (value, value)


def judged_cells(counts: Mapping[int, Sequence[int]]) -> list[tuple[int, IntArray, IntArray]]:
    """List, for each group size n, the c that occurred and how many groups had them.

    ``counts[n]`` lists the groups with c = 0..n correct, as in ``Tally.counts``. Raises
    ValueError for counts that cannot be, and when they hold no group at all.
    """
    cells = []
    for n, row in counts.items():
        check_histogram(n, row)
        times = np.asarray(row, np.int64)
        if n >= 1 and times.any():
            c = np.flatnonzero(times)
            cells.append((int(n), c, times[c]))
    if not cells:
        raise ValueError("counts: hold no group with known success")
    return cells
