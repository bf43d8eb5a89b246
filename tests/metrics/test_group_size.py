"""The collapse rate at other group sizes: counted, foreseen, bounded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.metrics import (
    Spread,
    collapse_at,
    collapse_at_larger,
    collapse_at_smaller,
    expected_collapse,
    wilson_interval,
)
from rlvitals.metrics.smaller_groups import collapse_bounds

Counts = dict[int, list[int]]

# k = [0, 0, 3, 8, 1, 8, 7, 0] correct of N = 8.
GOLDEN: Counts = {8: [3, 1, 0, 1, 0, 0, 0, 1, 2]}
rows = st.lists(st.integers(0, 30), min_size=9, max_size=9).filter(any)


def draw(source: np.random.Generator, rates: np.ndarray, n: int = 8) -> Counts:
    """Draw a group of n of each rate."""
    return {n: np.bincount(source.binomial(n, rates), minlength=n + 1).tolist()}


def expectations(spread: Spread, *sizes: int) -> Counts:
    """Give the numbers of groups that a hundred million prompts are expected to leave."""
    return {n: np.rint(1e8 * spread.chances(n)).astype(int).tolist() for n in sizes}


def two_points(source: np.random.Generator, groups: int) -> np.ndarray:
    """Draw rates that are .05 or .9 and nothing else."""
    return np.where(source.random(groups) < 0.5, 0.05, 0.9)


@pytest.mark.parametrize(
    ("n", "fail", "passed"), [(2, 0.513393, 0.357143), (4, 0.446429, 0.312500), (8, 0.375, 0.25)]
)
def test_golden_counts(n: int, fail: float, passed: float) -> None:
    """The smaller groups of eight known groups of 8 collapse as often as tabulated."""
    at = collapse_at_smaller(GOLDEN, n)
    assert at.all_fail.value == pytest.approx(fail, abs=5e-7)
    assert at.all_pass.value == pytest.approx(passed, abs=5e-7)
    assert at.rate.value == pytest.approx(fail + passed, abs=1e-6)
    assert (at.n, at.groups, at.left_out, at.exact, at.reliable) == (n, 8, 0, True, True)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_smaller_is_the_share_of_subsets(n: int) -> None:
    """It is the share of the n-subsets of a group of 6 that have one outcome."""
    for c in range(7):
        subsets = list(itertools.combinations([1] * c + [0] * (6 - c), n))
        at = collapse_at_smaller({6: [int(k == c) for k in range(7)]}, n)
        assert at.all_fail.value == pytest.approx(np.mean([sum(s) == 0 for s in subsets]))
        assert at.all_pass.value == pytest.approx(np.mean([sum(s) == n for s in subsets]))


@pytest.mark.parametrize(("n", "p"), [(2, 0.3), (4, 0.05), (7, 0.9), (3, 1.0)])
def test_smaller_is_unbiased(n: int, p: float) -> None:
    """Its expectation over c ~ Binomial(8, p) is (1-p)^n and p^n exactly."""
    each = [collapse_at_smaller({8: [int(k == c) for k in range(9)]}, n) for c in range(9)]
    chance = [math.comb(8, c) * p**c * (1 - p) ** (8 - c) for c in range(9)]
    fail = sum(w * at.all_fail.value for w, at in zip(chance, each, strict=True))
    passed = sum(w * at.all_pass.value for w, at in zip(chance, each, strict=True))
    assert fail == pytest.approx((1 - p) ** n, abs=1e-14)
    assert passed == pytest.approx(p**n, abs=1e-14)


def test_smaller_finds_the_truth_of_a_known_population() -> None:
    """Beta(.4, .6) seen in 40,000 groups of 8: at 2 and 4 within 4 standard errors of the truth."""
    source, truth = np.random.default_rng(0), Spread(0.4, 0.6)
    counts = draw(source, source.beta(0.4, 0.6, 40_000))
    for n in (2, 4):
        at = collapse_at_smaller(counts, n)
        wanted = truth.all_fail(n) + truth.all_pass(n)
        assert abs(at.rate.value - wanted) < 4 * (at.rate.high - at.rate.low) / 2 / 1.96
        assert at.rate.high - at.rate.low < 0.01


def test_the_same_size_is_counted_with_wilson() -> None:
    """At the size at hand the rate is the plain share and the interval is Wilson's."""
    at = collapse_at_smaller({8: [30, 12, 9, 7, 6, 5, 8, 11, 12]}, 8)
    assert at.rate.value == pytest.approx(42 / 100)
    assert at.rate[1:] == pytest.approx(wilson_interval(42, 100), abs=1e-12)
    assert at.all_fail[1:] == pytest.approx(wilson_interval(30, 100), abs=1e-12)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_the_interval_covers_what_it_promises(n: int) -> None:
    """Of 1,000 samples of 60 groups 95 % hold the truth, within 4 standard errors and above."""
    source, truth = np.random.default_rng(1), Spread(0.4, 0.6)
    wanted = truth.all_fail(n) + truth.all_pass(n)
    covered = 0
    for _ in range(1000):
        at = collapse_at_smaller(draw(source, source.beta(0.4, 0.6, 60)), n)
        covered += at.rate.low <= wanted <= at.rate.high
    assert covered / 1000 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 1000)


def test_groups_too_small_are_left_out_and_counted() -> None:
    """A group of 2 says nothing about groups of 4, and the result says that it was not asked."""
    with_pairs = collapse_at_smaller({**GOLDEN, 2: [5, 0, 4]}, 4)
    assert with_pairs.left_out == 9
    assert with_pairs.groups == 8
    assert with_pairs.rate == collapse_at_smaller(GOLDEN, 4).rate


@given(rows, st.integers(1, 8))
def test_smaller_groups_collapse_more(row: list[int], n: int) -> None:
    """The rate falls in n, mirrors with its sides, and lies inside its interval in [0, 1]."""
    at = collapse_at_smaller({8: row}, n)
    for estimate in (at.all_fail, at.all_pass, at.rate):
        assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    if n > 1:
        assert at.rate.value <= collapse_at_smaller({8: row}, n - 1).rate.value + 1e-12
    mirrored = collapse_at_smaller({8: row[::-1]}, n)
    assert mirrored.all_fail == pytest.approx(at.all_pass)
    assert mirrored.rate == pytest.approx(at.rate)


@pytest.mark.parametrize(
    "spread", [Spread(0.4, 0.6), Spread(2, 2), Spread(1, 2, never=0.2), Spread(5, 1, 0.1, 0.3)]
)
def test_larger_foresees_what_is_an_inflated_beta(spread: Spread) -> None:
    """From expected counts of groups of 8 and 6, the rates at 16 and 32 are right to .001."""
    for n in (16, 32):
        at = collapse_at_larger(expectations(spread, 8, 6), n, refits=1)
        assert at.all_fail.value == pytest.approx(spread.all_fail(n), abs=1e-3)
        assert at.all_pass.value == pytest.approx(spread.all_pass(n), abs=1e-3)
        assert at.rate.value == pytest.approx(at.all_fail.value + at.all_pass.value)
        assert at.never is not None
        assert at.never.value == pytest.approx(spread.never, abs=3e-3)
        assert (at.exact, at.reliable, at.reason) == (False, True, "")


def test_larger_gives_the_golden_sides() -> None:
    """Beta(.4, .6) at 16: .21986 fail and .08478 pass."""
    at = collapse_at_larger(expectations(Spread(0.4, 0.6), 8), 16, inflated=False, refits=1)
    assert at.all_fail.value == pytest.approx(0.2198625805, abs=1e-6)
    assert at.all_pass.value == pytest.approx(0.0847757711, abs=1e-6)


def test_larger_intervals_hold_the_truth() -> None:
    """Of 24 samples of 300 groups nearly all intervals at 16 hold the truth: 95 % less 4 SE."""
    source, truth, held = np.random.default_rng(2), Spread(0.4, 0.6), 0
    wanted = truth.all_fail(16) + truth.all_pass(16)
    for seed in range(24):
        counts = draw(source, source.beta(0.4, 0.6, 300))
        at = collapse_at_larger(counts, 16, inflated=False, refits=40, seed=seed)
        held += at.rate.low <= wanted <= at.rate.high
    assert held / 24 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 24)


def test_a_seed_decides_the_interval() -> None:
    """The same counts and seed give the same result to the last digit."""
    counts = {8: [30, 12, 9, 7, 6, 5, 8, 11, 32]}
    first, again, other = (collapse_at_larger(counts, 16, refits=20, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first.rate.value == other.rate.value
    assert first.rate != other.rate


def test_two_points_are_foreseen_badly_and_marked() -> None:
    """The forecast errs by .18, says so, and its bounds hold the truth, which is the lower one."""
    source = np.random.default_rng(3)
    at = collapse_at_larger(draw(source, two_points(source, 3200)), 16, refits=20)
    truth = (0.95**16 + 0.9**16 + 0.1**16 + 0.05**16) / 2
    assert at.rate.value - truth == pytest.approx(0.18, abs=0.03)
    assert not at.reliable
    assert "do not look like the fit" in at.reason
    assert at.bounds[0] == pytest.approx(truth, abs=0.03)
    assert at.bounds[0] - 0.03 < truth < at.bounds[1]


def test_far_beyond_the_groups_seen_is_marked() -> None:
    """Four times the largest group is as far as forecasts were checked."""
    counts = expectations(Spread(0.4, 0.6), 8)
    assert collapse_at_larger(counts, 32, refits=1).reliable
    beyond = collapse_at_larger(counts, 33, refits=1)
    assert not beyond.reliable
    assert "more than 4 times the largest group seen (8)" in beyond.reason


def test_all_groups_collapsed_leave_a_floor() -> None:
    """Of 100 failed groups of 8 at least Wilson's lower end squared fail at 16, come what may."""
    at = collapse_at_larger({8: [100, *[0] * 8]}, 16)
    low, high = wilson_interval(0, 100)
    assert at.all_fail == pytest.approx((1.0, (1 - high) ** 2, 1.0))
    assert at.all_pass == pytest.approx((0.0, 0.0, high))
    assert at.never == pytest.approx((1.0, 0.0, 1.0))
    assert low == 0.0
    assert not at.reliable


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20)), min_size=1, max_size=4),
    st.integers(4, 40),
)
def test_bounds_hold_for_every_spread(points: list[tuple[int, int]], n: int) -> None:
    """Exact expected counts of any rates bound the expected rate at any larger size."""
    scale, rates = 20**4, [Fraction(place, 20) for _, place in points]
    weighed = [(w, p) for (w, _), p in zip(points, rates, strict=True)]
    row = [
        int(scale * sum(w * math.comb(4, c) * p**c * (1 - p) ** (4 - c) for w, p in weighed))
        for c in range(5)
    ]
    low, high = collapse_bounds({4: row}, n)
    truth = sum(w * (p**n + (1 - p) ** n) for w, p in weighed) / sum(w for w, _ in weighed)
    assert low - 1e-12 <= float(truth) <= high + 1e-12


def test_bounds_by_hand() -> None:
    """One rate of 1/2: of groups of 2, 1/4 fail; at 3 an eighth do, and the lower bound says so."""
    low, high = collapse_bounds({2: [1, 2, 1]}, 3)
    assert low == pytest.approx(2 / 8)
    assert high == pytest.approx(2 / 4)
    assert collapse_bounds({2: [0, 5, 0]}, 9) == (0.0, 0.0)
    assert collapse_bounds({2: [5, 0, 0]}, 100_000) == (1.0, 1.0)


def test_expected_collapse_by_hand() -> None:
    """Rates 0, 1/2 and 1 at n = 2: (1 + 1/4 + 0) / 3 on either side."""
    sides = expected_collapse([0.0, 0.5, 1.0], 2)
    assert sides == pytest.approx((1.25 / 3, 1.25 / 3))
    assert sides.rate == pytest.approx(2.5 / 3)
    assert expected_collapse(0.0, 100_000) == (1.0, 0.0)
    assert expected_collapse([0.5], 100_000).rate == 0.0


def test_mean_rates_hide_the_collapse() -> None:
    """Beta(.4, .6) collapses .415 at 8, where the mean rate alone would give .0175."""
    rates = np.random.default_rng(4).beta(0.4, 0.6, 400_000)
    flat = (1 - rates) ** 8 + rates**8
    se = float(flat.std()) / math.sqrt(400_000)
    assert abs(expected_collapse(rates, 8).rate - 0.415489536) < 4 * se
    assert expected_collapse(0.4, 8).rate == pytest.approx(0.0175, abs=5e-5)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 50))
def test_expected_collapse_falls_in_n(rates: list[float], n: int) -> None:
    """It is a chance, 1 for groups of one, and no greater for a greater n than Jensen's floor."""
    here, beyond = expected_collapse(rates, n), expected_collapse(rates, n + 1)
    assert expected_collapse(rates, 1).rate == pytest.approx(1.0)
    assert 0.0 <= beyond.rate <= here.rate + 1e-12 <= 1.0 + 1e-11
    assert here.rate >= expected_collapse(float(np.mean(rates)), n).rate - 1e-12


def test_the_size_decides_between_counting_and_fitting() -> None:
    """Up to the size of most groups it is counted; beyond, or for a few large ones, fitted."""
    assert collapse_at(GOLDEN, 8).exact
    assert not collapse_at(GOLDEN, 9).exact
    lost_a_rollout = {8: [40, 9, 9, 9, 9, 9, 9, 9, 40], 7: [1, 0, 0, 1, 0, 0, 0, 1]}
    assert collapse_at(lost_a_rollout, 8).exact
    assert collapse_at(lost_a_rollout, 8).left_out == 3
    few_large = {4: [437, 95, 89, 62, 117], 8: [1, 0, 0, 0, 1, 0, 0, 0, 0]}
    assert not collapse_at(few_large, 8).exact
    assert collapse_at(few_large, 4) == collapse_at_smaller(few_large, 4)


@pytest.mark.parametrize(
    ("function", "arguments", "options", "message"),
    [
        (collapse_at_smaller, (GOLDEN, 9), {}, "n: no group has 9 rollouts, the largest has 8"),
        (collapse_at_smaller, (GOLDEN, 0), {}, "n: "),
        (collapse_at_smaller, (GOLDEN, 4), {"level": 1.0}, "level: "),
        (collapse_at_smaller, ({}, 4), {}, "counts: "),
        (collapse_at_larger, (GOLDEN, 7), {}, "n: all groups have 8 rollouts or more"),
        (collapse_at_larger, (GOLDEN, 16), {"refits": 0}, "refits: "),
        (collapse_at_larger, ({2: [5, 5, 5]}, 4), {}, "counts: .*inflated=False"),
        (collapse_bounds, (GOLDEN, 7), {}, "n: want 8 or more"),
        (collapse_at, ({8: [0] * 9}, 4), {}, "counts: there are no groups"),
        (expected_collapse, ([], 4), {}, "rates: "),
        (expected_collapse, ([0.5, math.nan], 4), {}, "rates: "),
        (expected_collapse, ([1.5], 4), {}, "rates: "),
        (expected_collapse, ([0.5], 0), {}, "n: "),
    ],
)
def test_impossible_arguments_are_named(
    function: Callable[..., object],
    arguments: tuple[object, ...],
    options: dict[str, object],
    message: str,
) -> None:
    """What cannot be asked raises a ValueError that names the argument."""
    with pytest.raises(ValueError, match=rf"^{message}"):
        function(*arguments, **options)


def test_large_groups_are_no_trouble() -> None:
    """Groups of 50,000 rollouts give exact rates at half the size, and a bound at twice it."""
    row = [0] * 50_001
    row[0], row[1], row[25_000], row[50_000] = 4, 2, 3, 1
    at = collapse_at_smaller({50_000: row}, 25_000)
    assert at.all_fail.value == pytest.approx((4 + 2 * 0.5) / 10)
    assert at.all_pass.value == pytest.approx(0.1)
    low, high = collapse_bounds({50_000: row}, 100_000)
    assert 0.0 < low < high <= 0.5 + 1e-12
