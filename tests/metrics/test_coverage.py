"""Coverage formulas against published, brute-forced and hand-computed values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import (
    pass_at_k,
    peak_group_size,
    realised_tail_miss,
    tail_miss_probability,
)
from rlvitals.metrics.coverage import coverage_table, pass_at_k_table

unit = st.floats(0, 1)


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
    """Both ways of evaluation agree with exact fractions to 1e-13, relative."""
    for k in (1, 2, n // 3, n - 1, n):
        table = pass_at_k_table(n, k)
        for c in (0, 1, 2, n // 2, n - 1, n):
            exact = float(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))
            assert pass_at_k(n, c, k) == pytest.approx(exact, rel=1e-13)
            assert table[c] == pytest.approx(exact, rel=1e-13)


def test_pass_at_k_takes_many_counts() -> None:
    """An array of counts gives an array of the same shape."""
    each = pass_at_k(4, [[0, 1], [1, 4]], 2)
    assert each.tolist() == [[0.0, 0.5], [0.5, 1.0]]


@pytest.mark.parametrize(
    ("n", "c", "k", "field"), [(4, 1, 5, "k"), (4, 1, 0, "k"), (4, 5, 1, "c"), (4, -1, 1, "c")]
)
def test_pass_at_k_refuses_to_extrapolate(n: int, c: int, k: int, field: str) -> None:
    """Beyond n rollouts, or with impossible counts, it says which argument is wrong."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(
    ("n", "mu", "tau", "value"),
    [
        (8, 0.5, 0.05, 0.6578326688),
        (8, 0.3, 0.03, 0.7260671065),
        (16, 0.3, 0.015, 0.7818756149),
        (32, 0.2, 0.002, 0.9371526073),
        (131_072, 0.64, 6.3e-5, 2.592296724e-4),
    ],
)
def test_tail_miss_golden(n: int, mu: float, tau: float, value: float) -> None:
    """Golden values of F-GRPO Lemma 3.1 hold to every digit given."""
    assert tail_miss_probability(n, mu, tau) == pytest.approx(value, rel=2e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize(("mu", "tau"), [(0.5, 0.05), (0.3, 0.3), (1.0, 0.2), (0.9, 0.0)])
def test_tail_miss_brute_force(n: int, mu: float, tau: float) -> None:
    """It is the mass of all outcomes that are mixed and hold no rare correct answer."""
    mass = {"rare": tau, "common": mu - tau, "wrong": 1 - mu}
    missed = sum(
        math.prod(mass[kind] for kind in group)
        for group in itertools.product(mass, repeat=n)
        if "rare" not in group and {"wrong", "common"} <= set(group)
    )
    assert tail_miss_probability(n, mu, tau) == pytest.approx(missed, abs=1e-12)


@given(st.integers(1, 200_000), unit, unit)
def test_tail_miss_is_a_probability(n: int, mu: float, share: float) -> None:
    """No size or mass, however extreme, leaves [0, 1] or gives a warning."""
    assert 0.0 <= tail_miss_probability(n, mu, mu * share) <= 1.0


def test_tail_miss_over_sizes() -> None:
    """Arrays of group sizes give a curve; it starts at 0, as one rollout is never mixed."""
    curve = tail_miss_probability(np.arange(1, 65), 0.5, 0.05)
    assert curve.shape == (64,)
    assert curve[0] == pytest.approx(0.0, abs=1e-15)


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
    with pytest.raises(ValueError, match=rf"^{field}: "):
        tail_miss_probability(n, mu, tau)


@pytest.mark.parametrize(
    ("mu", "rho", "size", "peak"),
    [
        (0.8, 0.01, 15, 0.856),
        (0.8, 0.05, 8, 0.610),
        (0.8, 0.1, 6, 0.467),
        (0.8, 0.2, 4, 0.328),
        (0.5, 0.01, 8, 0.953),
        (0.5, 0.1, 5, 0.724),
        (0.3, 0.05, 9, 0.832),
        (0.2, 0.2, 9, 0.558),
        (0.05, 0.01, 91, 0.946),
        (0.05, 0.2, 40, 0.540),
    ],
)
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


def test_peak_group_size_at_the_edges() -> None:
    """A group that is never mixed and missing at once has no peak but 1; no tail has none."""
    assert peak_group_size(1.0, 0.3) == peak_group_size(0.4, 0.4) == 1
    with pytest.raises(ValueError, match=r"^tau: "):
        peak_group_size(0.5, 0.0)


def test_realised_tail_miss_golden() -> None:
    """K = [0,0,3,8,1,8,7,0] of N = 8 at rho = .1: (.9^3 + .9 + .9^7) / 8 = .263412."""
    missed = realised_tail_miss(8, [0, 0, 3, 8, 1, 8, 7, 0])
    assert missed.mean() == pytest.approx(0.263412, abs=5e-7)
    assert realised_tail_miss(8, 3) == pytest.approx(0.729)
    with pytest.raises(ValueError, match=r"^rho: "):
        realised_tail_miss(8, 3, rho=1.5)


@pytest.mark.parametrize(("n", "mu", "rho"), [(8, 0.5, 0.1), (16, 0.3, 0.05), (4, 0.8, 0.2)])
def test_realised_tail_miss_is_unbiased(n: int, mu: float, rho: float) -> None:
    """Its expectation over c ~ Binomial(n, mu) is Lemma 3.1 exactly."""
    c = np.arange(n + 1)
    chance = np.array([math.comb(n, int(k)) for k in c]) * mu**c * (1 - mu) ** (n - c)
    expected = float(chance @ realised_tail_miss(n, c, rho))
    assert expected == pytest.approx(tail_miss_probability(n, mu, rho * mu), rel=1e-12)


def test_coverage_table_holds_each_formula() -> None:
    """Rows are pass@k for each k, then realised tail-miss; nobody can write into it."""
    table = coverage_table(8, (1, 4), 0.1)
    assert table[0].tolist() == pytest.approx([c / 8 for c in range(9)])
    assert table[1].tolist() == pytest.approx(pass_at_k(8, list(range(9)), 4).tolist())
    assert table[2].tolist() == realised_tail_miss(8, list(range(9))).tolist()
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1.0
