"""Compare the chance to teach and miss rare correct answers with groups that were really drawn.

F-GRPO (arXiv 2602.06717, Lemma 3.1) gives the chance for a known success rate. Here its curve over
the group size and its peak meet Monte Carlo, and estimates that know only how many of a group were
correct meet the truth over prompts of mixed difficulty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from measuring.drawn import Drawn
from measuring.report import arguments, publish
from measuring.tables import table
from measuring.tail_miss_figures import curves

from rlvitals.metrics import (
    expected_tail_miss,
    peak_group_size,
    posterior_tail_miss,
    realised_tail_miss,
    tail_miss_probability,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Points = dict[tuple[float, float, int], Drawn]  # by mu, rho and N

MUS, RHOS = (0.8, 0.5, 0.2, 0.05), (0.01, 0.05, 0.1, 0.2)
SIZES = tuple(2**power for power in range(1, 10))
RHO, MU = 0.1, 0.5  # what the panels of the figure hold fixed
PANELS = {
    f"rare share ρ = {RHO:g}": {(mu, RHO): f"μ = {mu:g}" for mu in MUS},
    f"success rate μ = {MU:g}": {(MU, rho): f"ρ = {rho:g}" for rho in RHOS},
}
SPREADS = ((0.6, 0.9), (2.0, 2.0), (0.3, 0.9))  # Beta(alpha, beta) of the success rates
ONE_GROUP = ((0, 8), (1, 8), (3, 8), (4, 8), (7, 8), (8, 8), (1, 64), (4, 64), (7, 64))  # c, size
GROUPS, FULL_GROUPS = 20_000, 1_000_000
STEP = 128  # groups in one step of training, for what one step can know
OPTIONS = {"groups": {"type": int, "help": "groups drawn for each seed and point"}}


def misses(source: np.random.Generator, correct: Integers, n: int, rho: float) -> Floats:
    """Draw which correct rollouts are rare; 1 for a mixed group of n without a rare one, else 0."""
    active = (correct > 0) & (correct < n)
    return (active & (source.binomial(correct, rho) == 0)).astype(np.float64)


def missed(source: np.random.Generator, mu: float, rho: float, n: int, groups: int) -> Drawn:
    """Draw groups of n and count those that are active without a rare correct answer."""
    correct = source.binomial(n, mu, groups)
    truth = tail_miss_probability(n, mu, rho * mu)
    return Drawn.share_of(misses(source, correct, n, rho), truth)


def curve_points(groups: int, seed: int = 0) -> Points:
    """Draw groups for both panels at every size, and at the peak of every pair."""
    source = np.random.default_rng([seed, 0])
    pairs = [(mu, rho) for mu in MUS for rho in RHOS]
    wanted = [(mu, rho, n) for mu, rho in pairs if rho == RHO or mu == MU for n in SIZES]
    wanted += [(mu, rho, peak_group_size(mu, rho * mu)) for mu, rho in pairs]
    return {point: missed(source, *point, groups) for point in dict.fromkeys(wanted)}


def estimates(
    alpha: float, beta: float, n: int, size: int, rho: float, groups: int, seed: int = 0
) -> dict[str, Drawn]:
    """Estimate the risk of groups of ``size`` from groups of n over Beta(alpha, beta) prompts.

    Counted: what really happened, which needs the rare answers. The others see only the number of
    correct rollouts c: plug-in puts c/n for the success rate, posterior averages over the rates
    that c leaves likely under the right prior, realised (when size is n) is (1-rho)^c.
    """
    source = np.random.default_rng([seed, n, size, round(1000 * rho)])
    rate = source.beta(alpha, beta, groups)
    c = source.binomial(n, rate)
    again = c if size == n else source.binomial(size, rate)
    happened = misses(source, again, size, rho)
    every = np.arange(n + 1)
    plugged = tail_miss_probability(size, every / n, rho * every / n)
    foreseen = [posterior_tail_miss(n, k, rho, size=size, alpha=alpha, beta=beta) for k in every]
    values = {"counted": happened, "plug-in": plugged[c]}
    values["posterior"] = np.array(foreseen)[c]
    if size == n:
        values["realised"] = realised_tail_miss(n, c, rho)
    truth = expected_tail_miss(size, alpha, beta, rho)
    return {name: Drawn.mean_of(each, truth) for name, each in values.items()}


def peak_rows(points: Points) -> list[list[str]]:
    """Lay out N*, by formula, by search and by hand, and the chance there, for every pair."""
    rows = []
    for mu, rho in ((mu, rho) for mu in MUS for rho in RHOS):
        peak = peak_group_size(mu, rho * mu)
        drawn = points[mu, rho, peak]
        sizes = np.arange(1, 4 * peak + 8)
        searched = int(sizes[np.argmax(tail_miss_probability(sizes, mu, rho * mu))])
        settings = [f"{mu:g}", f"{rho:g}", f"{peak}", f"{searched}", f"{by_hand(mu, rho):.1f}"]
        rows.append([*settings, f"{drawn.truth:.5f}", str(drawn), f"{drawn.sigmas:+.1f}"])
    return rows


def by_hand(mu: float, rho: float) -> float:
    """Give N* by the closed approximation ln(ln(1/m) / tau) / ln(a/m), m = max(b, c)."""
    tau = rho * mu
    m = max(mu - tau, 1 - mu)
    return math.log(math.log(1 / m) / tau) / math.log((1 - tau) / m)


def estimate_rows(groups: int, seed: int = 0) -> list[list[str]]:
    """Lay out the estimates for each spread: the same size, and sizes never drawn."""
    cases = [(8, 8, rho) for rho in (0.05, 0.1, 0.3)] + [(4, 4, 0.1), (16, 16, 0.1), (8, 64, 0.1)]
    rows = []
    for alpha, beta in SPREADS:
        for n, size, rho in cases if (alpha, beta) == SPREADS[0] else [(8, 8, 0.1), (8, 64, 0.1)]:
            found = estimates(alpha, beta, n, size, rho, groups, seed)
            row = [f"Beta({alpha:g}, {beta:g})", f"{n} → {size}" if size != n else f"{n}"]
            row += [f"{rho:g}", f"{found['plug-in'].truth:.5f}"]
            for name in ("counted", "realised", "posterior", "plug-in"):
                drawn = found.get(name)
                row.append(f"{drawn} ({drawn.sigmas:+.1f})" if drawn else "-")
            rows.append(row)
    return rows


def one_group_rows(groups: int, seed: int = 0) -> list[list[str]]:
    """Lay out the risk of the next group of a prompt that had c of 8 correct, as it was drawn.

    Rates are drawn from Beta(1/2, 1/2), the prior of the posterior beside it.
    """
    source = np.random.default_rng([seed, 2])
    rate = source.beta(0.5, 0.5, groups)
    solved = source.binomial(8, rate)
    rows = []
    for c, size in ONE_GROUP:
        again = source.binomial(size, rate[solved == c])
        foreseen = posterior_tail_miss(8, c, RHO, size=size)
        drawn = Drawn.share_of(misses(source, again, size, RHO), foreseen)
        plugged = tail_miss_probability(size, c / 8, RHO * c / 8)
        row = [f"{c}", f"{size}", str(drawn), f"{foreseen:.5f}", f"{drawn.sigmas:+.1f}"]
        rows.append([*row, f"{plugged:.5f}"])
    return rows


def step_errors(groups: int, seed: int = 0) -> dict[str, float]:
    """Give the std of the realised risk of one step of 128 groups of 8, seen and as reported."""
    source = np.random.default_rng([seed, 1])
    rate = source.beta(*SPREADS[0], (max(2, groups // STEP), STEP))
    risk = realised_tail_miss(8, source.binomial(8, rate), RHO)
    reported = risk.std(axis=1, ddof=1) / math.sqrt(STEP)
    return {"seen": float(risk.mean(axis=1).std(ddof=1)), "reported": float(reported.mean())}


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the groups and publish tables and figure."""
    args = arguments("Tail-miss chances against drawn groups.", argv, **OPTIONS)
    groups = (args.groups or (FULL_GROUPS if args.full else GROUPS)) * (args.seeds or 1)
    points = curve_points(groups)
    peaks = ("μ", "ρ", "N*", "by search", "by hand", "Lemma 3.1 at N*", "drawn ± SE", "sigmas")
    names = ("prompts", "N", "ρ", "truth", "counted", "realised", "posterior", "plug-in")
    after = ("c", "next N", "drawn ± SE", "posterior", "sigmas", "plug-in")
    # Counts of less than ten are too skewed to be judged by their standard error.
    off = np.array([abs(each.sigmas) for each in points.values() if each.truth * groups >= 10])
    steps = step_errors(groups)
    tables = {
        f"Peaks, {groups:,} groups a point": table(dict.fromkeys(peaks, ">"), peak_rows(points)),
        "All points of the curves": (
            f"{off.size} of {len(points)} points hold ten such groups or more: "
            f"{np.mean(off <= 2):.0%} within 2 standard errors, the furthest at {off.max():.1f}."
        ),
        "Estimates, mean ± SE (sigmas from the truth)": table(
            dict.fromkeys(names, ">") | {"prompts": "<"}, estimate_rows(groups)
        ),
        f"The next group after c of 8, ρ = {RHO:g}": table(
            dict.fromkeys(after, ">"), one_group_rows(groups)
        ),
        f"One step of {STEP} groups of 8": (
            f"Standard deviation of the realised risk over steps {steps['seen']:.4f}, mean "
            f"standard error that a step reports {steps['reported']:.4f}."
        ),
    }
    publish("tail-miss", tables, {"tail-miss-curves": curves(points, PANELS, SIZES)}, args.save)


if __name__ == "__main__":
    main()
