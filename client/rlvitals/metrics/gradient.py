"""Gradient norms against the run's own past."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray

# 1.4826 MAD estimates the standard deviation of normal values.
MAD_TO_SIGMA = 1.4826


def robust_baseline(values: ArrayLike) -> tuple[float, float]:
    """Give median and robust sigma (1.4826 MAD) over the finite non-zero values.

    Exact zeros are the mark of dead steps; let in, they pull median and MAD to 0 just when a
    collapse makes the baseline matter. (NaN, NaN) without any such value.
    """
    known = _finite_nonzero(values)
    if not len(known):
        return math.nan, math.nan
    median = float(np.median(known))
    return median, MAD_TO_SIGMA * float(np.median(np.abs(known - median)))


def spike_score(value: float, baseline: ArrayLike) -> float:
    """Say how many robust sigmas a gradient norm lies above its baseline values.

    Sigma counts for at least a thousandth of the median, so a nearly constant past does not turn
    dust into a spike. 0 for a value that is not finite or without a baseline: other signs tell.
    """
    median, sigma = robust_baseline(baseline)
    if not math.isfinite(value) or math.isnan(median):
        return 0.0
    return (value - median) / max(sigma, 1e-3 * abs(median))


def _finite_nonzero(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, np.float64).ravel()
    known: FloatArray = array[np.isfinite(array) & (array != 0)]
    return known
