"""Gradient norms: against the run's own past, how smooth they are, and how much is signal."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import BoolArray, FloatArray

# 1.4826 MAD estimates the standard deviation of normal values.
MAD_TO_SIGMA = 1.4826
FLOOR = 1e-3  # sigma is at least this share of the median, so dust is no spike
OUTLIER_SCORE = 5.0
OUTLIER_WINDOW = 50
FEWEST_BEFORE = 10  # values a baseline needs before it may call another one an outlier
SUMMABLE = sys.float_info.max / 4
ROUNDING = 0.02  # of a squared norm that went through bfloat16


def robust_baseline(values: ArrayLike) -> tuple[float, float]:
    """Give median and robust sigma (1.4826 MAD) over the finite non-zero values.

    Exact zeros are the mark of dead steps; let in, they pull median and MAD to 0 just when a
    collapse makes the baseline matter. (NaN, NaN) without any such value.
    """
    array = _flat(values)
    known = array[_alive(array)]
    if not len(known):
        return math.nan, math.nan
    # Sums and differences of two values near the largest number leave float64; a quarter is exact.
    scale = 0.25 if np.abs(known).max() > SUMMABLE else 1.0
    known = known * scale
    median = float(np.median(known))
    mad = float(np.median(np.abs(known - median)))
    return median / scale, MAD_TO_SIGMA * mad / scale


def spike_score(value: float, baseline: ArrayLike) -> float:
    """Say how many robust sigmas a gradient norm lies above its baseline values.

    Sigma counts for at least a thousandth of the median, so a nearly constant past does not turn
    dust into a spike. 0 for a value that is not finite or without a baseline: other signs tell.
    """
    median, sigma = robust_baseline(baseline)
    if not math.isfinite(value) or math.isnan(median):
        return 0.0
    return (value - median) / max(sigma, FLOOR * abs(median), sys.float_info.min)


def exponential_average(values: ArrayLike, half_life: float) -> FloatArray:
    """Smooth a series; a value has lost half its weight once ``half_life`` more have come.

    Weights are normalised by their sum so far, so the first values are not pulled towards 0. A
    value that is not finite is left out and the average stands still; NaN before the first
    finite one. Raises ValueError unless half_life is positive and finite.
    """
    if not 0 < half_life < math.inf:
        raise ValueError(f"half_life: want a positive number of steps, got {half_life}")
    keep = 0.5 ** (1.0 / half_life)
    array = _flat(values)
    smooth = np.full(array.shape, math.nan)
    average, weight = math.nan, 0.0
    for step, value in enumerate(array.tolist()):
        if math.isfinite(value):
            weight = 1.0 + keep * weight
            # Not average + (value - average) / weight: the difference may leave float64.
            average = value if weight == 1 else value / weight + average * (1.0 - 1.0 / weight)
        smooth[step] = average
    return smooth


def outlier_rate(
    values: ArrayLike, *, score: float = OUTLIER_SCORE, window: int = OUTLIER_WINDOW
) -> float | None:
    """Count spikes per 100 judged steps, each against the norms of the steps before it.

    Only norms that are finite and not 0 take part. One with ten or more before it is judged
    against the newest ``window`` of them, and is a spike when its ``spike_score`` is above
    ``score``. Spikes stay among the norms that later steps are judged by, which the median bears.
    None when no step could be judged.
    """
    if window < FEWEST_BEFORE:
        raise ValueError(f"window: want {FEWEST_BEFORE} values or more, got {window}")
    if not score > 0:
        raise ValueError(f"score: want a positive number of sigmas, got {score}")
    array = _flat(values)
    known = array[_alive(array)]
    judged = range(FEWEST_BEFORE, len(known))
    spikes = sum(
        spike_score(float(known[step]), known[max(0, step - window) : step]) > score
        for step in judged
    )
    return 100.0 * spikes / len(judged) if judged else None


def log_norm_variation(values: ArrayLike) -> float | None:
    """Give the mean absolute change of the log of the norm from one step to the next.

    The total variation of log |g| over its number of changes: what "smoother gradient norms"
    (GRPO-SG, arXiv 2511.00066) can be held to, free of the norm's scale and of the run's length.
    Only changes between two neighbouring steps that both have a finite norm above 0 count; None
    without any.
    """
    array = _flat(values)
    alive = np.isfinite(array) & (array > 0)
    both = alive[1:] & alive[:-1]
    if not both.any():
        return None
    logs = np.log(np.where(alive, array, 1.0))
    return float(np.abs(np.diff(logs))[both].mean())


def signal_to_noise(mean_norm: float, micro_norms: ArrayLike) -> float | None:
    """Give the ratio of signal to noise of a gradient averaged over equal micro-batches.

    With m micro-batch gradients of norms |g_i| and the norm |g| of their mean, the spread around
    the mean is S = (sum |g_i|^2 / m - |g|^2) m / (m-1), the noise left in the mean is S / m,
    and the signal |g|^2 - S / m is unbiased for the squared norm of the true gradient
    (McCandlish et al., arXiv 1812.06162, appendix A). Returns signal over noise, at least 0;
    infinity when all agree; None for fewer than two micro-batches, a norm that is not finite or
    nothing but zeros. Raises ValueError for a norm below 0, and when |g| exceeds what the
    micro-batches allow by more than the rounding of bfloat16.
    """
    norms = _flat(micro_norms)
    m = len(norms)
    if m < 2 or not (np.isfinite(norms).all() and math.isfinite(mean_norm)):  # noqa: PLR2004
        return None
    if mean_norm < 0 or (norms < 0).any():
        raise ValueError("mean_norm, micro_norms: a norm is at least 0")
    largest = max(float(norms.max()), mean_norm)
    if largest == 0:
        return None
    square, mean = (mean_norm / largest) ** 2, float(((norms / largest) ** 2).mean())
    if square > mean * (1 + ROUNDING):
        raise ValueError("mean_norm: above the root mean square of micro_norms: is it of a sum?")
    noise = max(0.0, mean - square) / (m - 1)
    return max(0.0, square - noise) / noise if noise > 0 else math.inf


def _flat(values: ArrayLike) -> FloatArray:
    return np.asarray(values, np.float64).ravel()


def _alive(array: FloatArray) -> BoolArray:
    alive: BoolArray = np.isfinite(array) & (array != 0)
    return alive
