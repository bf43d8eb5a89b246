"""Whether training sharpens: pass@1 up and pass@k down against a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.means import weighted_mean
from rlvitals.metrics.pass_at_k import pass_at_k
from rlvitals.metrics.resampling import normal_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Change:
    """Hold how far mean pass@k moved from the baseline, with standard error and interval."""

    k: int
    value: float
    se: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Crossover:
    """Hold the change at a small and a large k over the same ``problems``.

    ``sharpening``: the small one rose and the interval of the large one lies below 0, so the
    policy answers more reliably what it could, and no longer what it could reach before.
    """

    small: Change
    large: Change
    problems: int
    sharpening: bool


def crossover(
    n: ArrayLike,
    c: ArrayLike,
    baseline_n: ArrayLike,
    baseline_c: ArrayLike,
    *,
    small: int = 1,
    large: int | None = None,
    level: float = 0.95,
) -> Crossover:
    """Compare pass@k with a baseline at a small and a large k, problem by problem.

    ``c`` of ``n`` rollouts are correct now, ``baseline_c`` of ``baseline_n`` were, one entry a
    problem in the same order; one number may stand for all n. ``large`` is, when None, the
    largest k that every problem allows. Intervals are normal over paired differences,
    sd (ddof=1) / sqrt(P), and want some twenty problems. ``sharpening`` when the small change is
    above 0 and the upper end of the large one below 0 (its false alarms on one look: at most
    (1 - level) / 2; looks at many checkpoints add up, so raise ``level``). Raises ValueError
    naming the argument, for fewer than two problems too.
    """
    now, before = _problems(n, c, ""), _problems(baseline_n, baseline_c, "baseline_")
    if len(now[1]) != len(before[1]):
        raise ValueError(f"baseline_c: {len(before[1])} problems, want {len(now[1])}, the same")
    if len(now[1]) <= 1:
        raise ValueError("c: one problem says nothing of their spread; want two or more")
    most = int(min(now[0].min(), before[0].min()))
    far = most if large is None else large
    if not 1 <= small < far <= most:
        raise ValueError(
            f"small, large: want 1 <= small < large <= {most}, the fewest rollouts of a problem, "
            f"got {small} and {far}"
        )
    near, wide = (_change(now, before, k, level) for k in (small, far))
    return Crossover(near, wide, len(now[1]), sharpening=near.value > 0 > wide.high)


def _change(
    now: tuple[IntArray, IntArray], before: tuple[IntArray, IntArray], k: int, level: float
) -> Change:
    moved = _each(*now, k) - _each(*before, k)
    value, se = weighted_mean(moved, np.ones(len(moved), np.int64))
    half = normal_quantile(level) * se
    return Change(k, value, se, max(-1.0, value - half), min(1.0, value + half))


def _each(n: IntArray, c: IntArray, k: int) -> FloatArray:
    values = np.empty(len(c))
    for size in np.unique(n).tolist():
        same = n == size
        values[same] = pass_at_k(size, c[same], k)
    return values


def _problems(n: ArrayLike, c: ArrayLike, side: str) -> tuple[IntArray, IntArray]:
    """Give n and c of each problem as whole numbers of one length."""
    correct, size = np.asarray(c), np.asarray(n)
    for name, given in (("c", correct), ("n", size)):
        if given.dtype.kind not in "iu" or given.ndim > 1:
            raise ValueError(f"{side}{name}: want one whole number a problem")
    if size.ndim and size.shape != correct.shape:
        raise ValueError(f"{side}n: {size.size} entries for {correct.size} problems")
    correct = np.atleast_1d(correct).astype(np.int64)
    size = np.broadcast_to(size, correct.shape).astype(np.int64)
    if not ((correct >= 0) & (correct <= size)).all():
        raise ValueError(f"{side}c: want 0 <= c <= n")
    return size, correct
