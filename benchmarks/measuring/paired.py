"""Differences and ratios of runs that share a seed, with Student's interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Interval:
    """Hold a mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    def written(self, digits: int = 1, sign: str = "+") -> str:
        """Write the mean with its ends in brackets."""
        mean, low, high = (f"{x:{sign}.{digits}f}" for x in (self.mean, self.low, self.high))
        return f"{mean} ({low} to {high})"

    def clears(self, value: float) -> bool:
        """Say whether the whole interval lies to one side of a value."""
        return self.low > value or self.high < value


def interval(values: Sequence[float]) -> Interval:
    """Give the mean and Student's 95 % interval of two or more values."""
    array = np.asarray(values, np.float64)
    mean = float(array.mean())
    error = float(array.std(ddof=1)) / math.sqrt(len(array))
    half = float(student.ppf(0.975, len(array) - 1)) * error
    return Interval(mean, mean - half, mean + half)


def difference(mine: Sequence[float], base: Sequence[float]) -> Interval:
    """Give the mean of the paired differences mine - base."""
    return interval([a - b for a, b in zip(mine, base, strict=True)])


def ratio(mine: Sequence[float], base: Sequence[float]) -> Interval:
    """Give the geometric mean of the paired ratios mine / base; its interval is made in logs."""
    logs = interval([math.log(a / b) for a, b in zip(mine, base, strict=True)])
    return Interval(math.exp(logs.mean), math.exp(logs.low), math.exp(logs.high))
