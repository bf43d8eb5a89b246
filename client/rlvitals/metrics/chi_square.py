"""Whether counted groups look like what a fit expects."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray

LEAST_EXPECTED = 5.0  # below that many groups a cell the statistic is no longer chi-square


class ChiSquare(NamedTuple):
    """Hold Pearson's statistic; ``p_value`` is None where no degree of freedom is left."""

    statistic: float
    df: int
    p_value: float | None


def chi_square_survival(statistic: float, df: int) -> float:
    """Give the chance that a chi-square variable of ``df`` degrees exceeds ``statistic``.

    With h = statistic / 2 that is exp(-h) sum of h^j / j! over j < df / 2 for an even df, and
    erfc(sqrt h) + exp(-h) sum of h^(j - 1/2) / Gamma(j + 1/2) over 1 <= j <= (df - 1) / 2 for an
    odd one (Abramowitz and Stegun, 26.4.4 and 26.4.5). Raises ValueError unless statistic >= 0
    and df >= 1.
    """
    if not statistic >= 0:
        raise ValueError(f"statistic: want a number from 0 up, got {statistic}")
    if df < 1:
        raise ValueError(f"df: want one degree of freedom or more, got {df}")
    half = statistic / 2
    if half in (0, math.inf):
        return float(half == 0)
    odd = df % 2
    # Each term is h / (j + odd/2) times the one before; logarithms outlast exp(-h).
    ratios = np.log(half / (np.arange(1, (df + 1) // 2) - odd / 2))
    first = -math.log(half * math.pi) / 2 if odd else 0.0  # the term before: h^(-1/2) / Gamma(1/2)
    terms = np.exp(first + np.cumsum(ratios) - half)
    whole = math.erfc(math.sqrt(half)) if odd else math.exp(-half)
    return min(1.0, whole + float(terms.sum()))


def chi_square_test(
    tables: Iterable[tuple[ArrayLike, ArrayLike]], parameters: int, least: float = LEAST_EXPECTED
) -> ChiSquare:
    """Compare tables of (observed, expected) counts whose totals agree; Pearson's statistic.

    Neighbouring cells are pooled until each expects ``least`` or more. One degree of freedom goes
    for the total of each table and one for each of the fitted ``parameters``. With parameters
    fitted to the cells before pooling, the true law lies between this df and one more for each
    of them (Chernoff and Lehmann, 1954), so the test doubts a right fit a little too often.
    """
    statistic, df = 0.0, -parameters
    for observed, expected in tables:
        seen, wanted = _pooled(np.asarray(observed, float), np.asarray(expected, float), least)
        statistic += float(((seen - wanted) ** 2 / wanted).sum())
        df += len(seen) - 1
    return ChiSquare(statistic, df, chi_square_survival(statistic, df) if df > 0 else None)


def _pooled(observed: FloatArray, expected: FloatArray, least: float) -> tuple[FloatArray, ...]:
    """Pool cells from the left; what is left over at the end joins the last full cell."""
    starts, held = [0], 0.0
    for cell, share in enumerate(expected.tolist()):
        held += share
        if held >= least:
            starts.append(cell + 1)
            held = 0.0
    starts.pop()
    starts = starts or [0]
    return np.add.reduceat(observed, starts), np.add.reduceat(expected, starts)
