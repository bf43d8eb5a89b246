"""The chance that at least one of k rollouts is correct, and how sure an estimate of it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from rlvitals.metrics.means import judged_cells, share_interval, weighted_mean
from rlvitals.metrics.resampling import bootstrap_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray, IntArray

DRAWS = 2000


@dataclass(frozen=True, slots=True)
class PassAtK:
    """Hold mean pass@k over problems with its standard error and interval.

    ``extrapolated`` marks a value beyond what was sampled, which rests on a fit: ``se`` is then
    NaN, undefined, and ``low`` and ``high`` are bounds that need no fit, where counts gave them.
    """

    k: int
    value: float
    se: float
    low: float
    high: float
    extrapolated: bool = False


@overload
def pass_at_k(n: int, c: int, k: int) -> float: ...
@overload
def pass_at_k(n: int, c: ArrayLike, k: int) -> FloatArray: ...
def pass_at_k(n: int, c: Any, k: int) -> Any:
    """Estimate without bias, from c correct of n, the chance that k rollouts hold a correct one.

    1 - C(n-c, k) / C(n, k) (Chen et al., arXiv 2107.03374, eq. 1), evaluated as
    -expm1(sum of log1p(-l / i) for i = n-s+1..n) with s = min(c, k) and l = max(c, k), which
    loses no digits however small the result. ``c`` may be an array. Raises ValueError unless
    0 <= c <= n and 1 <= k <= n: k beyond n would need extrapolation.
    """
    if not 1 <= k <= n:
        raise ValueError(f"k: want 1 <= k <= n, got k={k} with n={n}")
    return _for_each(_pass_at_k, n, c, k)


def pass_at_k_variance(n: int, c: Any, k: int) -> Any:
    """Estimate the variance of ``pass_at_k`` for one problem, over draws of its n rollouts.

    Q^2 - C(n-c, 2k) / C(n, 2k) with Q = 1 - pass@k: the second term is an unbiased estimate of
    (1-p)^2k, so the whole is one of Var Q; never negative. Evaluated as Q^2 times
    -expm1(sum of log1p(-c k / ((n-k-i) (n-c-i))) for i < k), which loses no digits. It is 0 for
    c = 0 and c = n. ``c`` may be an array. Raises ValueError unless 0 <= c <= n and
    1 <= k <= n / 2: for larger k resample problems with ``pass_at_k_bootstrap``.
    """
    if not 1 <= 2 * k <= n:
        raise ValueError(
            f"k: want 1 <= 2 k <= n for a variance, got k={k} with n={n}; "
            "for larger k use pass_at_k_bootstrap"
        )
    return _for_each(_variance, n, c, k)


def pass_at_k_interval(
    counts: Mapping[int, Sequence[int]],
    k: int,
    *,
    problems: Literal["drawn", "fixed"] = "drawn",
    level: float = 0.95,
) -> PassAtK:
    """Estimate mean pass@k over problems, with its standard error and interval.

    ``counts[n]`` lists how many problems with n rollouts had c = 0..n correct (``Tally.counts``).
    Which error depends on the question. ``drawn``: how would other problems of the same kind
    turn out? sd (ddof=1) / sqrt(P); for training prompts, and for claims beyond a benchmark.
    ``fixed``: how would the same problems turn out, sampled again? sqrt(sum of variances) / P,
    smaller; for comparing checkpoints on one benchmark, and only for 2k <= n. The interval is
    Wilson's with as many trials as the standard error is worth. With one drawn problem ``se`` is
    NaN and the interval (0, 1). Raises ValueError when a problem has fewer than k rollouts, or
    fewer than 2k with ``fixed``.
    """
    cells = judged_cells(counts)
    values, times = problem_values(cells, k)
    value, se = weighted_mean(values, times)
    trials = float(times.sum())
    if problems == "fixed":
        variances = [w @ pass_at_k_variance(n, c, k) for n, c, w in cells]
        se = math.sqrt(sum(variances)) / trials
        trials = float(sum(n // k * w.sum() for n, _, w in cells))  # disjoint sets of k rollouts
    elif problems != "drawn":
        raise ValueError(f"problems: want 'drawn' or 'fixed', got {problems!r}")
    return PassAtK(k, value, se, *share_interval(value, se, trials, level))


def pass_at_k_bootstrap(
    counts: Mapping[int, Sequence[int]],
    k: int,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> PassAtK:
    """Estimate mean pass@k with an interval from problems drawn with replacement.

    For any k <= n, where ``pass_at_k_variance`` ends at n / 2; it answers the question of
    ``drawn`` problems (see ``pass_at_k_interval``, also for ``counts``) and assumes no shape. It
    needs some dozens of problems and has no width when all of them agree.
    """
    values, times = problem_values(judged_cells(counts), k)
    each = values.repeat(times)
    estimate = bootstrap_ratio(each, np.ones(len(each)), draws=draws, level=level, seed=seed)
    _, se = weighted_mean(values, times)
    return PassAtK(k, estimate.value, se, estimate.low, estimate.high)


def problem_values(
    cells: list[tuple[int, IntArray, IntArray]], k: int
) -> tuple[FloatArray, IntArray]:
    """Give pass@k of each of the ``judged_cells``, and how many problems have it."""
    values = np.concatenate([pass_at_k(n, c, k) for n, c, _ in cells])
    return values, np.concatenate([times for _, _, times in cells])


def _for_each(formula: Callable[[int, int, int], float], n: int, c: Any, k: int) -> Any:
    correct = np.asarray(c)
    if not ((correct >= 0) & (correct <= n)).all():
        raise ValueError("c: want 0 <= c <= n")
    if correct.ndim == 0:
        return formula(int(n), int(correct), int(k))
    values, where = np.unique(correct, return_inverse=True)
    each = np.array([formula(int(n), int(value), int(k)) for value in values], np.float64)
    return each[where].reshape(correct.shape)


def _pass_at_k(n: int, c: int, k: int) -> float:
    return -math.expm1(_log_all_fail(n, c, k))


def _log_all_fail(n: int, c: int, k: int) -> float:
    """Give log C(n-c, k) / C(n, k), which is -inf when too few rollouts failed."""
    if n - c < k:
        return -math.inf
    few, many = min(c, k), max(c, k)
    return float(np.log1p(-many / np.arange(n - few + 1, n + 1, dtype=np.float64)).sum())


def _variance(n: int, c: int, k: int) -> float:
    square = math.exp(2 * _log_all_fail(n, c, k))
    if n - c < 2 * k:
        return square
    i = np.arange(k, dtype=np.float64)
    ratio = float(np.log1p(-c * k / ((n - k - i) * (n - c - i))).sum())
    return square * -math.expm1(ratio)
