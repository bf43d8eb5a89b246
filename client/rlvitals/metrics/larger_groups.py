"""The collapse rate that larger groups would have, forecast from a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.beta_binomial import fit_beta_binomial, judged_groups
from rlvitals.metrics.collapse import wilson_interval
from rlvitals.metrics.likeliest import likeliest
from rlvitals.metrics.mixture import Cells, point_of
from rlvitals.metrics.resampling import Estimate, normal_quantile, percentiles
from rlvitals.metrics.smaller_groups import CollapseAt, check_request, collapse_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.metrics.beta_binomial import BetaBinomialFit
    from rlvitals.metrics.histograms import Counts
    from rlvitals.metrics.rollouts import FloatArray
    from rlvitals.metrics.spread import Spread

REFITS = 200
FARTHEST = 4  # times the largest group seen; forecasts beyond were never checked


def collapse_at_larger(
    counts: Mapping[int, Sequence[int]],
    n: int,
    *,
    inflated: bool = True,
    refits: int = REFITS,
    level: float = 0.95,
    seed: int = 0,
) -> CollapseAt:
    """Forecast the collapse rate at groups of n from the fitted spread of success rates.

    See ``fit_beta_binomial`` for ``counts`` and ``inflated``. The intervals come from ``refits``
    fits to groups drawn with replacement; they hold the noise of the counts, not the error of a
    spread that is no inflated Beta: ``reliable`` and ``bounds`` speak of that.
    Raises ValueError when n is below the smallest group.
    """
    check_request(n, level)
    if refits < 1:
        raise ValueError(f"refits: want one or more, got {refits}")
    held = judged_groups(counts)
    if n < min(held):
        raise ValueError(f"n: all groups have {min(held)} rollouts or more; count, do not fit")
    fit = fit_beta_binomial(held, inflated=inflated)
    foreseen = _forecast(fit.spread, n)
    if fit.spread.between:
        drawn = np.array([_forecast(spread, n) for spread in _redrawn(held, fit, refits, seed)])
        ends = [_ends(x, column, level) for x, column in zip(foreseen, drawn.T, strict=True)]
    else:
        ends = _ends_unmixed(fit, n / min(held), level)
    fail, passed, rate, never = (
        Estimate(value, min(low, value), max(high, value))
        for value, (low, high) in zip(foreseen, ends, strict=True)
    )
    reason = fit.reason or _too_far(n, max(held))
    return CollapseAt(
        n,
        fail,
        passed,
        rate,
        bounds=collapse_bounds(held, n),
        never=never,
        groups=fit.groups,
        left_out=0,
        exact=False,
        reliable=not reason,
        reason=reason,
    )


def _redrawn(held: Counts, fit: BetaBinomialFit, refits: int, seed: int) -> list[Spread]:
    """Fit again to groups drawn with replacement, searching from the fit itself."""
    cells = Cells.from_counts(held)
    start = point_of(fit.spread)
    inflated = fit.inflated
    source = np.random.default_rng(seed)
    drawn = source.multinomial(fit.groups, cells.times / fit.groups, size=refits)
    return [
        likeliest(cells.counted(times), inflated=inflated, starts=[start]).spread for times in drawn
    ]


def _forecast(spread: Spread, n: int) -> tuple[float, float, float, float]:
    fail, passed = spread.all_fail(n), spread.all_pass(n)
    return fail, passed, min(1.0, fail + passed), spread.never


def _ends(value: float, drawn: FloatArray, level: float) -> tuple[float, float]:
    """Join the percentiles of what was drawn and their mirror image around the estimate.

    A share of prompts cannot be below 0, so estimates are biased, and draws once more than the
    estimate; the mirror image has that bias the other way round (the basic bootstrap).
    """
    low, high = percentiles(drawn, level)
    return max(0.0, min(low, 2 * value - high)), min(1.0, max(high, 2 * value - low))


def _ends_unmixed(fit: BetaBinomialFit, growth: float, level: float) -> list[tuple[float, float]]:
    """Bound each side without a fit: a share q at m rollouts is at least q^(n/m) at n (Jensen)."""
    ends = []
    for share in (fit.spread.never, fit.spread.always):
        low, high = wilson_interval(share * fit.groups, fit.groups, normal_quantile(level))
        ends.append((low**growth, high))
    (fail_low, fail_high), (pass_low, _) = ends
    return [*ends, (fail_low + pass_low, 1.0), (0.0, fail_high)]


def _too_far(n: int, largest: int) -> str:
    if n <= FARTHEST * largest:
        return ""
    return f"{n} rollouts are more than {FARTHEST} times the largest group seen ({largest})"
