"""Average rates of groups as the pooled rate is averaged, so that lines and stacks agree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rlvitals_dashboard.series import EMPTY, Columns, FloatArray, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

CAUSES = ("acr_all_fail", "acr_all_pass", "acr_constant")
# The service pools a rate over this many steps, and more until it has so many groups.
WINDOW_STEPS, WINDOW_GROUPS = 20, 64


def windowed(columns: Columns, series: Series) -> Series:
    """Average a rate over the window of the pooled rate, each step weighing as its groups.

    Where a series was thinned its buckets are averaged, at least one.
    """
    level = series.level.known()
    values = np.array(level.value, dtype=np.float64)
    counts = np.array(level.counts(), dtype=np.float64)
    groups = columns.get("groups", EMPTY)
    averaged = _windowed(values, counts, at(groups, level.step, 1.0), _window(groups))
    return Series(level.step, averaged.tolist(), [], count=level.count)


def causes(columns: Columns) -> tuple[list[int], dict[str, FloatArray]]:
    """Give the mean share of groups collapsed for each cause; they add up to the mean rate."""
    known = {name: windowed(columns, columns[name]) for name in CAUSES if name in columns}
    steps = sorted({step for series in known.values() for step in series.step})
    return steps, {name: at(known.get(name, EMPTY), steps, 0.0) for name in CAUSES}


def at(series: Series, steps: Sequence[int], absent: float) -> FloatArray:
    """Give the level of a metric at some steps, on straight lines between those it has."""
    level = series.level.known()
    if not level.step:
        return np.full(len(steps), absent)
    return np.interp(steps, level.step, [v for v in level.value if v is not None])


def wasted(columns: Columns) -> float | None:
    """Give the share of rollouts in the range shown whose group carried no advantage.

    Rates weighted by the rollouts of their steps; equally where those are not logged.
    """
    rate = columns.get("acr", EMPTY).level.known()
    weights = np.array(rate.counts()) * at(columns.get("rollouts", EMPTY), rate.step, 1.0)
    total = float(weights.sum())
    return float(weights @ np.array(rate.value, dtype=np.float64)) / total if total else None


def _window(groups: Series) -> float:
    """Give the steps that a pooled rate covers."""
    usual = groups.level.mean_value()
    return max(WINDOW_STEPS, math.ceil(WINDOW_GROUPS / usual) if usual else 0)


def _windowed(
    values: FloatArray, counts: FloatArray, weights: FloatArray, window: float
) -> FloatArray:
    """Average over each value and those before it until they count ``window`` steps."""
    seen = np.cumsum(counts)
    first = np.searchsorted(seen, seen - window, side="right")
    weights = weights * counts
    total, weight = (np.concatenate([[0.0], np.cumsum(x)]) for x in (weights * values, weights))
    last = np.arange(1, len(values) + 1)
    share = weight[last] - weight[first]
    result: FloatArray = np.divide(
        total[last] - total[first], share, out=values.copy(), where=share > 0
    )
    return result.clip(0.0, None)
