"""How often a group teaches while it saw none of the rare correct answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from rlvitals.metrics.means import judged_cells, mean_of_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from rlvitals.metrics.means import Mean
    from rlvitals.metrics.rollouts import FloatArray


def tail_miss_probability(n: ArrayLike, mu: ArrayLike, tau: ArrayLike) -> Any:
    """Give the chance that a group of n is active yet misses rare correct answers of mass tau.

    (1-tau)^n - (mu-tau)^n - (1-mu)^n, F-GRPO Lemma 3.1 (arXiv 2602.06717): mu is the chance of a
    correct rollout, tau <= mu the part of it on rare answers; active means 0 < c < n. Evaluated
    as expm1(n log1p(-tau)) - expm1(n log1p(-mu)) - exp(n log(mu-tau)). Arrays broadcast; scalars
    give a float. Raises ValueError outside n >= 1 and 0 <= tau <= mu <= 1.
    """
    size, correct, rare = _masses(n, mu, tau)
    with np.errstate(divide="ignore"):  # log of an exact 0 is the -inf that the powers need
        seen_none = np.expm1(size * np.log1p(-rare))
        all_wrong = np.expm1(size * np.log1p(-correct))
        all_right = np.exp(size * np.log(correct - rare))
    return _chance(seen_none - all_wrong - all_right)


def tail_hit_probability(n: ArrayLike, mu: ArrayLike, tau: ArrayLike) -> Any:
    """Give the chance that a group of n is active and saw a rare correct answer of mass tau.

    1 - mu^n - (1-mu)^n less ``tail_miss_probability``, which is 1 - (1-tau)^n less
    mu^n - (mu-tau)^n: a rare answer was sampled, and not every rollout was correct. Arguments as
    there; this, divided by n, is what a rollout buys.
    """
    size, correct, rare = _masses(n, mu, tau)
    with np.errstate(divide="ignore"):
        seen = -np.expm1(size * np.log1p(-rare))
        all_right = np.exp(size * np.log(correct)) - np.exp(size * np.log(correct - rare))
    return _chance(seen - all_right)


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
    _check_share(rho)
    correct, size = np.asarray(c), np.asarray(n)
    if not ((correct >= 0) & (correct <= size)).all():
        raise ValueError("c: want 0 <= c <= n")
    missed = np.where((correct > 0) & (correct < size), (1.0 - rho) ** correct, 0.0)
    return float(missed) if missed.ndim == 0 else missed


def mean_tail_miss(
    counts: Mapping[int, Sequence[int]],
    rho: float = 0.1,
    *,
    size: int | None = None,
    level: float = 0.95,
) -> Mean:
    """Estimate the tail-miss risk of a batch without bias, as it was or for smaller groups.

    The mean of ``realised_tail_miss`` over groups with its standard error, sd (ddof=1) over the
    root of the number of groups. ``counts[n]`` lists how many groups of n had c = 0..n correct
    (``Tally.counts``). With ``size`` <= n each group stands for all of its subsets of that size:
    (1-rho)^c becomes the sum of Hypergeometric(j; n, c, size) (1-rho)^j over 0 < j < size.
    Raises ValueError when a group is smaller than ``size``: larger sizes need
    ``mean_posterior_tail_miss`` or ``expected_tail_miss``.
    """
    _check_share(rho)
    cells = judged_cells(counts)
    if size is None:
        each = [realised_tail_miss(n, c, rho) for n, c, _ in cells]
    else:
        each = [_at_smaller(n, c.tolist(), size, rho) for n, c, _ in cells]
    times = np.concatenate([groups for _, _, groups in cells])
    return mean_of_shares(np.concatenate(each), times, level)


def peak_group_size(mu: float, tau: float) -> int:
    """Give the group size at which ``tail_miss_probability`` peaks for given masses.

    The smallest n with (1-b)(b/a)^n + mu (c/a)^n <= tau, where a = 1-tau, b = mu-tau, c = 1-mu;
    the left side falls strictly in n, so doubling and bisection find it. Needs 0 < tau <= mu <= 1.
    By hand: ln(ln(1/m) / tau) / ln(a/m), m = max(b, c), is within 1.6 for mu <= .9, tau <= mu / 2.
    """
    _masses(1, mu, tau)
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


def _at_smaller(n: int, correct: list[int], size: int, rho: float) -> FloatArray:
    if not 1 <= size <= n:
        raise ValueError(f"size: want 1 <= size <= {n}, the rollouts of a group, got {size}")
    return np.array([_subset_tail_miss(n, c, size, rho) for c in correct], np.float64)


def _subset_tail_miss(n: int, c: int, size: int, rho: float) -> float:
    j, chance = _hypergeometric(n, c, size)
    return float(chance @ realised_tail_miss(size, j, rho))


def _hypergeometric(n: int, c: int, size: int) -> tuple[FloatArray, FloatArray]:
    """Give each number j of correct among ``size`` of n rollouts with c correct, and its chance.

    Built from ratios of neighbours and made to sum to 1, which keeps its digits for large n.
    """
    low, high = max(0, size - (n - c)), min(c, size)
    j = np.arange(low, high + 1, dtype=np.float64)
    up, down = (c - j[:-1]) * (size - j[:-1]), j[1:] * (n - c - size + j[1:])
    log_weight = np.concatenate([[0.0], np.cumsum(np.log(up / down))])
    weight = np.exp(log_weight - log_weight.max())
    return j, weight / weight.sum()


def _masses(n: ArrayLike, mu: ArrayLike, tau: ArrayLike) -> tuple[FloatArray, ...]:
    size, correct, rare = (np.asarray(value, np.float64) for value in (n, mu, tau))
    if not ((rare >= 0) & (rare <= correct) & (correct <= 1)).all():
        raise ValueError("mu, tau: want 0 <= tau <= mu <= 1")
    if not (size >= 1).all():
        raise ValueError("n: a group has at least one rollout")
    return size, correct, rare


def _chance(value: FloatArray) -> Any:
    chance = np.clip(value, 0.0, 1.0)
    return float(chance) if chance.ndim == 0 else chance


def _check_share(rho: float) -> None:
    if not 0 <= rho <= 1:
        raise ValueError(f"rho: want a share between 0 and 1, got {rho}")
