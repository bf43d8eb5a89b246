"""Read history columns, and derive from them what charts draw: trends, changes, spikes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.gradient import robust_baseline

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """Hold one metric over steps; what was not finite is kept beside it, by its class.

    A long one was thinned to extremes, which show every spike and lean to the middle between them:
    then ``mean`` has the means of buckets, each of as many values as ``count`` says.
    """

    step: list[int]
    value: list[float | None]
    nonfinite: list[tuple[int, str]]
    mean: Series | None = None
    count: list[int] | None = None

    @property
    def level(self) -> Series:
        """Give what trends and averages are taken of: the means of a thinned series, else all."""
        return self if self.mean is None else self.mean

    @property
    def last(self) -> float | None:
        """Give the newest finite value."""
        return next((v for v in reversed(self.value) if v is not None), None)

    def finite(self) -> tuple[list[int], list[float]]:
        """Give steps and values where the value is known."""
        pairs = [(s, v) for s, v in zip(self.step, self.value, strict=True) if v is not None]
        return [s for s, _ in pairs], [v for _, v in pairs]

    def known(self) -> Series:
        """Leave out the steps without a known value."""
        if None not in self.value:
            return self
        kept = [place for place, value in enumerate(self.value) if value is not None]
        count = None if self.count is None else [self.count[place] for place in kept]
        steps, values = self.finite()
        return Series(steps, list(values), self.nonfinite, count=count)

    def counts(self) -> list[int]:
        """Say of how many values each value is the mean."""
        return [1] * len(self.step) if self.count is None else self.count

    def mean_value(self) -> float | None:
        """Give the mean of all known values."""
        pairs = zip(self.value, self.counts(), strict=True)
        known = [(value, count) for value, count in pairs if value is not None]
        total = sum(count for _, count in known)
        return sum(value * count for value, count in known) / total if total else None


Columns = Mapping[str, Series]
EMPTY = Series([], [], [])
SPIKE_SIGMAS = 10.0
SPIKE_FACTOR = 3.0
BASELINE = 50
PASS_AT = re.compile(r"pass_at_(\d+)\Z")
FEWEST = 8  # values below which no movement is claimed


def read_columns(history: Mapping[str, Any]) -> dict[str, Series]:
    """Take the columns out of a history answer; a metric without any step is left out."""
    columns = {name: _column(found) for name, found in history["metrics"].items()}
    return {name: series for name, series in columns.items() if series.step}


def _column(found: Mapping[str, Any]) -> Series:
    nonfinite = [(int(step), str(word)) for step, word in found.get("nonfinite", ())]
    mean = found.get("mean")
    means = mean and Series(list(mean["step"]), list(mean["value"]), [], count=list(mean["count"]))
    return Series(list(found["step"]), list(found["value"]), nonfinite, means)


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
    itself. A mean weighs as the values it is of; unknown values stay unknown and weigh nothing.
    """
    life = halflife(series.step) if halflife_steps is None else halflife_steps
    total = weight = 0.0
    smooth: list[float | None] = []
    before = series.step[0] if series.step else 0
    for step, value, count in zip(series.step, series.value, series.counts(), strict=True):
        decay = 0.5 ** ((step - before) / life)
        before = step
        total, weight = total * decay, weight * decay
        if value is None:
            smooth.append(None)
            continue
        total, weight = total + count * value, weight + count
        smooth.append(total / weight)
    return smooth


def geometric_trend(series: Series) -> list[float | None]:
    """Smooth the logarithm of positive values, as a log axis shows them."""
    logs = [None if v is None else math.log(v) for v in series.value]
    smooth = trend(replace(series, value=logs))
    return [None if v is None else math.exp(v) for v in smooth]


def positive(series: Series) -> Series:
    """Leave unknown what a log axis cannot show."""
    mean = None if series.mean is None else positive(series.mean)
    values = [v if v and v > 0 else None for v in series.value]
    return replace(series, value=values, nonfinite=[], mean=mean)


def change(series: Series, share: float = 0.2) -> float | None:
    """Give how far the trend moved over the last ``share`` of the steps shown.

    None when fewer than eight values are known.
    """
    level = series.level.known()
    steps = level.step
    if len(steps) < FEWEST:
        return None
    smooth = trend(level)
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
    """Give the median of the last 50 known values that are not zero, or of as many means."""
    values = series.level.finite()[1][-BASELINE:]
    median = robust_baseline(values)[0] if values else math.nan
    return median if math.isfinite(median) else None


def pass_ks(names: Iterable[str]) -> list[int]:
    """Give, in order, every k for which there is a pass@k among the names."""
    return sorted(int(found[1]) for found in map(PASS_AT.match, names) if found)


def rounded(values: Sequence[float | None], digits: int = 4) -> list[float | None]:
    """Keep ``digits`` significant digits: what a pixel can show, at half the bytes."""
    return [None if v is None or not math.isfinite(v) else float(f"{v:.{digits}g}") for v in values]
