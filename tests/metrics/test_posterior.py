"""Tail-miss over Beta and Dirichlet posteriors, against exact sums and simulation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rlvitals.metrics import tail_miss_probability
from rlvitals.metrics.posterior import (
    dirichlet_tail_miss,
    expected_tail_miss,
    mean_posterior_tail_miss,
    posterior_tail_miss,
)
from rlvitals.metrics.tail_miss import mean_tail_miss

GOLDEN = {8: [3, 1, 0, 1, 0, 0, 0, 1, 2]}
shape = st.floats(1e-6, 1e6)


def _rising(x: Fraction, n: int) -> Fraction:
    return math.prod((x + i for i in range(n)), start=Fraction(1))


def _exact(n: int, alpha: Fraction, beta: Fraction, rho: Fraction) -> float:
    """Sum the mean of (1-rho)^c over mixed groups in fractions."""
    total = sum(
        math.comb(n, c) * _rising(alpha, c) * _rising(beta, n - c) * (1 - rho) ** c
        for c in range(1, n)
    )
    return float(total / _rising(alpha + beta, n))


@pytest.mark.parametrize(
    ("n", "alpha", "beta", "rho"),
    [
        (2, "1/2", "1/2", "1/10"),
        (8, "3/5", "9/10", "1/10"),
        (64, "1/100", "1/50", "1/3"),
        (64, "1/1000000", "7", "1/10"),
        (200, "7/2", "11/2", "1/20"),
    ],
)
def test_beta_form_is_exact(n: int, alpha: str, beta: str, rho: str) -> None:
    """It agrees with fractions to 1e-12, relative, for small and for tiny parameters."""
    given_ = [Fraction(text) for text in (alpha, beta, rho)]
    assert expected_tail_miss(n, *map(float, given_)) == pytest.approx(
        _exact(n, *given_), rel=1e-12
    )


def _first_term(n: int, alpha: float, beta: float, rho: float) -> float:
    """Integrate E[(1 - rho p)^n] over p = x^(1/alpha), which takes the peak at 0 away."""
    # Substituting twice puts the mass near p = 1/(n rho) on a plain grid of log p.
    step = 1e-3
    logit = np.arange(-60 / alpha, 60 / beta, step)
    log_p, log_q = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
    log_weight = alpha * log_p + beta * log_q - special.betaln(alpha, beta)
    return float(step * np.exp(log_weight + n * np.log1p(-rho * np.exp(log_p))).sum())


@pytest.mark.parametrize(
    ("n", "alpha", "beta", "rho"),
    [
        (10_000, 0.6, 0.9, 0.1),
        (10_000, 3.5, 5.5, 0.01),
        (100_000, 0.6, 0.9, 0.1),
        (100_000, 0.6, 0.9, 0.001),
        (100_000, 40.0, 0.5, 1e-4),
    ],
)
def test_large_groups_agree_with_an_integral(n: int, alpha: float, beta: float, rho: float) -> None:
    """At n = 1e4 and 1e5 a trapezium rule over log-odds of p gives the same to 1e-9.

    The rule converges geometrically on the whole line, so a step of 1e-3 is exact to rounding.
    """
    passed = math.exp(special.betaln(alpha + n, beta) - special.betaln(alpha, beta))
    failed = math.exp(special.betaln(alpha, beta + n) - special.betaln(alpha, beta))
    integral = _first_term(n, alpha, beta, rho) - (1 - rho) ** n * passed - failed
    value = expected_tail_miss(n, alpha, beta, rho)
    assert value == pytest.approx(integral, abs=1e-9)


@pytest.mark.parametrize("n", [8, 64, 1000])
def test_gauss_jacobi_agrees_while_it_can(n: int) -> None:
    """64 nodes integrate E[(1 - rho p)^n] to 1e-12 up to n rho = 100; the sum has no limit."""
    nodes, weights = special.roots_jacobi(64, 0.9 - 1, 0.6 - 1)
    quadrature = float(weights @ (1 - 0.1 * (nodes + 1) / 2) ** n) / weights.sum()
    passed = special.beta(0.6 + n, 0.9) / special.beta(0.6, 0.9) * 0.9**n
    failed = special.beta(0.6, 0.9 + n) / special.beta(0.6, 0.9)
    assert expected_tail_miss(n, 0.6, 0.9) == pytest.approx(quadrature - passed - failed, abs=1e-12)


@pytest.mark.parametrize("n", [100_000, 131_072])
def test_a_sure_rate_is_lemma_3_1(n: int) -> None:
    """A Beta of a huge weight is one rate, and gives what the Lemma gives for it."""
    told = expected_tail_miss(n, 0.64e12, 0.36e12, 6.3e-5 / 0.64)
    assert told == pytest.approx(tail_miss_probability(n, 0.64, 6.3e-5), rel=1e-5)


@given(st.integers(1, 3000), shape, shape, st.floats(0, 1))
def test_beta_form_is_a_probability(n: int, alpha: float, beta: float, rho: float) -> None:
    """No parameter leaves [0, 1], and a rarer tail is missed more often."""
    value = expected_tail_miss(n, alpha, beta, rho)
    assert 0.0 <= value <= expected_tail_miss(n, alpha, beta, rho / 2) + 1e-12
    assert expected_tail_miss(n, alpha, beta, rho / 2) <= 1.0 + 1e-12


def test_beta_form_at_the_edges() -> None:
    """One rollout is never mixed; without a tail every mixed group misses it; ends never mix."""
    assert expected_tail_miss(1, 0.6, 0.9) == 0.0
    assert expected_tail_miss(2, 1.0, 1.0, 0.0) == pytest.approx(1 / 3)
    assert expected_tail_miss(8, 0.6, 0.9, 1.0) == 0.0
    core = expected_tail_miss(8, 0.6, 0.9)
    assert expected_tail_miss(8, 0.6, 0.9, never=0.25, always=0.25) == pytest.approx(core / 2)
    assert expected_tail_miss(8, 0.6, 0.9, never=0.5, always=0.5) == 0.0


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({"n": 0, "alpha": 1, "beta": 1}, "n"),
        ({"n": 8, "alpha": 0, "beta": 1}, "alpha"),
        ({"n": 8, "alpha": 1, "beta": math.inf}, "beta"),
        ({"n": 8, "alpha": 1, "beta": 1, "rho": 1.5}, "rho"),
        ({"n": 8, "alpha": 1, "beta": 1, "never": 0.7, "always": 0.7}, "never, always"),
    ],
)
def test_beta_form_names_what_cannot_be(given_: dict[str, float], field: str) -> None:
    """Parameters outside their range raise a ValueError that names them."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        expected_tail_miss(**given_)  # type: ignore[arg-type]


def test_posterior_golden() -> None:
    """3 of 8 under Jeffreys' prior: .6673591562, where plugging in 3/8 says .713."""
    assert posterior_tail_miss(8, 3) == pytest.approx(0.6673591562, abs=5e-11)
    assert tail_miss_probability(8, 3 / 8, 0.1 * 3 / 8) == pytest.approx(0.713, abs=5e-4)


def test_plugging_in_is_biased_for_larger_groups() -> None:
    """4 of 8, foreseen for 64: the posterior says .064, the plug-in .038."""
    assert posterior_tail_miss(8, 4, size=64) == pytest.approx(0.064, abs=5e-4)
    assert tail_miss_probability(64, 0.5, 0.05) == pytest.approx(0.038, abs=5e-4)


def test_posterior_takes_any_prior_and_extreme_counts() -> None:
    """A uniform prior adds 1 to each count; none and all of 1e5 correct have their limits.

    With none correct n p ~ Gamma(1/2) for large n, so it is 1.1^-.5 - 2^-.5 for rho = .1.
    """
    uniform = posterior_tail_miss(8, 3, 0.2, alpha=1.0, beta=1.0)
    assert uniform == pytest.approx(expected_tail_miss(8, 4.0, 6.0, 0.2))
    assert posterior_tail_miss(100_000, 0) == pytest.approx(1.1**-0.5 - 2**-0.5, rel=1e-4)
    assert posterior_tail_miss(100_000, 100_000) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match=r"^c: "):
        posterior_tail_miss(8, 9)
    with pytest.raises(ValueError, match=r"^n: "):
        posterior_tail_miss(8, 3, size=0)


def test_mean_over_a_batch() -> None:
    """It is the mean of each group's posterior, with the standard error of that mean."""
    each = [posterior_tail_miss(8, c, size=16) for c in (0, 0, 3, 8, 1, 8, 7, 0)]
    batch = mean_posterior_tail_miss(GOLDEN, 16)
    assert batch.value == pytest.approx(np.mean(each))
    assert batch.se == pytest.approx(np.std(each, ddof=1) / math.sqrt(8))
    assert (batch.count, batch.low < batch.value < batch.high) == (8, True)
    with pytest.raises(ValueError, match=r"^counts: "):
        mean_posterior_tail_miss({}, 16)


@pytest.mark.parametrize("size", [4, 16, 32, 128])
def test_the_right_prior_foresees_any_size(size: int) -> None:
    """With the prompts' own spread as prior 20,000 groups of 8 find the truth within 4 sigmas.

    With Jeffreys' prior the mean leans by several of them, as the docstring warns.
    """
    source = np.random.default_rng(7)
    c = source.binomial(8, source.beta(0.3, 0.9, 20_000))
    counts = {8: np.bincount(c, minlength=9).tolist()}
    truth = expected_tail_miss(size, 0.3, 0.9)
    right = mean_posterior_tail_miss(counts, size, alpha=0.3, beta=0.9)
    assert abs(right.value - truth) < 4 * right.se
    assert abs(mean_posterior_tail_miss(counts, size).value - truth) > 4 * right.se


def test_posterior_and_subsets_tell_the_same_story() -> None:
    """With the right prior, smaller groups are foreseen as the unbiased count has them."""
    source = np.random.default_rng(8)
    c = source.binomial(8, source.beta(0.6, 0.9, 20_000))
    counts = {8: np.bincount(c, minlength=9).tolist()}
    counted = mean_tail_miss(counts, size=4)
    told = mean_posterior_tail_miss(counts, 4, alpha=0.6, beta=0.9)
    assert abs(counted.value - told.value) < 4 * counted.se


def _exact_dirichlet(n: int, rare: Fraction, common: Fraction, wrong: Fraction) -> float:
    mixed = _rising(common + wrong, n) - _rising(common, n) - _rising(wrong, n)
    return float(mixed / _rising(rare + common + wrong, n))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64])
def test_dirichlet_form_is_exact(n: int) -> None:
    """It agrees with rising factorials in fractions to 1e-12, relative."""
    parameters = [Fraction(text) for text in ("1/1000000000", "1/10", "1", "5")]
    for masses in itertools.product(parameters, repeat=3):
        value = dirichlet_tail_miss(n, *map(float, masses))
        assert value == pytest.approx(_exact_dirichlet(n, *masses), rel=1e-12)


def test_dirichlet_golden() -> None:
    """(.1, 3, 5) at 8 is .8522771466, and (1, 1, 1) at 4 exactly a fifth."""
    assert dirichlet_tail_miss(8, 0.1, 3, 5) == pytest.approx(0.8522771466, abs=5e-11)
    assert dirichlet_tail_miss(4, 1, 1, 1) == pytest.approx(0.2, rel=1e-14)


def test_dirichlet_by_simulation() -> None:
    """400,000 draws of the three masses agree within 4 sigmas."""
    masses = np.random.default_rng(9).dirichlet([0.1, 3, 5], 400_000)
    mu = np.minimum(masses[:, 0] + masses[:, 1], 1.0)
    risk = tail_miss_probability(8, mu, np.minimum(masses[:, 0], mu))
    error = risk.std(ddof=1) / math.sqrt(len(risk))
    assert abs(risk.mean() - dirichlet_tail_miss(8, 0.1, 3, 5)) < 4 * error


def test_dirichlet_of_large_groups() -> None:
    """At n = 1e5 it is the closed form of uniform masses, 2 (n-1) / ((n+1) (n+2))."""
    n = 100_000
    assert dirichlet_tail_miss(n, 1, 1, 1) == pytest.approx(
        2 * (n - 1) / ((n + 1) * (n + 2)), rel=1e-11
    )


@given(st.integers(1, 3000), shape, shape, shape)
def test_dirichlet_form_is_a_probability(n: int, rare: float, common: float, wrong: float) -> None:
    """No parameter leaves [0, 1] or gives a warning."""
    assert 0.0 <= dirichlet_tail_miss(n, rare, common, wrong) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("masses", "field"),
    [((0, 1, 1), "rare"), ((1, -1, 1), "common"), ((1, 1, math.nan), "wrong")],
)
def test_dirichlet_names_what_cannot_be(masses: tuple[float, float, float], field: str) -> None:
    """Parameters outside their range raise a ValueError that names them."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        dirichlet_tail_miss(8, *masses)
    with pytest.raises(ValueError, match=r"^n: "):
        dirichlet_tail_miss(0, 1, 1, 1)
