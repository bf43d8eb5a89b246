"""Means over groups that were drawn, held to what they should be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Hold the mean of a number over groups that were drawn, its error, and what it should be."""

    value: float
    se: float
    truth: float

    @property
    def sigmas(self) -> float:
        """Give the distance from the truth in standard errors, 0 where there is none."""
        apart = self.value - self.truth
        return apart / self.se if apart else 0.0

    @classmethod
    def mean_of(cls, values: Floats, truth: float) -> Drawn:
        """Take the mean of one value a group, with the error that their spread gives it."""
        error = float(values.std(ddof=1)) / math.sqrt(values.size)
        return cls(float(values.mean()), error, truth)

    @classmethod
    def share_of(cls, happened: Floats, truth: float) -> Drawn:
        """Take the share of ones, with the error that the truth gives it: never 0 in between."""
        error = math.sqrt(truth * (1 - truth) / happened.size)
        return cls(float(happened.mean()), error, truth)

    def __str__(self) -> str:
        """Write mean and error."""
        return f"{self.value:.5f} ± {self.se:.5f}"
