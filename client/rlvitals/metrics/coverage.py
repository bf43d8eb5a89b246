"""How much of what is correct a group of a given size gets to see."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray


@overload
def pass_at_k(n: int, c: int, k: int) -> float: ...
@overload
def pass_at_k(n: int, c: ArrayLike, k: int) -> FloatArray: ...
def pass_at_k(n: int, c: Any, k: int) -> Any:
    """Estimate the chance that one of k rollouts is correct from c correct of n, without bias.

    1 - C(n-c, k) / C(n, k) (Chen et al., arXiv 2107.03374, eq. 1), evaluated as
    -expm1(sum of log1p(-l / i) for i = n-s+1..n) with s = min(c, k) and l = max(c, k), which
    loses no digits however small the result. ``c`` may be an array. Raises ValueError unless
    0 <= c <= n and 1 <= k <= n: k beyond n would need extrapolation.
    """
    if not 1 <= k <= n:
        raise ValueError(f"k: want 1 <= k <= n, got k={k} with n={n}")
    correct = _correct(n, c)
    if np.ndim(correct) == 0:
        return _pass_at_k(int(n), int(correct), int(k))
    values, where = np.unique(correct, return_inverse=True)
    each = np.array([_pass_at_k(int(n), int(value), int(k)) for value in values], np.float64)
    return each[where].reshape(correct.shape)


def _pass_at_k(n: int, c: int, k: int) -> float:
    if n - c < k:
        return 1.0
    few, many = min(c, k), max(c, k)
    terms = np.log1p(-many / np.arange(n - few + 1, n + 1, dtype=np.float64))
    return -math.expm1(float(terms.sum()))


def pass_at_k_table(n: int, k: int) -> FloatArray:
    """Tabulate pass@k for c = 0..n in one sweep, from the same product as ``pass_at_k``."""
    terms = np.log1p(-k / np.arange(n, k, -1, dtype=np.float64))
    table = np.ones(n + 1)
    table[: n - k + 1] = -np.expm1(np.concatenate([[0.0], np.cumsum(terms)]))
    return table


def tail_miss_probability(n: ArrayLike, mu: ArrayLike, tau: ArrayLike) -> Any:
    """Give the chance that a group of n is active yet misses rare correct answers of mass tau.

    (1-tau)^n - (mu-tau)^n - (1-mu)^n, F-GRPO Lemma 3.1 (arXiv 2602.06717): mu is the chance of a
    correct rollout, tau <= mu the part of it on rare answers; active means 0 < c < n. Evaluated
    as expm1(n log1p(-tau)) - expm1(n log1p(-mu)) - exp(n log(mu-tau)). Arrays broadcast; scalars
    give a float. Raises ValueError outside n >= 1 and 0 <= tau <= mu <= 1.
    """
    size, correct, rare = (np.asarray(value, np.float64) for value in (n, mu, tau))
    _check_masses(correct, rare)
    if not (size >= 1).all():
        raise ValueError("n: a group has at least one rollout")
    with np.errstate(divide="ignore"):  # log of an exact 0 is the -inf that the powers need
        seen_none = np.expm1(size * np.log1p(-rare))
        all_wrong = np.expm1(size * np.log1p(-correct))
        all_right = np.exp(size * np.log(correct - rare))
    miss = np.clip(seen_none - all_wrong - all_right, 0.0, 1.0)
    return float(miss) if miss.ndim == 0 else miss


@overload
def realised_tail_miss(n: int, c: int, rho: float = 0.1) -> float: ...
@overload
def realised_tail_miss(n: ArrayLike, c: ArrayLike, rho: float = 0.1) -> FloatArray: ...
def realised_tail_miss(n: Any, c: Any, rho: float = 0.1) -> Any:
    """Give the chance that a group with c of n correct teaches yet saw no rare correct answer.

    (1-rho)^c if 0 < c < n, else 0, with rho the rare share of the correct mass. Its mean over
    groups is an unbiased estimate of F-GRPO Lemma 3.1 for tau = rho mu, whatever the spread of
    prompt difficulty. Arrays broadcast; scalars give a float.
    """
    if not 0 <= rho <= 1:
        raise ValueError(f"rho: want a share between 0 and 1, got {rho}")
    correct = _correct(n, c)
    size = np.asarray(n)
    missed = np.where((correct > 0) & (correct < size), (1.0 - rho) ** correct, 0.0)
    return float(missed) if missed.ndim == 0 else missed


def peak_group_size(mu: float, tau: float) -> int:
    """Give the group size at which ``tail_miss_probability`` peaks for given masses.

    The smallest n with (1-b)(b/a)^n + mu (c/a)^n <= tau, where a = 1-tau, b = mu-tau, c = 1-mu;
    the left side falls strictly in n, so doubling and bisection find it. Needs 0 < tau <= mu <= 1.
    """
    _check_masses(np.asarray(mu), np.asarray(tau))
    if tau == 0:
        raise ValueError("tau: must be above 0, or the chance never peaks")
    if mu in (1, tau):  # such a group is never active and missing at once
        return 1
    high = 1
    while not _past_peak(high, mu, tau):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _past_peak(middle, mu, tau) else (middle, high)
    return high


def _past_peak(n: int, mu: float, tau: float) -> bool:
    a, b, c = 1 - tau, mu - tau, 1 - mu
    return (1 - b) * (b / a) ** n + mu * (c / a) ** n <= tau


@lru_cache(maxsize=128)
def coverage_table(n: int, ks: tuple[int, ...], rho: float) -> FloatArray:
    """Tabulate pass@k for each k, then realised tail-miss, for c = 0..n; (len(ks) + 1, n + 1).

    Groups counted by c turn into means by one matrix product.
    """
    rows = [pass_at_k_table(n, k) for k in ks]
    table = np.stack([*rows, realised_tail_miss(n, np.arange(n + 1), rho)])
    table.flags.writeable = False
    return table


def _correct(n: Any, c: Any) -> Any:
    correct = np.asarray(c)
    if not ((correct >= 0) & (correct <= n)).all():
        raise ValueError("c: want 0 <= c <= n")
    return correct


def _check_masses(mu: FloatArray, tau: FloatArray) -> None:
    if not ((tau >= 0) & (tau <= mu) & (mu <= 1)).all():
        raise ValueError("mu, tau: want 0 <= tau <= mu <= 1")
