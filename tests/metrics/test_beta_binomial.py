"""The fitted spread of success rates, against scipy, enumeration and known populations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import betaln, gammaln, log_softmax, logsumexp
from scipy.stats import betabinom

from rlvitals.metrics import Spread, fit_beta_binomial
from rlvitals.metrics.mixture import Cells, point_of, spread_at

Rates = Callable[[np.random.Generator, int], np.ndarray]
Counts = dict[int, list[int]]

POPULATIONS: dict[str, Rates] = {
    "Beta(.4, .6)": lambda source, m: source.beta(0.4, 0.6, m),
    "Beta(2, 2)": lambda source, m: source.beta(2, 2, m),
    "20 % impossible": lambda source, m: np.where(
        source.random(m) < 0.2, 0.0, source.beta(1, 2, m)
    ),
    "logit-normal": lambda source, m: 1 / (1 + np.exp(-source.normal(-1, 2, m))),
    "two points": lambda source, m: np.where(source.random(m) < 0.5, 0.05, 0.9),
}
MIXED: Counts = {8: [5, 3, 2, 1, 1, 1, 2, 3, 7], 5: [2, 1, 0, 1, 2, 4]}


def draw(source: np.random.Generator, rates: Rates, groups: int, n: int = 8) -> Counts:
    """Draw groups of n of a population."""
    c = source.binomial(n, rates(source, groups))
    return {n: np.bincount(c, minlength=n + 1).tolist()}


def collapse(spread: Spread, n: int) -> float:
    """Give the collapse rate at n that a spread foresees."""
    return spread.all_fail(n) + spread.all_pass(n)


def scipy_optimum(counts: Counts, *, inflated: bool) -> float:
    """Find the highest log likelihood by a search without derivatives, from three starts."""

    def loss(at: np.ndarray) -> float:
        alpha, beta = np.exp(np.clip(at[:2], -15, 15))
        logits = np.array([0.0, *at[2:4]]) if inflated else np.array([0.0, -np.inf, -np.inf])
        weights, total = log_softmax(logits), 0.0
        for n, row in counts.items():
            c = np.arange(n + 1)
            choose = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
            parts = np.full((3, n + 1), -np.inf)
            parts[0] = weights[0] + choose + betaln(alpha + c, beta + n - c) - betaln(alpha, beta)
            parts[1, 0], parts[2, n] = weights[1], weights[2]
            total += float(np.array(row) @ logsumexp(parts, axis=0))
        return -total

    starts = [(-1, -1, -2, -2), (1, 1, -1, -3), (0, 1, -3, -1)]
    options = {"maxiter": 2000, "maxfev": 2000, "xatol": 1e-6, "fatol": 1e-9}
    size = 4 if inflated else 2
    return -min(
        minimize(loss, start[:size], method="Nelder-Mead", options=options).fun for start in starts
    )


@pytest.mark.parametrize("inflated", [True, False])
@pytest.mark.parametrize(
    "counts",
    [
        MIXED,
        {8: [30, 12, 9, 7, 6, 5, 8, 11, 32]},
        {8: [287, 95, 60, 41, 33, 29, 35, 40, 127]},
        {4: [437, 95, 89, 62, 117]},
        {16: [90, *[3] * 7, 2, *[1] * 7, 10]},
        {8: [120, 70, 25, 4, 1, 9, 40, 90, 80]},
        {8: [0, 2, 5, 9, 12, 8, 6, 1, 0]},
    ],
)
def test_no_search_finds_a_higher_likelihood(counts: Counts, inflated: bool) -> None:
    """The likelihood is at least that of the best of three searches by scipy, to 1e-5."""
    fit = fit_beta_binomial(counts, inflated=inflated)
    assert fit.log_likelihood >= scipy_optimum(counts, inflated=inflated) - 1e-5


@pytest.mark.parametrize("at", [[0.3, 0.4, -1.0, -0.5], [-2.0, 3.0, -6.0, 1.0], [1.0, -2.0, 0, 0]])
def test_derivatives_are_exact(at: list[float]) -> None:
    """Gradient and second derivatives agree with central differences."""
    cells, step, here = Cells.from_counts(MIXED), 1e-5, np.array(at)
    slopes = cells.slopes(here)
    assert slopes.value == pytest.approx(cells.log_likelihood(here), rel=1e-13)
    for i, move in enumerate(step * np.eye(4)):
        up, down = cells.slopes(here + move), cells.slopes(here - move)
        assert slopes.gradient[i] == pytest.approx((up.value - down.value) / 2 / step, abs=1e-6)
        bent = (up.gradient - down.gradient) / 2 / step
        assert slopes.curvature[i] == pytest.approx(bent, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 8, 33])
def test_chances_are_those_of_scipy(n: int) -> None:
    """The three parts mix to known chances, which add up to 1."""
    spread = Spread(0.4, 1.7, never=0.2, always=0.1)
    wanted = 0.7 * betabinom.pmf(np.arange(n + 1), n, 0.4, 1.7)
    wanted[0] += 0.2
    wanted[n] += 0.1
    chances = spread.chances(n)
    assert chances == pytest.approx(wanted, rel=1e-10)
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    assert spread.all_fail(n) == pytest.approx(chances[0], rel=1e-12)
    assert spread.all_pass(n) == pytest.approx(chances[n], rel=1e-12)


def test_exact_expectations_give_the_parameters_back() -> None:
    """Fitted to ten million groups in just the expected numbers, the truth comes out."""
    truth = Spread(0.7, 1.9, never=0.15, always=0.05)
    counts = {n: np.rint(1e7 * truth.chances(n)).astype(int).tolist() for n in (8, 6)}
    fit = fit_beta_binomial(counts)
    assert fit.spread.alpha == pytest.approx(0.7, rel=2e-3)
    assert fit.spread.beta == pytest.approx(1.9, rel=2e-3)
    assert fit.spread.never == pytest.approx(0.15, abs=1e-3)
    assert fit.spread.always == pytest.approx(0.05, abs=1e-3)
    assert fit.reliable
    plain = {8: np.rint(1e7 * Spread(0.4, 0.6).chances(8)).astype(int).tolist()}
    spread = fit_beta_binomial(plain, inflated=False).spread
    assert (spread.alpha, spread.beta) == pytest.approx((0.4, 0.6), rel=1e-4)
    assert (spread.never, spread.always) == (0.0, 0.0)


# Mean error of the forecast at 16 and 32 from 3,200 groups of 8, over many seeds.
@pytest.mark.parametrize(
    ("population", "inflated", "errors", "within"),
    [
        ("Beta(.4, .6)", True, (0.0, 0.0), 0.012),
        ("Beta(.4, .6)", False, (0.0, 0.0), 0.005),
        ("Beta(2, 2)", True, (0.0, 0.0), 0.008),
        ("Beta(2, 2)", False, (0.0, 0.0), 0.003),
        ("20 % impossible", True, (0.0, 0.0), 0.012),
        ("20 % impossible", False, (-0.037, -0.071), 0.005),
        ("logit-normal", False, (0.015, 0.025), 0.005),
        ("two points", True, (0.18, 0.30), 0.01),
        ("two points", False, (0.18, 0.30), 0.01),
    ],
)
def test_errors_of_forecasts_are_those_of_the_table(
    population: str, inflated: bool, errors: tuple[float, float], within: float
) -> None:
    """Smooth spreads are foreseen; what is no inflated Beta errs by the known amount."""
    source, rates = np.random.default_rng(6), POPULATIONS[population]
    many = rates(source, 1_000_000)
    found = np.zeros(2)
    for _ in range(20):
        fit = fit_beta_binomial(draw(source, rates, 3200), inflated=inflated)
        found += [collapse(fit.spread, n) for n in (16, 32)]
    truth = [float((many**n + (1 - many) ** n).mean()) for n in (16, 32)]
    assert found / 20 - truth == pytest.approx(errors, abs=within)


@pytest.mark.parametrize(("groups", "least"), [(100, 0.9), (800, 1.0), (3200, 1.0)])
def test_two_points_are_caught(groups: int, least: float) -> None:
    """Prompts of .05 and .9 with none between are called no fit, from 100 groups of 8 on."""
    source = np.random.default_rng(7)
    fits = [fit_beta_binomial(draw(source, POPULATIONS["two points"], groups)) for _ in range(20)]
    assert np.mean([not fit.reliable for fit in fits]) >= least


def test_plain_beta_is_doubted_where_prompts_are_impossible() -> None:
    """Without inflation the test sees 20 % impossible prompts; with it there is none to see."""
    source = np.random.default_rng(8)
    counts = draw(source, POPULATIONS["20 % impossible"], 3200)
    plain, inflated = (fit_beta_binomial(counts, inflated=flag) for flag in (False, True))
    assert not plain.reliable
    assert "do not look like the fit" in plain.reason
    assert (inflated.reliable, inflated.reason) == (True, "")
    assert inflated.spread.never == pytest.approx(0.2, abs=0.06)


@pytest.mark.parametrize("population", ["Beta(.4, .6)", "Beta(2, 2)", "20 % impossible"])
def test_a_right_fit_is_seldom_doubted(population: str) -> None:
    """Of 60 samples of a right population at most 5 % + 4 SE, 16 %, are called no fit."""
    source, rates = np.random.default_rng(9), POPULATIONS[population]
    fits = [fit_beta_binomial(draw(source, rates, 600)) for _ in range(60)]
    assert np.mean([not fit.reliable for fit in fits]) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)


def test_degrees_of_freedom_are_honest() -> None:
    """Nine full cells leave 8, less the parameters that are in use."""
    even = {8: [200] * 9}
    plain = fit_beta_binomial(even, inflated=False)
    assert plain.test.df == 8 - 2
    inflated = fit_beta_binomial({8: [900, 200, 200, 200, 200, 200, 200, 200, 900]})
    assert inflated.spread.never > 0 < inflated.spread.always
    assert inflated.test.df == 8 - 4
    nobody_in_the_ends = fit_beta_binomial({8: [5, 100, 300, 500, 600, 500, 300, 100, 5]})
    assert (nobody_in_the_ends.spread.never, nobody_in_the_ends.spread.always) == (0.0, 0.0)
    assert nobody_in_the_ends.test.df == 8 - 2


def test_too_few_outcomes_to_test_is_a_doubt() -> None:
    """Groups of 4 fit four parameters exactly, which proves nothing; neither do five groups."""
    exact = fit_beta_binomial({4: [437, 95, 89, 62, 117]})
    assert exact.test.p_value is None
    assert not exact.reliable
    assert "to test the fit" in exact.reason
    assert 4 * 800 * exact.spread.chances(4) == pytest.approx(
        [4 * g for g in (437, 95, 89, 62, 117)], rel=1e-4
    )
    assert not fit_beta_binomial({8: [1, 1, 1, 0, 0, 1, 0, 0, 1]}).reliable


@pytest.mark.parametrize("inflated", [True, False])
@pytest.mark.parametrize(
    ("counts", "never", "always"),
    [
        ({8: [100, *[0] * 8]}, 1.0, 0.0),
        ({8: [*[0] * 8, 1]}, 0.0, 1.0),
        ({8: [30, *[0] * 7, 10]}, 0.75, 0.25),
        ({4: [2, 0, 0, 0, 1], 8: [1, *[0] * 8]}, 0.75, 0.25),
    ],
)
def test_without_a_mixed_group_the_ends_hold_everything(
    counts: Counts, never: float, always: float, inflated: bool
) -> None:
    """All groups collapsed is a defined answer, marked as one that tells nothing."""
    fit = fit_beta_binomial(counts, inflated=inflated)
    assert (fit.spread.never, fit.spread.always, fit.spread.between) == (never, always, 0.0)
    assert (fit.spread.alpha, fit.spread.beta) == (1.0, 1.0)
    assert not fit.reliable
    assert fit.reason.startswith("no group is mixed")
    assert collapse(fit.spread, 64) == 1.0


@pytest.mark.parametrize(
    "counts",
    [
        {8: [0, 0, 0, 0, 1, 0, 0, 0, 0]},  # one group
        {8: [0, 0, 0, 0, 500, 0, 0, 0, 0]},  # no variation, less than chance itself would give
        {8: [500, 1, *[0] * 7]},
        {8: [*[0] * 7, 1, 900]},
        {8: [1, 0, 0, 0, 1, 0, 0, 0, 1]},
        {65_536: [3, *[0] * 9_999, 2, *[0] * 55_535, 1]},
    ],
)
def test_scant_counts_give_defined_numbers(counts: Counts) -> None:
    """However little there is to fit, the answer is finite, a spread, and not relied on."""
    fit = fit_beta_binomial(counts)
    spread = fit.spread
    assert min(spread.alpha, spread.beta) > 0
    assert math.isfinite(spread.alpha + spread.beta)
    assert min(spread.never, spread.always) >= 0
    assert spread.never + spread.always <= 1
    assert math.isfinite(fit.log_likelihood)
    assert 0 <= collapse(spread, 16) <= 1 + 1e-12
    assert not fit.reliable


def test_one_rate_for_all_is_the_binomial() -> None:
    """Prompts of equal rates need no spread: the chances come down to the binomial's."""
    counts = draw(np.random.default_rng(10), lambda _, m: np.full(m, 0.3), 5000)
    spread = fit_beta_binomial(counts).spread
    assert spread.alpha / (spread.alpha + spread.beta) == pytest.approx(0.3, abs=0.02)
    assert collapse(spread, 16) == pytest.approx(0.7**16 + 0.3**16, abs=3e-3)


@pytest.mark.parametrize(
    ("counts", "inflated", "message"),
    [
        ({}, True, "counts: there are no groups"),
        ({8: [0] * 9}, True, "counts: there are no groups"),
        ({1: [3, 4]}, True, "counts: groups of up to 1 .*; want inflated=False"),
        ({1: [3, 4]}, False, "counts: groups of up to 1 rollouts have too few"),
        ({3: [3, 4, 1, 1]}, True, "counts: groups of up to 3 .*; want inflated=False"),
        ({0: [3]}, True, r"counts\.0: "),
        ({8: [1, 2]}, True, r"counts\.8: want 9 numbers"),
        ({2: [1, -2, 1]}, False, r"counts\.2: "),
    ],
)
def test_what_cannot_be_fitted_is_named(counts: Counts, inflated: bool, message: str) -> None:
    """No groups, too small groups and impossible counts raise a ValueError with a way out."""
    with pytest.raises(ValueError, match=f"^{message}"):
        fit_beta_binomial(counts, inflated=inflated)


def test_small_groups_take_the_plain_fit() -> None:
    """Groups of 2 and 3 fit a Beta, not more."""
    assert fit_beta_binomial({2: [50, 30, 20]}, inflated=False).spread.between == 1.0
    assert fit_beta_binomial({3: [50, 30, 20, 40]}, inflated=False).spread.between == 1.0


def test_points_and_spreads_translate() -> None:
    """A point read from a spread reads back as that spread; nobody becomes a few in a thousand."""
    spread = Spread(0.3, 4.0, never=0.2, always=0.05)
    again = spread_at(point_of(spread))
    assert (again.alpha, again.beta, again.never, again.always) == pytest.approx(
        (0.3, 4.0, 0.2, 0.05), rel=1e-12
    )
    assert spread_at(point_of(Spread(0.3, 4.0))).never == pytest.approx(5e-3, rel=0.02)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 60), min_size=9, max_size=9).filter(any), st.booleans())
def test_any_counts_give_a_spread(row: list[int], inflated: bool) -> None:
    """It settles on chances, mirrors when correct and failed change places, and beats even odds."""
    fit = fit_beta_binomial({8: row}, inflated=inflated)
    mirrored = fit_beta_binomial({8: row[::-1]}, inflated=inflated)
    assert "settle" not in fit.reason
    assert fit.log_likelihood == pytest.approx(mirrored.log_likelihood, abs=1e-5)
    even = np.full(9, 1 / 9)
    assert fit.log_likelihood >= float(np.array(row) @ np.log(even)) - 1e-9
    falling = [collapse(fit.spread, n) for n in (1, 2, 8, 64, 100_000)]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == pytest.approx(1.0, abs=1e-12)
