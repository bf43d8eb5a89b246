"""Tail-miss against published, brute-forced and hand-computed values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import peak_group_size, realised_tail_miss, tail_miss_probability
from rlvitals.metrics.posterior import expected_tail_miss
from rlvitals.metrics.tail_miss import mean_tail_miss, tail_hit_probability

unit = st.floats(0, 1)

# k = [0, 0, 3, 8, 1, 8, 7, 0] correct of N = 8.
GOLDEN = {8: [3, 1, 0, 1, 0, 0, 0, 1, 2]}

PEAKS = [
    (0.8, {0.01: (15, 0.856), 0.05: (8, 0.610), 0.1: (6, 0.467), 0.2: (4, 0.328)}),
    (0.5, {0.01: (8, 0.953), 0.05: (6, 0.832), 0.1: (5, 0.724), 0.2: (4, 0.568)}),
    (0.3, {0.01: (14, 0.952), 0.05: (9, 0.832), 0.1: (8, 0.726), 0.2: (6, 0.572)}),
    (0.2, {0.01: (21, 0.950), 0.05: (15, 0.825), 0.1: (12, 0.716), 0.2: (9, 0.558)}),
    (0.05, {0.01: (91, 0.946), 0.05: (62, 0.815), 0.1: (50, 0.701), 0.2: (40, 0.540)}),
]
PEAK_CELLS = [(mu, rho, *cell) for mu, row in PEAKS for rho, cell in row.items()]


@pytest.mark.parametrize(
    ("n", "mu", "tau", "value"),
    [
        (8, 0.5, 0.05, 0.6578326688),
        (8, 0.3, 0.03, 0.7260671065),
        (16, 0.3, 0.015, 0.7818756149),
        (32, 0.2, 0.002, 0.9371526073),
        (4, 0.8, 0.16, 0.32850),
        (8, 0.05, 0.005, 0.29727),
        (131_072, 0.64, 6.3e-5, 2.592296724e-4),
    ],
)
def test_tail_miss_golden(n: int, mu: float, tau: float, value: float) -> None:
    """Golden values of F-GRPO Lemma 3.1 hold to every digit given."""
    digits = 5e-6 if round(value, 5) == value else 2e-10 * value
    assert tail_miss_probability(n, mu, tau) == pytest.approx(value, abs=digits)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize(("mu", "tau"), [(0.5, 0.05), (0.3, 0.3), (1.0, 0.2), (0.9, 0.0)])
def test_tail_miss_brute_force(n: int, mu: float, tau: float) -> None:
    """It is the mass of all outcomes that are mixed and hold no rare correct answer."""
    mass = {"rare": tau, "common": mu - tau, "wrong": 1 - mu}
    groups = [(g, math.prod(mass[kind] for kind in g)) for g in itertools.product(mass, repeat=n)]
    mixed = [(g, p) for g, p in groups if "wrong" in g and set(g) != {"wrong"}]
    missed = sum(p for g, p in mixed if "rare" not in g)
    hit = sum(p for g, p in mixed if "rare" in g)
    assert tail_miss_probability(n, mu, tau) == pytest.approx(missed, abs=1e-12)
    assert tail_hit_probability(n, mu, tau) == pytest.approx(hit, abs=1e-12)


@given(st.integers(1, 200_000), unit, unit)
def test_tail_miss_is_a_probability(n: int, mu: float, share: float) -> None:
    """No size or mass, however extreme, leaves [0, 1] or gives a warning."""
    miss, hit = (p(n, mu, mu * share) for p in (tail_miss_probability, tail_hit_probability))
    assert 0.0 <= miss <= 1.0
    assert 0.0 <= hit <= 1.0
    assert miss + hit == pytest.approx(1 - mu**n - (1 - mu) ** n, abs=1e-9)


def test_tail_miss_over_sizes() -> None:
    """Arrays of group sizes give a curve; it starts at 0, as one rollout is never mixed."""
    curve = tail_miss_probability(np.arange(1, 65), 0.5, 0.05)
    assert curve.shape == (64,)
    assert curve[0] == pytest.approx(0.0, abs=1e-15)


@given(st.floats(0.02, 0.98), st.floats(0.01, 0.95))
def test_tail_miss_has_one_peak(mu: float, share: float) -> None:
    """Over n it rises, then falls: a dip is never followed by a rise."""
    steps = np.diff(tail_miss_probability(np.arange(1, 400), mu, mu * share))
    signs = np.sign(steps[np.abs(steps) > 1e-13])
    assert (np.diff(signs) <= 0).all()


@pytest.mark.parametrize(
    ("n", "mu", "tau", "field"),
    [
        (0, 0.5, 0.1, "n"),
        (8, 0.5, 0.6, "mu, tau"),
        (8, 1.5, 0.1, "mu, tau"),
        (8, 0.5, -0.1, "mu, tau"),
        (8, float("nan"), 0.1, "mu, tau"),
    ],
)
def test_tail_miss_refuses_impossible_masses(n: int, mu: float, tau: float, field: str) -> None:
    """Masses that no policy can have are named."""
    for probability in (tail_miss_probability, tail_hit_probability):
        with pytest.raises(ValueError, match=rf"^{field}: "):
            probability(n, mu, tau)


@pytest.mark.parametrize(("mu", "rho", "size", "peak"), PEAK_CELLS)
def test_peak_group_size_golden(mu: float, rho: float, size: int, peak: float) -> None:
    """The size of greatest risk and the risk there agree with the table."""
    assert peak_group_size(mu, mu * rho) == size
    assert tail_miss_probability(size, mu, mu * rho) == pytest.approx(peak, abs=6e-4)


@given(st.floats(0.02, 0.98), st.floats(0.01, 0.9))
def test_peak_group_size_is_the_peak(mu: float, share: float) -> None:
    """No group size has a greater risk than the peak."""
    size = peak_group_size(mu, mu * share)
    curve = tail_miss_probability(np.arange(1, 4 * size + 64), mu, mu * share)
    assert curve[size - 1] == pytest.approx(curve.max(), abs=1e-12)


def _by_hand(mu: float, tau: float) -> float:
    m = max(mu - tau, 1 - mu)
    return math.log(math.log(1 / m) / tau) / math.log((1 - tau) / m)


def test_peak_group_size_by_hand() -> None:
    """The formula of the docstring is off by less than 1.2 in the table, and by 1.6 where it says.

    Worst is mu = .5, where all-right and all-wrong groups matter alike.
    """
    off = [abs(_by_hand(mu, mu * rho) - size) for mu, rho, size, _ in PEAK_CELLS]
    assert max(off) < 1.2
    for mu, rho in itertools.product(np.linspace(0.01, 0.9, 60), np.geomspace(1e-4, 0.5, 40)):
        assert abs(_by_hand(mu, mu * rho) - peak_group_size(mu, mu * rho)) < 1.6


def test_peak_group_size_at_the_edges() -> None:
    """A group that is never mixed and missing at once has no peak but 1; no tail has none."""
    assert peak_group_size(1.0, 0.3) == peak_group_size(0.4, 0.4) == 1
    assert peak_group_size(1e-6, 1e-7) > 10**6
    with pytest.raises(ValueError, match=r"^tau: "):
        peak_group_size(0.5, 0.0)


def test_realised_tail_miss_golden() -> None:
    """K = [0,0,3,8,1,8,7,0] of N = 8 at rho = .1: (.9^3 + .9 + .9^7) / 8 = .263412."""
    missed = realised_tail_miss(8, [0, 0, 3, 8, 1, 8, 7, 0])
    assert missed.mean() == pytest.approx(0.263412, abs=5e-7)
    assert realised_tail_miss(8, 3) == pytest.approx(0.729)
    for wrong in (1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match=r"^rho: "):
            realised_tail_miss(8, 3, rho=wrong)
    with pytest.raises(ValueError, match=r"^c: "):
        realised_tail_miss(8, 9)


@pytest.mark.parametrize(("n", "mu", "rho"), [(8, 0.5, 0.1), (16, 0.3, 0.05), (4, 0.8, 0.2)])
def test_realised_tail_miss_is_unbiased(n: int, mu: float, rho: float) -> None:
    """Its expectation over c ~ Binomial(n, mu) is Lemma 3.1 exactly."""
    c = np.arange(n + 1)
    chance = np.array([math.comb(n, int(k)) for k in c]) * mu**c * (1 - mu) ** (n - c)
    expected = float(chance @ realised_tail_miss(n, c, rho))
    assert expected == pytest.approx(tail_miss_probability(n, mu, rho * mu), rel=1e-12)


def test_mean_of_a_batch() -> None:
    """Eight groups have the mean .263412 and a standard error of sd / sqrt 8."""
    batch = mean_tail_miss(GOLDEN)
    each = realised_tail_miss(8, [0, 0, 3, 8, 1, 8, 7, 0])
    assert batch.value == pytest.approx(0.263412, abs=5e-7)
    assert batch.se == pytest.approx(each.std(ddof=1) / math.sqrt(8))
    assert batch.count == 8
    assert 0 < batch.low < batch.value < batch.high < 1


def _counts(n: int, groups: int, seed: int) -> dict[int, list[int]]:
    """Draw groups of n from prompts with mu ~ Beta(.6, .9)."""
    source = np.random.default_rng(seed)
    c = source.binomial(n, source.beta(0.6, 0.9, groups))
    return {n: np.bincount(c, minlength=n + 1).tolist()}


# What a simulation of some 200,000 groups gave, so to be met within its noise of .0006.
SIMULATED = [(8, 0.05, 0.57392), (8, 0.1, 0.47837), (8, 0.3, 0.23762), (4, 0.1, 0.42712)]


@pytest.mark.parametrize(("size", "rho", "simulated"), SIMULATED)
def test_batches_find_the_mean_over_prompts(size: int, rho: float, simulated: float) -> None:
    """Over mu ~ Beta(.6, .9) it is unbiased: 200,000 groups of 8 agree within 4 sigmas.

    So they do about groups of 4, and the truth is what others simulated, within 4 sigmas of that.
    """
    truth = expected_tail_miss(size, 0.6, 0.9, rho)
    assert truth == pytest.approx(simulated, abs=4 * 6e-4)
    batch = mean_tail_miss(_counts(8, 200_000, seed=1), rho, size=size)
    assert abs(batch.value - truth) < 4 * batch.se


def test_standard_error_of_one_step() -> None:
    """128 groups of 8 leave about .03, and the interval holds the truth in 95 % of steps.

    2,000 steps: 4 sigmas are .0195, and a point on top, as the interval is not exact.
    """
    truth = expected_tail_miss(8, 0.6, 0.9, 0.1)
    steps = [mean_tail_miss(_counts(8, 128, seed)) for seed in range(2000)]
    assert np.mean([step.se for step in steps]) == pytest.approx(0.033, abs=0.003)
    held = np.mean([step.low <= truth <= step.high for step in steps])
    assert held == pytest.approx(0.95, abs=0.0295)


@pytest.mark.parametrize(("n", "size"), [(5, 3), (6, 2), (6, 6), (7, 1), (8, 4)])
def test_what_if_is_the_mean_over_all_subsets(n: int, size: int) -> None:
    """It is the realised risk of every subset of that size, counted one by one."""
    for c in range(n + 1):
        group = [1] * c + [0] * (n - c)
        subsets = [sum(subset) for subset in itertools.combinations(group, size)]
        exact = np.mean(realised_tail_miss(size, subsets, 0.3))
        row = [0] * (n + 1)
        row[c] = 2
        assert mean_tail_miss({n: row}, 0.3, size=size).value == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize(("n", "c", "size"), [(2000, 900, 700), (65_536, 40, 4096)])
def test_what_if_keeps_digits_in_large_groups(n: int, c: int, size: int) -> None:
    """It agrees with exact fractions to 1e-9, relative, where the hypergeometric has many terms."""
    row = [0] * (n + 1)
    row[c] = 1
    kept = Fraction(99, 100)
    shares = [
        Fraction(math.comb(c, j) * math.comb(n - c, size - j)) * kept**j
        for j in range(1, min(c, size - 1) + 1)
    ]
    exact = sum(shares) / math.comb(n, size)
    assert mean_tail_miss({n: row}, 0.01, size=size).value == pytest.approx(float(exact), rel=1e-9)


def test_what_if_at_the_edges() -> None:
    """One rollout is never mixed, all rollouts change nothing, more than all are refused."""
    assert mean_tail_miss(GOLDEN, size=1).value == 0.0
    assert mean_tail_miss(GOLDEN, size=8) == mean_tail_miss(GOLDEN)
    for wrong in (0, 9):
        with pytest.raises(ValueError, match=r"^size: "):
            mean_tail_miss(GOLDEN, size=wrong)
    with pytest.raises(ValueError, match=r"^counts: "):
        mean_tail_miss({})
    with pytest.raises(ValueError, match=r"^rho: "):
        mean_tail_miss(GOLDEN, 2.0)


def test_one_group_has_a_risk_and_no_standard_error() -> None:
    """A single group is no sample of groups: NaN, undefined, and an interval of (0, 1)."""
    alone = mean_tail_miss({8: [0, 0, 0, 1, 0, 0, 0, 0, 0]})
    assert alone.value == pytest.approx(0.729)
    assert math.isnan(alone.se)
    assert (alone.low, alone.high) == (0.0, 1.0)


def test_a_collapsed_batch_has_no_risk() -> None:
    """Groups that teach nothing miss nothing; 20 of them bound the risk below 20 %."""
    batch = mean_tail_miss({8: [12, *[0] * 7, 8]})
    assert (batch.value, batch.se, batch.low) == (0.0, 0.0, 0.0)
    assert 0 < batch.high < 0.2
