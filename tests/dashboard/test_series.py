"""Trends, common grids and changes, by numbers one can compute by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_dashboard import series as sr
from rlvitals_dashboard.series import Series

finite = st.floats(-1e6, 1e6)


def test_read_columns_keeps_the_class_of_what_is_not_finite() -> None:
    """A null with its step among the non-finite ones stays null and is named."""
    column = {"step": [1, 2], "value": [0.5, None], "nonfinite": [[2, "-Infinity"]]}
    columns = sr.read_columns({"metrics": {"kl": column, "empty": {"step": [], "value": []}}})
    assert columns == {"kl": Series([1, 2], [0.5, None], [(2, "-Infinity")])}


def test_trend_starts_without_bias_and_halves_with_its_halflife() -> None:
    """Half-life 1: (0.5 * 0 + 1) / 1.5 = 2/3, then (0.25 * 0 + 0.5 + 1) / 1.75 = 6/7."""
    smooth = sr.trend(Series([0, 1, 2], [0.0, 1.0, 1.0], []), 1.0)
    assert smooth == pytest.approx([0, 2 / 3, 6 / 7])


def test_trend_counts_steps_not_points() -> None:
    """A gap of two steps at half-life 1 leaves a quarter: (0.25 * 0 + 1) / 1.25 = 0.8."""
    assert sr.trend(Series([0, 2], [0.0, 1.0], []), 1.0)[1] == pytest.approx(0.8)


@given(st.lists(finite, min_size=1, max_size=40))
def test_trend_stays_between_least_and_most(values: list[float]) -> None:
    """A weighted mean never leaves the range of its values."""
    smooth = [
        v for v in sr.trend(Series(list(range(len(values))), list(values), [])) if v is not None
    ]
    slack = 1e-9 * max(1.0, *map(abs, values))
    assert min(values) - slack <= min(smooth)
    assert max(smooth) <= max(values) + slack


def test_trend_leaves_the_unknown_unknown() -> None:
    """A missing value weighs nothing and stays missing."""
    assert sr.trend(Series([0, 1, 2], [1.0, None, 1.0], []), 5.0) == [1.0, None, 1.0]


def test_geometric_trend_is_a_mean_of_logarithms() -> None:
    """With an endless half-life 1 and 100 have the geometric mean 10."""
    smooth = sr.geometric_trend(Series([0, 1], [1.0, 100.0], []))
    assert smooth[0] == pytest.approx(1)
    assert smooth[1] == pytest.approx(math.exp(math.log(100) / (1 + 0.5**0.5)))


def test_trend_weighs_a_mean_as_the_values_it_is_of() -> None:
    """Without decay, the mean 1 of three values and the mean 0 of one make 3/4."""
    means = Series([1, 4], [1.0, 0.0], [], count=[3, 1])
    assert sr.trend(means, 1e12)[1] == pytest.approx(0.75)
    assert means.mean_value() == pytest.approx(0.75)


def test_level_of_a_thinned_series_is_its_means() -> None:
    """Points are extremes; what trends are taken of are the means that come beside them."""
    mean = {"step": [3, 11], "value": [0.1, 0.2], "count": [8, 8]}
    column = {"step": [0, 5], "value": [0.0, 1.0], "nonfinite": [], "mean": mean}
    thinned = sr.read_columns({"metrics": {"acr": column}})["acr"]
    assert thinned.value == [0.0, 1.0]
    assert thinned.level == Series([3, 11], [0.1, 0.2], [], count=[8, 8])
    whole = Series([0, 1], [0.5, None], [])
    assert whole.level is whole
    assert whole.known() == Series([0], [0.5], [])


def test_what_a_log_axis_cannot_show_is_unknown_in_points_and_means() -> None:
    """Zeros and negative values leave the series, and the means that are not positive."""
    mean = Series([0, 1], [0.5, 0.0], [], count=[2, 2])
    found = sr.positive(Series([0, 1, 2], [0.0, 1.0, -1.0], [(3, "NaN")], mean))
    assert found.value == [None, 1.0, None]
    assert found.level.value == [0.5, None]
    assert found.level.counts() == [2, 2]


def test_change_needs_enough_values() -> None:
    """Seven values claim no movement; a ramp of a hundred moves about a fifth of its height."""
    assert sr.change(Series(list(range(7)), [0.0] * 7, [])) is None
    ramp = Series(list(range(101)), [step / 100 for step in range(101)], [])
    assert sr.change(ramp) == pytest.approx(0.2, abs=0.01)


def test_spikes_stand_far_above_what_came_before() -> None:
    """Among values around 1 only 30 is a spike; twice the median is none."""
    values = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.0, 1.1, 2.0, 30.0, 1.05]
    assert sr.spikes(Series(list(range(11)), list(values), [])) == [(9, 30.0)]


def test_a_fall_to_another_level_leaves_no_spikes_behind() -> None:
    """High values before a collapse to a tenth were usual then."""
    rng = np.random.default_rng(1)
    values = [*rng.lognormal(0, 0.1, 60), *rng.lognormal(-2.5, 0.1, 300)]
    assert sr.spikes(Series(list(range(360)), list(values), [])) == []
    assert sr.usual(Series(list(range(360)), list(values), [])) == pytest.approx(
        math.exp(-2.5), rel=0.1
    )


def test_pass_ks_are_ordered_as_numbers() -> None:
    """pass@12 comes after pass@8, whatever the letters say."""
    assert sr.pass_ks(["pass_at_12", "pass_at_8", "pass_at_1", "acr", "pass_at_max"]) == [1, 8, 12]
