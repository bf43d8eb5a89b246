"""Ratios with clusters drawn with replacement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import bootstrap_ratio
from rlvitals.metrics import resampling as module
from rlvitals.metrics.resampling import normal_quantile


def test_the_value_is_the_ratio_of_sums() -> None:
    """(1 + 0 + 3) / (2 + 1 + 5) is .5, whatever the clusters."""
    for clusters in (None, ["a", "b", "a"], [0, 1, 2]):
        assert bootstrap_ratio([1, 0, 3], [2, 1, 5], clusters).value == 0.5


def test_two_clusters_by_hand() -> None:
    """With clusters of ratio 0 and 1, draws give 0, 1/2 and 1 with chances 1/4, 1/2, 1/4."""
    estimate = bootstrap_ratio([0, 1], [1, 1], level=0.6)
    assert estimate == (0.5, 0.0, 1.0)
    assert bootstrap_ratio([0, 1], [1, 1], level=0.4) == (0.5, 0.5, 0.5)


def test_clusters_that_agree_leave_no_width() -> None:
    """Where every cluster has one ratio there is nothing to be unsure of."""
    assert bootstrap_ratio([1, 2, 3], [2, 4, 6], ["a", "b", "c"]) == (0.5, 0.5, 0.5)
    assert bootstrap_ratio([7], [10]) == (0.7, 0.7, 0.7)


def test_a_seed_decides_everything() -> None:
    """One seed, one interval; another seed, about the same one."""
    values = np.random.default_rng(0).random(200)
    first = bootstrap_ratio(values, np.ones(200), seed=1)
    assert first == bootstrap_ratio(values, np.ones(200), seed=1)
    other = bootstrap_ratio(values, np.ones(200), seed=2)
    assert other != first
    assert other == pytest.approx(first, abs=0.02)


@given(st.permutations(list(range(12))))
def test_order_makes_no_difference(order: list[int]) -> None:
    """Observations may come in any order, and clusters have any name."""
    parts, wholes = np.arange(12) % 5, 1 + np.arange(12) % 3
    clusters = np.arange(12) // 3
    wanted = bootstrap_ratio(parts, wholes, clusters, draws=50)
    names = [f"prompt {clusters[i]}" for i in order]
    assert bootstrap_ratio(parts[order], wholes[order], names, draws=50) == wanted


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=30),
    st.floats(0.5, 0.99),
)
def test_the_interval_holds_the_value(rows: list[tuple[float, int]], level: float) -> None:
    """The ends lie around the value, and within the range of the numbers."""
    shares, clusters = zip(*rows, strict=True)
    value, low, high = bootstrap_ratio(shares, [1.0] * len(rows), clusters, draws=40, level=level)
    assert 0.0 <= low <= value <= high <= 1.0 + 1e-12


def test_draws_in_parts_are_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splitting the work to spare memory changes no digit."""
    values = np.random.default_rng(3).random(300)
    whole = bootstrap_ratio(values, np.ones(300), draws=101)
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 1000)
    assert bootstrap_ratio(values, np.ones(300), draws=101) == whole


def test_the_width_is_that_of_the_cluster_variance() -> None:
    """It agrees with the linearised standard error over clusters: sqrt(sum of r_i^2) / total."""
    source = np.random.default_rng(4)
    sizes = source.integers(1, 8, 400)
    parts = source.binomial(sizes, source.beta(0.4, 0.6, 400))
    value, low, high = bootstrap_ratio(parts, sizes, draws=20_000)
    se = math.sqrt(float(((parts - value * sizes) ** 2).sum())) / sizes.sum()
    assert (high - low) / 2 == pytest.approx(1.96 * se, rel=0.03)


@pytest.mark.parametrize("visits", [1, 6])
def test_the_interval_covers_what_it_promises(visits: int) -> None:
    """80 prompts seen 1 or 6 times: 95 % cover within 4 standard errors less .02 of small samples.

    Groups taken as independent cover far less once prompts come back.
    """
    source = np.random.default_rng(5)
    truth, runs, naive, clustered = 0.4154895365, 400, 0, 0
    prompts = np.repeat(np.arange(80), visits)
    for run in range(runs):
        rates = source.beta(0.4, 0.6, 80)[prompts]
        flat = np.isin(source.binomial(8, rates), (0, 8))
        ones = np.ones(len(flat))
        _, low, high = bootstrap_ratio(flat, ones, prompts, draws=400, seed=run)
        clustered += low <= truth <= high
        _, low, high = bootstrap_ratio(flat, ones, draws=400, seed=run)
        naive += low <= truth <= high
    assert 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs) - 0.02 < clustered / runs < 0.995
    assert (naive / runs < 0.85) == (visits > 1)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (([], []), "numerators"),
        (([1, 0], [1]), "denominators"),
        (([1, 0], [1, 0]), "denominators"),
        (([math.nan], [1]), "denominators"),
        (([1, 0], [1, 1], ["a"]), "clusters"),
    ],
)
def test_impossible_arguments_are_named(arguments: tuple[object, ...], field: str) -> None:
    """What cannot be resampled raises a ValueError that names the argument."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        bootstrap_ratio(*arguments)  # type: ignore[arg-type]


def test_impossible_options_are_named() -> None:
    """So do a level outside (0, 1) and no draws."""
    with pytest.raises(ValueError, match=r"^level: "):
        bootstrap_ratio([1], [1], level=1.0)
    with pytest.raises(ValueError, match=r"^draws: "):
        bootstrap_ratio([1], [1], draws=0)
    with pytest.raises(ValueError, match=r"^level: "):
        normal_quantile(0.0)


def test_the_normal_quantile_is_known() -> None:
    """1.959964 covers 95 %."""
    assert normal_quantile(0.95) == pytest.approx(1.959963984540054, rel=1e-12)
