"""Collapse rate and its interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import advantage_collapse_rate, wilson_interval


def test_collapse_rate_counts_groups_with_equal_rewards() -> None:
    """Of three groups of two or more, one has equal rewards; the singleton has no say."""
    rate = advantage_collapse_rate([[0, 0, 0], [1, 0, 0], [0.2, 0.3], [1]])
    assert rate == pytest.approx(1 / 3)


def test_collapse_rate_without_groups_is_nan() -> None:
    """No group of two means no rate: neither 0 nor 1."""
    assert math.isnan(advantage_collapse_rate([]))
    assert math.isnan(advantage_collapse_rate([[1], [0]]))


def test_collapse_rate_has_a_tolerance() -> None:
    """The tolerance is on max - min, in reward units."""
    rewards = [[0.5, 0.5005]]
    assert advantage_collapse_rate(rewards) == 0.0
    assert advantage_collapse_rate(rewards, tolerance=1e-3) == 1.0
    assert advantage_collapse_rate([1, 1], group_ids=["a", "a"]) == 1.0


def test_wilson_golden() -> None:
    """40 of 100 lies in (.309401, .497997) at 95 %."""
    assert wilson_interval(40, 100) == pytest.approx((0.309401, 0.497997), abs=5e-7)


@pytest.mark.parametrize("n", [1, 3, 7, 100, 10**6])
def test_wilson_of_none_and_of_all_includes_the_share_exactly(n: int) -> None:
    """Rounding never leaves 0 of n below its own interval, nor n of n above it."""
    assert wilson_interval(0, n)[0] == 0.0
    assert wilson_interval(n, n)[1] == 1.0


def test_wilson_at_the_edges() -> None:
    """None of none says nothing; none or all of some stays within [0, 1] and has a width."""
    assert wilson_interval(0, 0) == (0.0, 1.0)
    low, high = wilson_interval(0, 10)
    assert low == 0.0
    assert 0.2 < high < 0.4
    assert wilson_interval(10, 10) == pytest.approx((1 - high, 1.0))
    for wrong in ((-1, 4), (5, 4), (0, -1)):
        with pytest.raises(ValueError, match=r"^k: "):
            wilson_interval(*wrong)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_wilson_holds_the_share(one: int, two: int) -> None:
    """The interval lies in [0, 1] and contains k / n."""
    k, n = min(one, two), max(one, two)
    low, high = wilson_interval(k, n)
    assert 0.0 <= low <= high <= 1.0
    if n:
        assert low - 1e-12 <= k / n <= high + 1e-12
