"""Thinning keeps what a person looks for: spikes, ends and non-finite steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rlvitals_service.buckets import Selection, select

series = hnp.arrays(np.float64, st.integers(1, 300), elements=st.floats(width=32, allow_nan=True))


def chosen(values: np.ndarray, max_points: int = 20) -> Selection:
    """Select from a series of consecutive steps."""
    return select(np.arange(len(values)), values, max_points)


def test_spike_survives_at_every_position() -> None:
    """A spike of one step, up or down, is drawn wherever it happens."""
    for position in range(1000):
        for height in (100.0, -100.0):
            values = np.sin(np.arange(1000))
            values[position] = height
            assert position in chosen(values).index


def test_a_series_that_fits_is_kept_whole() -> None:
    """A zoomed range shows the raw points."""
    selection = chosen(np.arange(20.0))
    assert selection.index.tolist() == list(range(20))
    assert not selection.sampled


def test_golden_buckets() -> None:
    """Sixteen steps in at most eight points: width 8, so two buckets, extremes and ends."""
    values = np.array([5, 1, 9, 5, 5, 5, 5, 5, 5, 5, 0, 5, 5, 7, 5, 5], dtype=float)
    # width 1, 2 and 4 give 16, 8 and 4 buckets, more than (8 - 2) / 2 = 3
    assert chosen(values, 8).index.tolist() == [0, 1, 2, 10, 13, 15]


def test_nonfinite_values_are_reported_apart_and_never_chosen_inside() -> None:
    """NaN and infinities are all listed and never pose as an extreme."""
    values = np.zeros(100)
    values[[10, 20, 30]] = [np.nan, np.inf, -np.inf]
    selection = chosen(values)
    assert selection.nonfinite.tolist() == [10, 20, 30]
    assert not set(selection.nonfinite) & set(selection.index)


def test_all_nonfinite_keeps_the_ends() -> None:
    """A series without one finite value still shows where it begins and ends."""
    selection = chosen(np.full(100, np.nan))
    assert selection.index.tolist() == [0, 99]
    assert len(selection.nonfinite) == 100
    assert not selection.sampled


def test_points_stay_put_while_a_run_grows() -> None:
    """Extremes drawn in full buckets are drawn again after more steps came."""
    values = np.random.default_rng(0).normal(size=1024)
    before, after = chosen(values[:1000], 130), chosen(values[:1023], 130)
    settled = [i for i in before.index if 0 < i < 992]  # the last bucket of 16 or 32 may move
    assert set(settled) <= set(after.index)


def test_points_do_not_depend_on_where_a_range_begins() -> None:
    """Panning keeps the extremes of the buckets that stay in view."""
    values = np.random.default_rng(1).normal(size=4096)
    steps = np.arange(4096)
    left = select(steps[:2048], values[:2048], 130)
    right = select(steps[512:2560], values[512:2560], 130)
    inside = {int(i) for i in left.index if 512 < i < 2047}
    assert inside <= {int(i) + 512 for i in right.index}


def test_sparse_steps_are_bucketed_by_the_steps_present() -> None:
    """A run that starts at step 61,010 and logs every 1,000 steps gets its full share of points."""
    steps = 61_010 + 1000 * np.arange(5000)
    selection = select(steps, np.random.default_rng(2).normal(size=5000), 2000)
    assert 900 <= len(selection.index) <= 2000


def test_attempts_do_not_share_a_bucket() -> None:
    """Each attempt keeps its own extremes where two of them cover the same steps."""
    steps = np.tile(np.arange(64), 2)
    segments = np.repeat([1, 2], 64)
    values = np.where(segments == 1, 1.0, 2.0)
    values[70] = 1.5  # low for attempt 2, though above everything in attempt 1
    assert 70 in select(steps, values, 12, segments).index


def test_more_attempts_than_points_still_fit() -> None:
    """A hundred attempts of one step each stay within the limit."""
    selection = select(np.zeros(100, dtype=np.int64), np.arange(100.0), 10, np.arange(100))
    assert selection.index.tolist() == [0, 99]


def test_too_few_points_are_refused() -> None:
    """Fewer than four points cannot hold both ends and both extremes."""
    with pytest.raises(ValueError, match="max_points"):
        chosen(np.zeros(10), 3)


@given(series, st.integers(4, 64))
def test_selection_holds_for_any_series(values: np.ndarray, max_points: int) -> None:
    """Within the limit, ends in, extremes in, all non-finite listed, the same every time."""
    selection = chosen(values, max_points)
    assert len(selection.index) <= max_points
    assert (np.diff(selection.index) > 0).all()
    assert selection.index[0] == 0
    assert selection.index[-1] == len(values) - 1
    assert selection.nonfinite.tolist() == [i for i, v in enumerate(values) if not np.isfinite(v)]
    assert selection.index.tolist() == chosen(values.copy(), max_points).index.tolist()
    drawn = values[selection.index]
    finite = values[np.isfinite(values)]
    if len(finite):
        assert finite.min() in drawn
        assert finite.max() in drawn


@given(
    st.lists(st.integers(0, 2**53 - 1), min_size=5, max_size=200, unique=True),
    st.integers(4, 40),
    st.data(),
)
def test_buckets_match_brute_force(
    numbers: list[int], max_points: int, data: st.DataObject
) -> None:
    """The chosen points are the plain per-bucket extremes of the narrowest width that fits."""
    steps = np.array(sorted(numbers))
    levels = st.lists(st.integers(-5, 5), min_size=len(steps), max_size=len(steps))
    values = np.array(data.draw(levels), float)
    assert select(steps, values, max_points).index.tolist() == brute_force(
        steps, values, max_points
    )


@given(st.integers(4, 40), st.data())
def test_means_match_brute_force(max_points: int, data: st.DataObject) -> None:
    """Each bucket has NumPy's mean of its finite values at its middle step; together, all have."""
    numbers = st.lists(st.integers(0, 2000), min_size=5, max_size=200, unique=True)
    steps = np.array(sorted(data.draw(numbers)))
    wild = st.floats(-1e6, 1e6) | st.sampled_from([np.nan, np.inf, -np.inf])
    values = np.array(data.draw(st.lists(wild, min_size=len(steps), max_size=len(steps))))
    means = select(steps, values, max_points).means
    if means is None:
        return
    known = np.flatnonzero(np.isfinite(values))
    plain = plain_buckets(steps[known], max_points)
    assert means.index.tolist() == [int(known[b[(len(b) - 1) // 2]]) for b in plain]
    assert means.count.tolist() == [len(b) for b in plain]
    expected = [np.mean(values[known[b]]) for b in plain]
    np.testing.assert_allclose(means.value, expected, rtol=1e-9, atol=1e-6)
    whole = np.average(means.value, weights=means.count)
    np.testing.assert_allclose(whole, np.mean(values[known]), rtol=1e-9, atol=1e-6)


@given(series, st.integers(4, 64))
def test_means_come_exactly_when_a_value_is_left_out(values: np.ndarray, max_points: int) -> None:
    """There are means if and only if the points do not hold every finite value."""
    selection = chosen(values, max_points)
    drawn = np.isfinite(values[selection.index]).sum()
    assert (selection.means is not None) == (drawn < np.isfinite(values).sum())


def test_golden_means() -> None:
    """Two buckets of eight, one NaN and one single high value: 11/7, without it, and 2."""
    values = np.array([1, 1, 1, np.nan, 1, 1, 1, 5, 2, 2, 2, 2, 2, 2, 2, 2], dtype=float)
    means = chosen(values, 8).means
    assert means is not None
    assert means.value == pytest.approx([11 / 7, 2.0])
    assert means.index.tolist() == [4, 11]  # the middle of 0, 1, 2, 4, 5, 6, 7 and of 8 to 15
    assert means.count.tolist() == [7, 8]


def test_the_mean_of_huge_values_is_finite() -> None:
    """A mean lies between the extremes, also where the sum of the values has no number."""
    means = chosen(np.full(1000, 1.7e308)).means
    assert means is not None
    assert set(means.value) == {1.7e308}


def test_means_of_full_buckets_stay_put_while_a_run_grows() -> None:
    """More steps change no mean that is already drawn, the growing bucket's aside."""
    values = np.random.default_rng(3).normal(size=1024)
    before, after = chosen(values[:1000], 130).means, chosen(values[:1023], 130).means
    assert before is not None
    assert after is not None
    assert before.value[:-1].tolist() == after.value[: len(before.value) - 1].tolist()
    assert before.index[:-1].tolist() == after.index[: len(before.index) - 1].tolist()


def brute_force(steps: np.ndarray, values: np.ndarray, max_points: int) -> list[int]:
    """Take the ends, and the extremes of plain buckets."""
    if len(steps) <= max_points:
        return list(range(len(steps)))
    buckets = plain_buckets(steps, max_points)
    ends = {0, len(steps) - 1}
    lows = {min(bucket, key=lambda i: values[i]) for bucket in buckets}
    highs = {max(bucket, key=lambda i: values[i]) for bucket in buckets}
    return sorted(ends | lows | highs)


def plain_buckets(steps: np.ndarray, max_points: int) -> list[list[int]]:
    """Try each width from one step upwards with dictionaries; give the positions in each bucket."""
    for k in range(65):
        buckets: dict[int, list[int]] = {}
        for position, step in enumerate(steps.tolist()):
            buckets.setdefault(step >> k, []).append(position)
        if 2 * len(buckets) + 2 <= max_points:
            break
    return list(buckets.values())
