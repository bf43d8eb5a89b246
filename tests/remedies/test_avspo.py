"""Virtual rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.remedies import (
    Avspo,
    closed_form_advantage,
    next_threshold,
    virtual_advantage,
    virtual_advantage_bound,
    virtual_count,
    virtual_offsets,
)
from rlvitals.remedies.avspo import ANCHOR, Values

GOLDEN = [
    ([1.0], 0, -0.3536),
    ([1.0], 1, -0.3333),
    ([-1.0], 0, 0.3536),
    ([0.1] * 4, 0, -0.7071),
    (virtual_offsets(4, -1), 0, 0.6202),
    (virtual_offsets(4, -1), 1, 0.5938),
    (virtual_offsets(8, 1), 0, -0.8115),
    (virtual_offsets(8, 1), 1, -0.7857),
]


@pytest.mark.parametrize(("offsets", "ddof", "value"), GOLDEN)
def test_advantage_golden(offsets: list[float], ddof: int, value: float) -> None:
    """Golden values at G = 8 hold for population and sample std, joined and in closed form."""
    given_offsets = np.asarray(offsets)
    advantage = virtual_advantage(8, given_offsets, eps=0.0, ddof=ddof)
    assert advantage == pytest.approx(value, abs=5e-5)
    assert closed_form_advantage(8, given_offsets, ddof=ddof) == pytest.approx(value, abs=5e-5)


def test_golden_bounds() -> None:
    """K = 1, 4 and 8 beside 8 real rewards: sqrt(K/G) = .3536, .7071 and 1; with ddof=1 .3333."""
    assert [virtual_advantage_bound(8, k, ddof=0) for k in (1, 4, 8)] == pytest.approx(
        [0.3536, 0.7071, 1.0], abs=5e-5
    )
    assert virtual_advantage_bound(8, 1) == pytest.approx(1 / 3)


@given(
    st.integers(1, 64),
    st.integers(1, 64),
    st.sampled_from([1, -1]),
    st.sampled_from(["stratified", "fixed", "uniform", "exponential"]),
    st.sampled_from([0, 1]),
    st.integers(0, 10**6),
)
def test_closed_form_is_what_joining_gives(
    size: int, count: int, side: int, values: Values, ddof: int, seed: int
) -> None:
    """Every choice of values gives the closed form, pushes away from them and stays in bounds."""
    offsets = virtual_offsets(count, side, values, np.random.default_rng(seed))
    advantage = virtual_advantage(size, offsets, eps=0.0, ddof=ddof)
    assert advantage == pytest.approx(closed_form_advantage(size, offsets, ddof=ddof))
    assert math.copysign(1, advantage) == -side
    assert abs(advantage) <= virtual_advantage_bound(size, count, ddof=ddof) + 1e-12


@given(st.integers(1, 64), st.integers(1, 64), st.floats(1e-3, 1e3))
def test_stratified_values_have_no_anchor(size: int, count: int, anchor: float) -> None:
    """|A| = sqrt(K/G) / sqrt(1 + (K-1)(G+K) / (3 (K+1) G)) wherever the anchor lies."""
    offsets = virtual_offsets(count, 1) / ANCHOR * anchor
    spread = (count - 1) * (size + count) / (3 * (count + 1) * size)
    expected = -math.sqrt(count / size / (1 + spread))
    assert closed_form_advantage(size, offsets, ddof=0) == pytest.approx(expected)


@given(st.integers(1, 64), st.integers(1, 64), st.floats(0.01, 1))
def test_equal_values_reach_the_bound(size: int, count: int, value: float) -> None:
    """Whatever the one virtual value is, |A| is the bound."""
    advantage = closed_form_advantage(size, np.full(count, value), ddof=0)
    assert advantage == pytest.approx(-virtual_advantage_bound(size, count, ddof=0))


def test_values_of_the_ablation() -> None:
    """K = 4 above an all-fail group: steps of .025, .5 throughout, halves, and draws in (0, 1]."""
    assert virtual_offsets(4, 1).tolist() == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert virtual_offsets(4, -1, "fixed").tolist() == [-0.5] * 4
    assert virtual_offsets(4, 1, "exponential").tolist() == [0.5, 0.25, 0.125, 0.0625]
    drawn = virtual_offsets(1000, -1, "uniform", np.random.default_rng(0))
    assert ((drawn < 0) & (drawn >= -1)).all()
    again = virtual_offsets(1000, -1, "uniform", np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, again)


def test_unknown_values_are_refused() -> None:
    """A name that is none of the four, and a draw without a source, are refused by name."""
    with pytest.raises(ValueError, match=r"^values: "):
        virtual_offsets(4, 1, "anchor")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^source: "):
        virtual_offsets(4, 1, "uniform")


def test_centred_advantage_is_the_distance_to_the_mean() -> None:
    """Without std division: 4 zeros and virtual .05, .1 have mean .025."""
    advantage = virtual_advantage(4, virtual_offsets(2, 1), std_division=False)
    assert advantage == pytest.approx(-0.025)


@pytest.mark.parametrize(
    ("size", "acr", "alpha", "cap", "count"),
    [
        (8, 1.0, 0.5, None, 8),
        (8, 0.25, 0.5, None, 4),
        (8, 0.5, 0.5, None, 6),
        (8, 0.0, 0.5, None, 1),
        (8, 0.5, 0.5, 2, 2),
        (2, 0.9, 0.5, None, 2),
        (16, 0.51, 1.0, None, 9),
    ],
)
def test_virtual_count(size: int, acr: float, alpha: float, cap: int | None, count: int) -> None:
    """K = ceil(G acr^alpha), at least 1, at most G and the cap."""
    assert virtual_count(size, acr, alpha, cap) == count


@pytest.mark.parametrize("acr", [-0.1, 1.1, math.nan])
def test_a_rate_is_a_share(acr: float) -> None:
    """A collapse rate outside of [0, 1] counts no virtual rewards."""
    with pytest.raises(ValueError, match=r"^acr: "):
        virtual_count(8, acr, 0.5)


@given(st.integers(2, 64), st.floats(0, 1), st.floats(0, 1), st.floats(0, 10))
def test_more_collapse_means_more_virtual_rewards(
    size: int, one: float, two: float, alpha: float
) -> None:
    """K lies in 1..G, grows with the collapse rate and is G when everything collapsed."""
    low, high = sorted((one, two))
    few, many = virtual_count(size, low, alpha), virtual_count(size, high, alpha)
    assert 1 <= few <= many <= size
    assert virtual_count(size, 1.0, alpha) == size


def test_threshold_steers_to_the_target() -> None:
    """Above target it falls, below it rises, by rate times the difference."""
    avspo = Avspo(target=0.15, rate=0.05)
    assert next_threshold(0.5, 0.55, avspo) == pytest.approx(0.48)
    assert next_threshold(0.5, 0.0, avspo) == pytest.approx(0.5075)
    assert next_threshold(0.5, 0.15, avspo) == 0.5


def test_threshold_stays_within_reach() -> None:
    """It never leaves [.02, .98]; unknown rates and a fixed threshold leave it alone."""
    avspo = Avspo(rate=1.0)
    assert next_threshold(0.1, 1.0, avspo) == 0.02
    assert next_threshold(0.97, 0.0, avspo) == 0.98
    assert next_threshold(0.5, None, avspo) == next_threshold(0.5, math.nan, avspo) == 0.5
    assert next_threshold(0.5, 1.0, Avspo(adaptive=False)) == 0.5


def test_controller_reaches_its_target_on_a_steady_run() -> None:
    """Raw rates uniform in [.2, .7]: in the long run the effective rate is the target of .15."""
    rng = np.random.default_rng(0)
    avspo, threshold, effective = Avspo(), 0.5, []
    for raw in rng.uniform(0.2, 0.7, 4000):
        seen = 0.0 if raw > threshold else float(raw)
        effective.append(seen)
        threshold = next_threshold(threshold, seen, avspo)
    assert np.mean(effective[500:]) == pytest.approx(0.15, abs=0.01)
