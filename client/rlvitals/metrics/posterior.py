"""Tail-miss when the success rate is known only from a prior, a fit or a few rollouts."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.beta import all_fail_chance
from rlvitals.metrics.extrapolation import share_between
from rlvitals.metrics.means import judged_cells, mean_of_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.metrics.means import Mean
    from rlvitals.metrics.rollouts import FloatArray

JEFFREYS = 0.5  # Beta(1/2, 1/2), the prior that is the same for every way to write a chance


def expected_tail_miss(
    n: int,
    alpha: float,
    beta: float,
    rho: float = 0.1,
    *,
    never: float = 0.0,
    always: float = 0.0,
) -> float:
    """Give the tail-miss chance of a group of any size n when success rates are Beta distributed.

    E of F-GRPO Lemma 3.1 (arXiv 2602.06717) with tau = rho p over p ~ Beta(alpha, beta); the
    shares ``never`` and ``always`` of prompts, never and always solved, give no active group.
    Summed exactly, as the mean of (1-rho)^c over beta-binomial c with 0 < c < n: all terms are
    positive, so 12 digits stay at n = 1e5. (64 Gauss-Jacobi nodes keep 9 digits up to n rho =
    1000 only, and 2F1 overflows.) Raises ValueError naming the argument.
    """
    if not 0 <= rho <= 1:
        raise ValueError(f"rho: want a share between 0 and 1, got {rho}")
    between = share_between(never, always)
    if n < 1:
        raise ValueError(f"n: a group has at least one rollout, got {n}")
    if not between:
        return 0.0
    mixed = _count_chances(alpha, beta, n)[1:n]
    return between * float(mixed @ (1.0 - rho) ** np.arange(1.0, n))


def posterior_tail_miss(
    n: int,
    c: int,
    rho: float = 0.1,
    *,
    size: int | None = None,
    alpha: float = JEFFREYS,
    beta: float = JEFFREYS,
) -> float:
    """Give the tail-miss chance of the next group of a prompt that had c of n correct.

    ``expected_tail_miss`` over the posterior Beta(alpha + c, beta + n - c), for a next group of
    ``size`` rollouts (n when None). Plugging c / n into Lemma 3.1 instead is biased: at 4 of 8
    and a size of 64 it gives .038 where the posterior gives .064.
    """
    if not 0 <= c <= n:
        raise ValueError(f"c: want 0 <= c <= n, got c={c} with n={n}")
    return expected_tail_miss(n if size is None else size, alpha + c, beta + n - c, rho)


def mean_posterior_tail_miss(
    counts: Mapping[int, Sequence[int]],
    size: int,
    rho: float = 0.1,
    *,
    alpha: float = JEFFREYS,
    beta: float = JEFFREYS,
    level: float = 0.95,
) -> Mean:
    """Foresee the tail-miss risk of a batch at any group size, group by group.

    The mean of ``posterior_tail_miss`` over groups, with the standard error of that mean;
    ``counts[n]`` lists how many groups of n had c = 0..n correct (``Tally.counts``). The prior
    enters every group: Jeffreys' takes collapsed groups for milder than they are, the fitted
    spread of the same prompts does not. For ``size`` <= n ``mean_tail_miss`` needs no prior.
    """
    cells = judged_cells(counts)
    each = [
        posterior_tail_miss(n, int(correct), rho, size=size, alpha=alpha, beta=beta)
        for n, c, _ in cells
        for correct in c
    ]
    times = np.concatenate([groups for _, _, groups in cells])
    return mean_of_shares(np.array(each), times, level)


def dirichlet_tail_miss(n: int, rare: float, common: float, wrong: float) -> float:
    """Give the tail-miss chance of a group of n when the rare mass is uncertain too.

    [(C+W)_n - (C)_n - (W)_n] / (E+C+W)_n, with rising factorials (x)_n, for masses of rare
    correct, other correct and wrong answers ~ Dirichlet(E, C, W). Evaluated as the chance of no
    rare answer, all_fail_chance(E, C+W, n), times that of a mixed group among common and wrong
    ones, which loses no digits to a difference. Raises ValueError unless n >= 1 and the three
    are positive and finite.
    """
    for name, value in (("rare", rare), ("common", common), ("wrong", wrong)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name}: want a positive finite number, got {value}")
    if n < 1:
        raise ValueError(f"n: a group has at least one rollout, got {n}")
    mixed = float(_count_chances(common, wrong, n)[1:n].sum())
    return all_fail_chance(rare, common + wrong, n) * mixed


@lru_cache(maxsize=32)
def _count_chances(alpha: float, beta: float, n: int) -> FloatArray:
    """Tabulate the chance of c = 0..n correct when p ~ Beta(alpha, beta).

    Proportional to (alpha)_c / c! times (beta)_(n-c) / (n-c)!, and made to sum to 1. Factors near
    1 and a common scale keep digits that log-gammas of 1e5 would lose.
    """
    all_fail_chance(alpha, beta, 0)  # names a parameter that cannot be
    log_weight = _log_rising(alpha, n) + _log_rising(beta, n)[::-1]
    weight = np.exp(log_weight - log_weight.max())
    chances: FloatArray = weight / weight.sum()
    chances.flags.writeable = False
    return chances


def _log_rising(x: float, n: int) -> FloatArray:
    """Tabulate log of (x)_m / m! = x (x+1) … (x+m-1) / m! for m = 0..n."""
    first = [0.0, math.log(x)]
    return np.cumsum(np.concatenate([first, np.log1p((x - 1) / np.arange(2.0, n + 1))]))
