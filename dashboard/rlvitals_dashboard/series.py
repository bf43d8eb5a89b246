"""Read history columns, and derive from them what charts draw: trends, common grids, changes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.metrics.gradient import robust_baseline

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """Hold one metric over steps; what was not finite is kept beside it, by its class."""

    step: list[int]
    value: list[float | None]
    nonfinite: list[tuple[int, str]]

    @property
    def last(self) -> float | None:
        """Give the newest finite value."""
        return next((v for v in reversed(self.value) if v is not None), None)

    def finite(self) -> tuple[list[int], list[float]]:
        """Give steps and values where the value is known."""
        pairs = [(s, v) for s, v in zip(self.step, self.value, strict=True) if v is not None]
        return [s for s, _ in pairs], [v for _, v in pairs]


Columns = Mapping[str, Series]
EMPTY = Series([], [], [])
SPIKE_SIGMAS = 10.0
SPIKE_FACTOR = 3.0
BASELINE = 50
PASS_AT = re.compile(r"pass_at_(\d+)\Z")
FEWEST = 8  # values below which no movement is claimed


def read_columns(history: Mapping[str, Any]) -> dict[str, Series]:
    """Take the columns out of a history answer; a metric without any step is left out."""
    columns = {
        name: Series(
            list(column["step"]),
            list(column["value"]),
            [(int(step), str(word)) for step, word in column.get("nonfinite", ())],
        )
        for name, column in history["metrics"].items()
    }
    return {name: series for name, series in columns.items() if series.step}


def span(columns: Columns) -> tuple[int, int] | None:
    """Give the first and last step of any column."""
    ends = [(s.step[0], s.step[-1]) for s in columns.values()]
    return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None


def halflife(steps: Sequence[int]) -> float:
    """Give the half-life, in steps, of a trend that suits the range shown: a fiftieth of it."""
    return max(2.0, (steps[-1] - steps[0]) / 50) if steps else 2.0


def trend(series: Series, halflife_steps: float | None = None) -> list[float | None]:
    """Smooth by an exponential moving average without the bias of its start.

    A value counts half after ``halflife_steps``; the sum of weights divides, so the first point is
    itself. Unknown values stay unknown and weigh nothing.
    """
    life = halflife(series.step) if halflife_steps is None else halflife_steps
    total = weight = 0.0
    smooth: list[float | None] = []
    before = series.step[0] if series.step else 0
    for step, value in zip(series.step, series.value, strict=True):
        decay = 0.5 ** ((step - before) / life)
        before = step
        total, weight = total * decay, weight * decay
        if value is None:
            smooth.append(None)
            continue
        total, weight = total + value, weight + 1
        smooth.append(total / weight)
    return smooth


def geometric_trend(series: Series) -> list[float | None]:
    """Smooth the logarithm of positive values, as a log axis shows them."""
    logs = [None if v is None else math.log(v) for v in series.value]
    smooth = trend(Series(series.step, logs, []))
    return [None if v is None else math.exp(v) for v in smooth]


def settled(series: Series) -> Series:
    """Smooth a series that is pooled already just enough to hide the zigzag of thinning."""
    if not series.step:
        return series
    life = max(1e-3, (series.step[-1] - series.step[0]) / 200)
    return Series(series.step, trend(series, life), series.nonfinite)


def aligned(columns: Columns, names: Sequence[str]) -> tuple[list[int], dict[str, FloatArray]]:
    """Put trends of several metrics on the steps any of them has, shape (steps,) each.

    Thinned columns keep different steps; between them a straight line is a fair guess, and a
    stack of areas needs one grid. A metric that is absent counts as zero.
    """
    known = {name: columns[name] for name in names if name in columns}
    steps = sorted({step for series in known.values() for step in series.step})
    grid = np.asarray(steps, dtype=np.float64)
    result: dict[str, FloatArray] = {}
    for name in names:
        x, y = known.get(name, EMPTY).finite()
        smooth = trend(Series(x, list(y), []), halflife(steps))
        values = np.array([v for v in smooth if v is not None], dtype=np.float64)
        result[name] = np.interp(grid, x, values) if x else np.zeros(len(grid))
    return steps, result


def parted(
    steps: Sequence[int], parts: Mapping[str, FloatArray], whole: Series
) -> dict[str, FloatArray]:
    """Split a rate by the proportions of its parts, so that they add up to it.

    Parts that were thinned each by its own extremes do not add up to anything exactly.
    """
    x, y = whole.finite()
    total = sum(parts.values(), np.zeros(len(steps)))
    if not x:
        return dict(parts)
    rate = np.interp(np.asarray(steps, dtype=np.float64), x, y)
    scale = np.divide(rate, total, out=np.zeros(len(steps)), where=total > 0)
    return {name: values * scale for name, values in parts.items()}


def causes(columns: Columns) -> tuple[list[int], dict[str, FloatArray]]:
    """Give the shares of groups collapsed for each cause, which add up to the pooled rate."""
    steps, shares = aligned(columns, ("acr_all_fail", "acr_all_pass", "acr_constant"))
    return steps, parted(steps, shares, settled(columns.get("acr_pooled", EMPTY)))


def change(series: Series, share: float = 0.2) -> float | None:
    """Give how far the trend moved over the last ``share`` of the steps shown.

    None when fewer than eight values are known.
    """
    steps, values = series.finite()
    if len(values) < FEWEST:
        return None
    smooth = trend(Series(steps, list(values), []))
    since = steps[-1] - share * (steps[-1] - steps[0])
    start = next(i for i, step in enumerate(steps) if step >= since)
    first, last = smooth[start], smooth[-1]
    return None if first is None or last is None else last - first


def spikes(series: Series) -> list[tuple[int, float]]:
    """Give the steps whose value stands far above the values just before.

    Far is ten robust sigmas and three times the median of the last 50 known values, so that
    neither dust nor a slow change of level is a spike.
    """
    steps, values = series.finite()
    found: list[tuple[int, float]] = []
    for index in range(FEWEST, len(values)):
        before = values[max(0, index - BASELINE) : index]
        if values[index] <= SPIKE_FACTOR * min(before):
            continue
        median, sigma = robust_baseline(before)
        if values[index] > max(median + SPIKE_SIGMAS * sigma, SPIKE_FACTOR * median):
            found.append((steps[index], values[index]))
    return found


def usual(series: Series) -> float | None:
    """Give the median of the last 50 known values that are not zero."""
    values = series.finite()[1][-BASELINE:]
    median = robust_baseline(values)[0] if values else math.nan
    return median if math.isfinite(median) else None


def pass_ks(names: Iterable[str]) -> list[int]:
    """Give, in order, every k for which there is a pass@k among the names."""
    return sorted(int(found[1]) for found in map(PASS_AT.match, names) if found)


def rounded(values: Sequence[float | None], digits: int = 4) -> list[float | None]:
    """Keep ``digits`` significant digits: what a pixel can show, at half the bytes."""
    return [None if v is None or not math.isfinite(v) else float(f"{v:.{digits}g}") for v in values]
