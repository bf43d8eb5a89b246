"""How success rates spread over prompts, fitted to counts of correct rollouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.chi_square import ChiSquare, chi_square_test
from rlvitals.metrics.histograms import check_histogram
from rlvitals.metrics.likeliest import likeliest
from rlvitals.metrics.mixture import Cells

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.metrics.histograms import Counts
    from rlvitals.metrics.likeliest import Top
    from rlvitals.metrics.rollouts import FloatArray
    from rlvitals.metrics.spread import Spread

DOUBT = 0.05  # a p-value below this says that the counts do not look like the fit


@dataclass(frozen=True, slots=True)
class BetaBinomialFit:
    """Hold the ``spread`` of rates that makes counted groups most likely.

    ``test`` compares the counts with the fit. Unless ``reliable``, ``reason`` says why nothing
    beyond the counts themselves should be built on it.
    """

    spread: Spread
    inflated: bool
    log_likelihood: float
    groups: int
    test: ChiSquare
    reliable: bool
    reason: str


def fit_beta_binomial(
    counts: Mapping[int, Sequence[int]], *, inflated: bool = True
) -> BetaBinomialFit:
    """Fit the spread of success rates over prompts to counted groups, by maximum likelihood.

    ``counts[n]`` lists how many groups of n rollouts had c = 0..n correct (``Tally.counts``); any
    mix of sizes. ``inflated`` adds prompts that are never and always solved to the Beta
    distributed ones. Without a mixed group there is nothing to fit: the ends hold everything and
    the fit is not reliable. Raises ValueError without groups, or when the groups are too small to
    tell the parameters apart.
    """
    held = judged_groups(counts)
    parameters = 4 if inflated else 2
    if sum(held) < parameters:
        raise ValueError(
            f"counts: groups of up to {max(held)} rollouts have too few outcomes to fit "
            f"{parameters} parameters" + ("; want inflated=False" if inflated else "")
        )
    top = likeliest(Cells.from_counts(held), inflated=inflated)
    return _judged(held, top, inflated=inflated)


def judged_groups(counts: Mapping[int, Sequence[int]]) -> Counts:
    """Check counts and leave out sizes without groups; ValueError when nothing is left."""
    for n, row in counts.items():
        check_histogram(n, row)
    held = {n: tuple(row) for n, row in counts.items() if any(row)}
    if not held:
        raise ValueError("counts: there are no groups with known success")
    if min(held) < 1:
        raise ValueError("counts.0: a group has at least one rollout")
    return held


def _judged(held: Counts, top: Top, *, inflated: bool) -> BetaBinomialFit:
    """Test the fit and say whether to rely on it."""
    spread = top.spread
    chances = {n: spread.chances(n) for n in held}
    parameters = 2 + (spread.never > 0) + (spread.always > 0)
    tables = [(held[n], sum(held[n]) * chances[n]) for n in held]
    test = chi_square_test(tables, parameters)
    reason = _doubt(top, test)
    return BetaBinomialFit(
        spread,
        inflated,
        sum(_log_likelihood(held[n], chances[n]) for n in held),
        sum(map(sum, held.values())),
        test,
        not reason,
        reason,
    )


def _log_likelihood(row: Sequence[int], chances: FloatArray) -> float:
    times = np.asarray(row, np.float64)
    seen = times > 0
    return float(times[seen] @ np.log(chances[seen]))


def _doubt(top: Top, test: ChiSquare) -> str:
    """Say why the fit cannot be relied on; nothing when it can."""
    if top.spread.between == 0:
        return "no group is mixed, so nothing tells how the rates of success spread"
    if not top.settled:
        return "the search for the most likely spread did not settle"
    if test.p_value is None:
        return "there are too few groups, or outcomes of a group, to test the fit"
    if test.p_value < DOUBT:
        return (
            f"the counts do not look like the fit (chi-square {test.statistic:.1f} on {test.df} "
            f"degrees of freedom, p = {test.p_value:.2g})"
        )
    return ""
