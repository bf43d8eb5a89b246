"""pass@k, its variance, its intervals over problems, and what lies beyond n."""

from __future__ import annotations

import itertools
import math
from dataclasses import astuple
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import pass_at_k
from rlvitals.metrics.extrapolation import (
    extrapolate_pass_at_k,
    pass_at_k_bounds,
    share_between,
)
from rlvitals.metrics.pass_at_k import (
    pass_at_k_bootstrap,
    pass_at_k_interval,
    pass_at_k_variance,
)

# Six problems with 4 rollouts: one with none correct, two with 1, one with 2, two with 4.
SIX = {4: [1, 2, 1, 0, 2]}


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (8, 1, 4, 0.5),
        (1024, 3, 256, 0.578537569368),
        (100_000, 1, 1, 1e-5),
        (100_000, 7, 256, 0.0177834895196),
        (4, 1, 4, 1.0),
        (8, 0, 8, 0.0),
        (8, 8, 1, 1.0),
    ],
)
def test_pass_at_k_golden(n: int, c: int, k: int, value: float) -> None:
    """Golden values hold to every digit given."""
    assert pass_at_k(n, c, k) == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_pass_at_k_brute_force(n: int) -> None:
    """It is the share of k-subsets of the n rollouts that hold a correct one."""
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        subsets = list(itertools.combinations([1] * c + [0] * (n - c), k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(map(max, subsets)) / len(subsets))


@pytest.mark.parametrize("n", [17, 256, 1024])
def test_pass_at_k_keeps_all_digits(n: int) -> None:
    """It agrees with exact fractions to 1e-13, relative."""
    for k, c in itertools.product((1, 2, n // 3, n - 1, n), (0, 1, 2, n // 2, n - 1, n)):
        exact = float(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))
        assert pass_at_k(n, c, k) == pytest.approx(exact, rel=1e-13)


def test_pass_at_k_takes_many_counts() -> None:
    """An array of counts gives an array of the same shape."""
    each = pass_at_k(4, [[0, 1], [1, 4]], 2)
    assert each.tolist() == [[0.0, 0.5], [0.5, 1.0]]
    assert pass_at_k(4, [], 2).shape == (0,)


@given(st.integers(2, 300), st.data())
def test_pass_at_k_rises_with_k_and_with_c(n: int, data: st.DataObject) -> None:
    """One more rollout to choose from, or one more correct, never lowers it."""
    c, k = data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, n - 1))
    value = pass_at_k(n, c, k)
    assert 0.0 <= value <= pass_at_k(n, c + 1, k) <= 1.0
    assert value <= pass_at_k(n, c, k + 1) + 1e-15


@pytest.mark.parametrize(
    ("n", "c", "k", "field"), [(4, 1, 5, "k"), (4, 1, 0, "k"), (4, 5, 1, "c"), (4, -1, 1, "c")]
)
def test_pass_at_k_refuses_to_extrapolate(n: int, c: int, k: int, field: str) -> None:
    """Beyond n rollouts, or with impossible counts, it says which argument is wrong."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(
    ("n", "c", "k", "value"), [(64, 3, 8, 0.02752356796), (1024, 3, 256, 0.05299714935)]
)
def test_variance_golden(n: int, c: int, k: int, value: float) -> None:
    """Golden values of the unbiased variance hold to every digit given."""
    assert pass_at_k_variance(n, c, k) == pytest.approx(value, rel=2e-10)


def test_variance_of_one_rollout_is_the_binomial_one() -> None:
    """For k = 1 it is p (1 - p) / (n - 1) at p = c / n, as for any mean."""
    p = np.arange(9) / 8
    assert pass_at_k_variance(8, np.arange(9), 1) == pytest.approx(p * (1 - p) / 7)


@pytest.mark.parametrize("n", [2, 5, 16, 65])
def test_variance_is_the_difference_of_two_fractions(n: int) -> None:
    """It is Q^2 - C(n-c, 2k) / C(n, 2k) to 1e-11, relative, for every c and k."""
    for k, c in itertools.product(range(1, n // 2 + 1), range(n + 1)):
        unsolved = Fraction(math.comb(n - c, k), math.comb(n, k))
        exact = unsolved**2 - Fraction(math.comb(n - c, 2 * k), math.comb(n, 2 * k))
        assert pass_at_k_variance(n, c, k) == pytest.approx(float(exact), rel=1e-11, abs=0)


@pytest.mark.parametrize(("n", "k", "p"), [(16, 4, 0.2), (8, 4, 0.6), (64, 8, 0.05)])
def test_variance_is_unbiased(n: int, k: int, p: float) -> None:
    """Its mean over c ~ Binomial(n, p) is the variance of pass@k, summed over every c."""
    c = np.arange(n + 1)
    chance = np.array([math.comb(n, int(i)) for i in c]) * p**c * (1 - p) ** (n - c)
    values = pass_at_k(n, c, k)
    variance = float(chance @ values**2) - float(chance @ values) ** 2
    assert float(chance @ pass_at_k_variance(n, c, k)) == pytest.approx(variance, rel=1e-10)


@pytest.mark.parametrize(
    ("n", "k", "p", "known"),
    [(16, 4, 0.2, 4.516e-2), (64, 8, 0.05, 2.364e-2), (256, 64, 0.01, 4.83e-2)],
)
def test_variance_by_theory_and_by_simulation(n: int, k: int, p: float, known: float) -> None:
    """The sum over overlaps of two k-subsets gives it; 40,000 problems agree within 4 sigmas."""
    overlap = [math.comb(k, j) * math.comb(n - k, k - j) / math.comb(n, k) for j in range(k + 1)]
    twice = sum(w * (1 - p) ** (2 * k - j) for j, w in enumerate(overlap))
    theory = twice - (1 - p) ** (2 * k)
    assert theory == pytest.approx(known, rel=1e-3)
    estimates = pass_at_k_variance(n, np.random.default_rng(3).binomial(n, p, 40_000), k)
    error = estimates.std(ddof=1) / math.sqrt(len(estimates))
    assert abs(estimates.mean() - theory) < 4 * error


@given(st.integers(2, 100_000), st.data())
def test_variance_is_never_negative(n: int, data: st.DataObject) -> None:
    """At any size it lies in [0, 1/4], and 0 and n correct give exactly 0."""
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n // 2))
    assert 0.0 <= pass_at_k_variance(n, c, k) <= 0.25 + 1 / n
    assert pass_at_k_variance(n, [0, n], k).tolist() == [0.0, 0.0]


def test_variance_ends_at_half_of_the_rollouts() -> None:
    """Beyond 2k = n the message names k and the way out."""
    assert pass_at_k_variance(8, 1, 4) == pytest.approx(0.25)
    with pytest.raises(ValueError, match=r"^k: .*pass_at_k_bootstrap"):
        pass_at_k_variance(8, 1, 5)
    with pytest.raises(ValueError, match=r"^c: "):
        pass_at_k_variance(8, 9, 2)


def test_interval_of_drawn_problems() -> None:
    """pass@1 of 0, 1/4, 1/4, 1/2, 1, 1 has mean .5 and standard error sd / sqrt 6."""
    estimate = pass_at_k_interval(SIX, 1)
    sd = np.std([0, 0.25, 0.25, 0.5, 1, 1], ddof=1)
    assert estimate.value == pytest.approx(0.5)
    assert estimate.se == pytest.approx(sd / math.sqrt(6))
    assert 0 < estimate.low < 0.5 < estimate.high < 1
    assert not estimate.extrapolated


def test_interval_of_a_fixed_benchmark_is_narrower() -> None:
    """Its standard error is sqrt(sum of variances) / P: sampling noise alone."""
    estimate = pass_at_k_interval(SIX, 2, problems="fixed")
    variances = 2 * pass_at_k_variance(4, 1, 2) + pass_at_k_variance(4, 2, 2)
    assert estimate.se == pytest.approx(math.sqrt(variances) / 6)
    assert estimate.se < pass_at_k_interval(SIX, 2).se
    with pytest.raises(ValueError, match=r"^k: .*pass_at_k_bootstrap"):
        pass_at_k_interval(SIX, 3, problems="fixed")
    with pytest.raises(ValueError, match=r"^problems: "):
        pass_at_k_interval(SIX, 1, problems="some")  # type: ignore[arg-type]


def test_problems_may_differ_in_rollouts() -> None:
    """Problems with 4 and with 8 rollouts count alike; k is limited by the smaller."""
    mixed = {4: [0, 1, 0, 0, 0], 8: [0, 0, 0, 0, 1, 0, 0, 0, 0]}
    both = (pass_at_k(4, 1, 4) + pass_at_k(8, 4, 4)) / 2
    assert pass_at_k_interval(mixed, 4).value == pytest.approx(both)
    with pytest.raises(ValueError, match=r"^k: "):
        pass_at_k_interval(mixed, 5)


@pytest.mark.parametrize("problems", ["drawn", "fixed"])
def test_intervals_at_the_edges(problems: str) -> None:
    """All solved and none solved keep a width; one problem says nothing about others."""
    for row, value in (([0] * 8 + [5], 1.0), ([5] + [0] * 8, 0.0)):
        estimate = pass_at_k_interval({8: row}, 2, problems=problems)  # type: ignore[arg-type]
        assert (estimate.value, estimate.se) == (value, 0.0)
        assert estimate.low <= value <= estimate.high
        assert estimate.high - estimate.low > 0.1
    alone = pass_at_k_interval({8: [0, 0, 1] + [0] * 6}, 2)
    assert math.isnan(alone.se)
    assert (alone.low, alone.high) == (0.0, 1.0)


@pytest.mark.parametrize("counts", [{}, {8: [0] * 9}, {0: [3]}])
def test_no_problem_is_refused(counts: dict[int, list[int]]) -> None:
    """Without one problem there is no mean, and the message names counts."""
    for estimate in (pass_at_k_interval, pass_at_k_bootstrap):
        with pytest.raises(ValueError, match=r"^counts: "):
            estimate(counts, 1)


def _coverage(problems: str, k: int, trials: int) -> float:
    """Give how often the 95 % interval holds the truth, over benchmarks of 60 problems."""
    source = np.random.default_rng(11)
    rates = source.beta(0.6, 0.9, 60)
    held = 0
    for _ in range(trials):
        if problems == "drawn":
            rates = source.beta(0.6, 0.9, 60)
        counts = {8: np.bincount(source.binomial(8, rates), minlength=9).tolist()}
        estimate = pass_at_k_interval(counts, k, problems=problems)  # type: ignore[arg-type]
        fixed = float(np.mean(1 - (1 - rates) ** k))
        drawn = extrapolate_pass_at_k(k, 0.6, 0.9).value
        held += estimate.low <= (drawn if problems == "drawn" else fixed) <= estimate.high
    return held / trials


@pytest.mark.parametrize(
    ("problems", "k"), [("drawn", 1), ("drawn", 8), ("fixed", 1), ("fixed", 4)]
)
def test_intervals_cover_what_they_promise(problems: str, k: int) -> None:
    """Each question's 95 % interval holds its own truth in .95 of 2,000 runs, within 4 sigmas.

    A point is allowed on top of 4 sqrt(.95 * .05 / 2000) = .0195: neither interval is exact.
    """
    assert _coverage(problems, k, 2000) == pytest.approx(0.95, abs=0.0295)


def test_bootstrap_agrees_with_the_drawn_interval() -> None:
    """On 200 problems its ends lie near those of the formula, and the seed decides them."""
    row = np.bincount(np.random.default_rng(5).binomial(8, 0.3, 200), minlength=9).tolist()
    drawn, resampled = pass_at_k_interval({8: row}, 5), pass_at_k_bootstrap({8: row}, 5)
    assert resampled.value == pytest.approx(drawn.value)
    assert resampled.se == pytest.approx(drawn.se)
    assert (resampled.low, resampled.high) == pytest.approx((drawn.low, drawn.high), abs=0.01)
    assert pass_at_k_bootstrap({8: row}, 5, seed=0) == resampled
    assert pass_at_k_bootstrap({8: row}, 5, seed=1) != resampled


def test_order_of_sizes_does_not_matter() -> None:
    """The same problems listed in another order give the same estimate."""
    one, two = {4: [1, 2, 0, 0, 0]}, {8: [0, 3, 0, 0, 0, 0, 0, 0, 1]}
    there, back = pass_at_k_interval(one | two, 3), pass_at_k_interval(two | one, 3)
    assert astuple(there) == pytest.approx(astuple(back))


def test_extrapolation_is_marked() -> None:
    """A uniform success rate gives k / (k + 1); nothing else is said of its error."""
    beyond = extrapolate_pass_at_k(64, 1.0, 1.0)
    assert beyond.value == pytest.approx(64 / 65)
    assert beyond.extrapolated
    assert math.isnan(beyond.se)
    assert (beyond.low, beyond.high) == (0.0, 1.0)


def test_extrapolation_knows_problems_at_the_ends() -> None:
    """A fifth never and a tenth always solved: .1 + .7 k / (k + 1), and never above .8."""
    beyond = extrapolate_pass_at_k(9, 1.0, 1.0, never=0.2, always=0.1)
    assert beyond.value == pytest.approx(0.1 + 0.7 * 0.9)
    assert extrapolate_pass_at_k(100_000, 1.0, 1.0, never=0.2, always=0.1).value < 0.8
    assert extrapolate_pass_at_k(4, math.nan, math.nan, never=0.5, always=0.5).value == 0.5


@pytest.mark.parametrize("k", [1, 4, 8])
def test_extrapolation_meets_what_is_counted(k: int) -> None:
    """Below n it is the expectation of the unbiased estimate under the same spread of rates."""
    rates = (np.arange(20_000) + 0.5) / 20_000  # uniform, by the midpoint rule
    expected = float(np.mean(1 - (1 - rates) ** k))
    assert extrapolate_pass_at_k(k, 1.0, 1.0).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({"k": 0, "alpha": 1.0, "beta": 1.0}, "k"),
        ({"k": 8, "alpha": 0.0, "beta": 1.0}, "alpha"),
        ({"k": 8, "alpha": 1.0, "beta": 1.0, "never": 0.6, "always": 0.5}, "never, always"),
        ({"k": 8, "alpha": 1.0, "beta": 1.0, "never": -0.1}, "never, always"),
    ],
)
def test_extrapolation_names_what_cannot_be(given_: dict[str, float], field: str) -> None:
    """Parameters outside their range raise a ValueError that names them."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        extrapolate_pass_at_k(**given_)  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(1, 16), st.integers(0, 200))
def test_bounds_hold_for_every_spread_of_difficulty(rates: list[float], n: int, more: int) -> None:
    """For any rates, pass@k lies between pass@n and 1 - (1 - pass@n)^(k/n)."""
    here, there = (np.mean(1 - (1 - np.array(rates)) ** k) for k in (n, n + more))
    assert here <= there + 1e-12
    assert there <= 1 - (1 - here) ** ((n + more) / n) + 1e-12


def test_bounds_golden() -> None:
    """pass@4 is 5/6 of the six problems, so pass@8 is at most 1 - 1/36; at n both ends meet."""
    assert pass_at_k_bounds(SIX, 8) == pytest.approx((5 / 6, 35 / 36))
    assert pass_at_k_bounds(SIX, 4) == pytest.approx((5 / 6, 5 / 6))
    beyond = extrapolate_pass_at_k(8, 1.0, 1.0, counts=SIX)
    assert (beyond.low, beyond.high) == pass_at_k_bounds(SIX, 8)
    with pytest.raises(ValueError, match=r"^k: "):
        pass_at_k_bounds(SIX, 3)


def test_share_between() -> None:
    """What is neither never nor always solved; rounding of a fit is no error."""
    assert share_between(0.25, 0.5) == 0.25
    assert share_between(0.7, 0.3 + 1e-15) == 0.0
