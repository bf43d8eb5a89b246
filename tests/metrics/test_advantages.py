"""How hard a group pulls, and how hard one rollout can."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rlvitals.metrics import Tally, advantage_bound, advantage_mass, total_advantage_mass
from rlvitals.metrics.advantages import advantages_beyond_bound


def standardised(rewards: NDArray[np.float64], ddof: int) -> NDArray[np.float64]:
    """Give (r - mean) / std of one group, 0 where all rewards are equal."""
    std = rewards.std(ddof=ddof)
    return (rewards - rewards.mean()) / std if std > 0 else np.zeros(len(rewards))


def test_golden_mass() -> None:
    """One correct of 8 pulls by 5.2915, half by 8, and none or all by nothing."""
    assert advantage_mass(8, 1) == pytest.approx(5.2915, abs=5e-5)
    assert advantage_mass(8, [0, 4, 8]).tolist() == [0.0, 8.0, 0.0]


@pytest.mark.parametrize("n", range(1, 9))
def test_mass_of_every_binary_group(n: int) -> None:
    """Every group of 0 and 1 has sum |A| = 2 n sqrt(p(1-p)), and sqrt((n-1)/n) of it for ddof 1."""
    for rewards in product([0.0, 1.0], repeat=n):
        group = np.array(rewards)
        mass = advantage_mass(n, int(group.sum()))
        assert np.abs(standardised(group, 0)).sum() == pytest.approx(mass)
        if n > 1:
            sample = np.abs(standardised(group, 1)).sum()
            assert sample == pytest.approx(mass * math.sqrt((n - 1) / n))


def test_total_mass_sums_over_the_counts() -> None:
    """Two groups of 8 with 1 correct, one of 4 with 2: 2 x 5.2915 + 4; nothing without groups."""
    tally = Tally.from_counts({8: [3, 2, 0, 0, 0, 0, 0, 0, 1], 4: [0, 0, 1, 0, 0]})
    assert total_advantage_mass(tally.counts) == pytest.approx(2 * 28**0.5 + 4)
    assert total_advantage_mass({}) == 0.0


@pytest.mark.parametrize(
    ("n", "c", "name"), [(0, 0, "n"), (8, 9, "c"), (8, -1, "c"), (math.nan, 0, "n")]
)
def test_impossible_groups_are_refused(n: float, c: float, name: str) -> None:
    """More correct than rollouts, fewer than none, or no rollout at all: the argument is named."""
    with pytest.raises(ValueError, match=rf"^{name}: "):
        advantage_mass(n, c)


def test_golden_bound() -> None:
    """(n-1)/sqrt(n) at n = 8 is the 2.4749 that a verl run logs as its largest advantage."""
    assert advantage_bound(8) == pytest.approx(2.4749, abs=5e-5)
    assert advantage_bound(8, ddof=0) == pytest.approx(math.sqrt(7))


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("n", [2, 3, 8, 64, 100_000])
def test_one_against_all_reaches_the_bound(n: int, ddof: int) -> None:
    """One reward apart from n - 1 equal ones has exactly the largest advantage."""
    group = np.zeros(n)
    group[0] = 7.0
    assert standardised(group, ddof).max() == pytest.approx(advantage_bound(n, ddof=ddof))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.sampled_from([0, 1]))
def test_no_rewards_exceed_the_bound(rewards: list[float], ddof: int) -> None:
    """Whatever the rewards of a group, none of its advantages is beyond."""
    group = np.array(rewards)
    if np.ptp(group) > 1e-6:
        assert advantages_beyond_bound(standardised(group, ddof), len(group), ddof=ddof) == 0


def test_what_no_group_can_give_is_counted() -> None:
    """Of 7428 (a leave-one-out std of rounding dust), 2.47, -3 and NaN, all but one are beyond."""
    assert advantages_beyond_bound([7428.0, 2.47, -3.0, math.nan], 8) == 3
    assert advantages_beyond_bound([], 8) == 0


@pytest.mark.parametrize(("n", "ddof", "name"), [(1, 1, "n"), (0, 0, "n"), (8, 2, "ddof")])
def test_bound_needs_a_group(n: int, ddof: int, name: str) -> None:
    """A group of one has no advantages to bound, and ddof is 0 or 1."""
    with pytest.raises(ValueError, match=rf"^{name}: "):
        advantage_bound(n, ddof=ddof)
