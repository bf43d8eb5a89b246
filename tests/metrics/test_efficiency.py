"""What collapse costs and what a prompt has to teach."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from rlvitals.metrics import (
    Groups,
    RolloutUse,
    Tally,
    dynamic_sampling_price,
    learnability,
    observed_learnability,
    vitals,
    wasted_gpu_hours,
)
from rlvitals.metrics.binomial import binomial_chances, log_choose
from rlvitals.metrics.efficiency import binary_std

unit = st.floats(0, 1)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (8, 0.5), (17, 0.99), (100, 1e-6), (5000, 0.4)])
def test_binomial_chances_are_those_of_scipy(n: int, p: float) -> None:
    """Each is right to 1e-9 of its value."""
    assert binomial_chances(n, p) == pytest.approx(binom.pmf(np.arange(n + 1), n, p), rel=1e-9)


def test_binomial_at_the_ends() -> None:
    """A rate of 0 or 1 leaves one outcome; a hundred thousand rollouts add up to 1."""
    assert binomial_chances(3, 0.0).tolist() == [1, 0, 0, 0]
    assert binomial_chances(3, 1.0).tolist() == [0, 0, 0, 1]
    assert binomial_chances(100_000, 0.37).sum() == pytest.approx(1.0, abs=1e-9)
    assert np.exp(log_choose(4)).tolist() == pytest.approx([1, 4, 6, 4, 1])
    with pytest.raises(ValueError, match=r"^p: "):
        binomial_chances(3, 1.5)
    with pytest.raises(ValueError, match=r"^n: "):
        binomial_chances(0, 0.5)


@pytest.mark.parametrize(("n", "p"), [(2, 0.5), (3, 0.2), (5, 0.9)])
@pytest.mark.parametrize("ddof", [0, 1])
def test_learnability_brute_force(n: int, p: float, ddof: int) -> None:
    """It is the mean std over all 2^n outcomes of a group, each with its chance."""
    std = statistics.stdev if ddof else statistics.pstdev
    expected = sum(
        p ** sum(group) * (1 - p) ** (n - sum(group)) * std(group)
        for group in itertools.product((0.0, 1.0), repeat=n)
    )
    assert learnability(p, n, ddof=ddof) == pytest.approx(expected, rel=1e-12)


def test_learnability_by_hand() -> None:
    """Two rollouts at 1/2 differ half of the time, and their std is then sqrt(1/2)."""
    assert learnability(0.5, 2) == pytest.approx(math.sqrt(0.5) / 2)
    assert learnability([0.0, 1.0], 8).tolist() == [0.0, 0.0]
    assert learnability([[0.5], [0.5]], 2).shape == (2, 1)
    assert learnability([], 8).shape == (0,)


def test_learnability_of_many_rollouts_is_the_std_of_one() -> None:
    """At n = 100,000 sampling noise is gone: sqrt(p (1-p))."""
    assert learnability(0.2, 100_000) == pytest.approx(0.4, rel=1e-5)


@pytest.mark.parametrize("p", [0.05, 0.5])
def test_learnability_against_simulation(p: float) -> None:
    """100,000 groups of 8 have its mean std within 4 standard errors."""
    rewards = np.random.default_rng(0).random((100_000, 8)) < p
    stds = rewards.std(axis=1, ddof=1)
    se = float(stds.std()) / math.sqrt(len(stds))
    assert abs(float(learnability(p, 8)) - stds.mean()) < 4 * se


@given(unit, st.integers(2, 40))
def test_learnability_is_symmetric_and_bounded(p: float, n: int) -> None:
    """Failing and passing change places freely; no prompt teaches more than one of rate 1/2.

    By Jensen the expected std is at most the root of the expected variance p (1-p).
    """
    here = float(learnability(p, n))
    assert here == pytest.approx(float(learnability(1 - p, n)), abs=1e-9)
    assert 0.0 <= here <= math.sqrt(p * (1 - p)) + 1e-9
    assert here <= float(learnability(0.5, n)) + 1e-12
    assert here <= float(learnability(p, n + 1)) + 1e-12


def test_observed_learnability_is_the_std_within_groups() -> None:
    """For rewards of 0 and 1 it is what vitals calls reward_std_within; empty says nothing."""
    tally = Tally.from_counts({8: [3, 1, 0, 1, 0, 0, 0, 1, 2], 5: [1, 2, 0, 0, 3, 4]})
    assert observed_learnability(tally.counts) == pytest.approx(vitals(tally)["reward_std_within"])
    assert observed_learnability({}) is None
    assert observed_learnability({8: [0] * 9}) is None
    assert observed_learnability({2: [0, 1, 1]}, ddof=0) == pytest.approx(0.25)


def test_observed_learnability_is_unbiased() -> None:
    """With counts in expected numbers it is the expected std at that rate."""
    chances = binomial_chances(8, 0.3)
    counts = {8: np.rint(1e12 * chances).astype(int).tolist()}
    assert observed_learnability(counts) == pytest.approx(float(learnability(0.3, 8)), rel=1e-10)


def test_binary_std_is_that_of_the_rewards() -> None:
    """C ones among n have the std that NumPy gives."""
    for ddof in (0, 1):
        wanted = [np.std([1] * c + [0] * (5 - c), ddof=ddof) for c in range(6)]
        assert binary_std(5, ddof=ddof) == pytest.approx(wanted, abs=1e-12)


def test_price_by_hand() -> None:
    """Half collapsed: one group more for each kept; four of five: four; all: no end."""
    assert dynamic_sampling_price(0.0) == 0.0
    assert dynamic_sampling_price(0.5) == 1.0
    assert dynamic_sampling_price(0.8) == pytest.approx(4.0)
    assert dynamic_sampling_price(1.0) == math.inf


@given(st.floats(0, 0.999))
def test_price_is_what_is_drawn_beyond_what_is_kept(rate: float) -> None:
    """Kept and extra groups together are the draws: 1 / (1 - D)."""
    assert 1 + dynamic_sampling_price(rate) == pytest.approx(1 / (1 - rate))


def test_price_against_simulation() -> None:
    """Drawing until a group of 8 is mixed costs the price, within 4 standard errors."""
    source = np.random.default_rng(1)
    collapse = 0.7**8 + 0.3**8
    extra = source.geometric(1 - collapse, 200_000) - 1.0
    se = float(extra.std()) / math.sqrt(len(extra))
    mixed = source.binomial(8, 0.3, 200_000)
    rate = float(np.isin(mixed, (0, 8)).mean())
    assert abs(extra.mean() - dynamic_sampling_price(collapse)) < 4 * se
    assert rate == pytest.approx(collapse, abs=4 * math.sqrt(collapse / 200_000))


def test_use_by_hand() -> None:
    """Of 64 rollouts 24 lie in groups with 0 < c < 8; the other five groups are wasted."""
    use = RolloutUse.from_tally(Tally.from_counts({8: [3, 1, 0, 1, 0, 0, 0, 1, 2]}))
    assert use == RolloutUse(effective=24, collapsed=40, alone=0, unjudged=0, filtered=0.0)
    assert (use.wasted, use.wasted_share) == (40, 0.625)


def test_use_counts_every_rollout_once() -> None:
    """Groups of one, of unknown success and of several sizes all find their place."""
    rewards = [[1, 0, 1, 0], [0, 0, 0], [1], [0.3, 0.4]]
    correct = [[1, 0, 1, 0], [0, 0, 0], [1], [None, None]]
    tally = Tally.from_groups(Groups.from_rewards(rewards, correct=correct))
    use = RolloutUse.from_tally(tally)
    assert use == RolloutUse(effective=4, collapsed=3, alone=1, unjudged=2, filtered=0.0)
    assert sum(use) == tally.rollouts
    assert use.wasted_share == pytest.approx(4 / 8)


def test_filtered_groups_count_at_the_size_of_the_others() -> None:
    """Six groups removed by dynamic sampling beside groups of 8 were 48 rollouts."""
    tally = replace(Tally.from_counts({8: [0, 1, 0, 1, 0, 0, 0, 0, 0]}), filtered=6)
    use = RolloutUse.from_tally(tally)
    assert (use.filtered, use.wasted, use.effective) == (48.0, 48.0, 16)
    assert use.wasted_share == pytest.approx(0.75)


def test_nothing_generated_wastes_nothing() -> None:
    """Without rollouts there is no share; filtered groups of unknown size are not guessed at."""
    assert RolloutUse.from_tally(Tally()).wasted_share is None
    assert RolloutUse.from_tally(Tally(filtered=3)).filtered == 0.0


@given(st.lists(st.integers(0, 50), min_size=9, max_size=9))
def test_wasted_share_is_the_collapse_rate_for_one_size(row: list[int]) -> None:
    """Where all groups have one size, rollouts are wasted in the proportion of groups."""
    tally = Tally.from_counts({8: row})
    use = RolloutUse.from_tally(tally)
    assert use.effective + use.collapsed == tally.rollouts
    assert use.wasted_share == vitals(tally)["acr_outcome"]


def test_gpu_hours_by_hand() -> None:
    """A quarter of two hours on 16 GPUs is 8 GPU-hours."""
    assert wasted_gpu_hours(0.25, 7200, 16) == pytest.approx(8.0)
    assert wasted_gpu_hours(0.0, 7200, 16) == 0.0


@pytest.mark.parametrize(
    ("function", "arguments", "field"),
    [
        (wasted_gpu_hours, (1.5, 1, 1), "wasted_share"),
        (wasted_gpu_hours, (math.nan, 1, 1), "wasted_share"),
        (wasted_gpu_hours, (0.5, -1, 1), "seconds"),
        (wasted_gpu_hours, (0.5, math.inf, 1), "seconds"),
        (wasted_gpu_hours, (0.5, 1, math.nan), "gpus"),
        (dynamic_sampling_price, (1.1,), "collapse_rate"),
        (dynamic_sampling_price, (math.nan,), "collapse_rate"),
        (learnability, (1.1, 8), "p"),
        (learnability, ([0.5, math.nan], 8), "p"),
        (learnability, (0.5, 1), "n"),
    ],
)
def test_impossible_arguments_are_named(
    function: Callable[..., object], arguments: tuple[object, ...], field: str
) -> None:
    """Numbers outside their range raise a ValueError that names them."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        function(*arguments)
