"""Shares of a run are means: of steps, of causes, and of rollouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.sample_api import SampleApi

from rlvitals_dashboard import live, shares
from rlvitals_dashboard.series import Columns, Series, read_columns
from rlvitals_service.buckets import select

STEPS = 4096


def thinned(values: np.ndarray, max_points: int) -> Series:
    """Thin consecutive steps as the service does."""
    steps = np.arange(len(values))
    chosen = select(steps, values, max_points)
    column = {"step": steps[chosen.index], "value": values[chosen.index].tolist()}
    if chosen.means is not None:
        column["mean"] = {
            "step": chosen.means.index.tolist(),
            "value": chosen.means.value.tolist(),
            "count": chosen.means.count.tolist(),
        }
    return read_columns({"metrics": {"acr": column}})["acr"]


def run_of(rng: np.random.Generator, max_points: int, steps: int = STEPS) -> Columns:
    """Make a run whose rates are small, noisy and skewed, as those of 16 groups are."""
    causes = rng.binomial(16, 0.1, (3, steps)) / 48
    named = dict(zip(shares.CAUSES, causes, strict=True))
    return {name: thinned(v, max_points) for name, v in {**named, "acr": causes.sum(0)}.items()}


@given(st.integers(0, 2**32 - 1), st.sampled_from([40, 500, 1000, 10_000]))
def test_causes_add_up_to_the_mean_rate(seed: int, max_points: int) -> None:
    """At every step, thinned or not, the stack ends at the rate averaged in the same way."""
    columns = run_of(np.random.default_rng(seed), max_points, 1500)
    steps, parts = shares.causes(columns)
    whole = shares.windowed(columns, columns["acr"])
    assert whole.step == steps
    np.testing.assert_allclose(sum(parts.values()), whole.value, atol=1e-12)


def test_buckets_wider_than_the_window_are_shown_as_they_are() -> None:
    """With buckets of 256 steps the stack ends at the service's means of the rate."""
    columns = run_of(np.random.default_rng(0), 40)
    _, parts = shares.causes(columns)
    np.testing.assert_allclose(sum(parts.values()), columns["acr"].level.value, atol=1e-12)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 9)), min_size=1, max_size=90),
)
def test_window_is_the_pooled_rates(rows: list[tuple[float, int]]) -> None:
    """Each value is the rate of all groups of the last 20 steps, or of about 64 groups."""
    rates, groups = ([float(row[i]) for row in rows] for i in (0, 1))
    steps = list(range(len(rows)))
    columns = {"groups": Series(steps, list(groups), [])}
    found = shares.windowed(columns, Series(steps, list(rates), []))
    wide = max(20, int(np.ceil(64 / np.mean(groups))))
    for end, value in enumerate(found.value, 1):
        window = slice(max(0, end - wide), end)
        expected = np.average(rates[window], weights=groups[window])
        assert value == pytest.approx(expected, abs=1e-9)


def test_metrics_with_other_steps_meet_on_straight_lines() -> None:
    """Between the steps it has a metric is a straight line; one that is absent is zero."""
    columns = {
        "acr_all_fail": Series([0, 4], [0.5, 0.5], []),
        "acr_all_pass": Series([0, 2, 4], [0.1, 0.1, 0.1], []),
    }
    steps, parts = shares.causes(columns)
    assert steps == [0, 2, 4]
    np.testing.assert_allclose(parts["acr_all_fail"], [0.5, 0.5, 0.5])
    np.testing.assert_allclose(parts["acr_constant"], [0, 0, 0])


def test_wasted_share_weighs_by_rollouts() -> None:
    """(10 * 1.0 + 30 * 0.2) / 40 = 0.4."""
    columns = {
        "acr": Series([0, 1], [1.0, 0.2], []),
        "rollouts": Series([0, 1], [10.0, 30.0], []),
    }
    assert shares.wasted(columns) == pytest.approx(0.4)
    assert shares.wasted({}) is None


def test_wasted_share_of_a_long_run_is_its_mean_rate(ward: SampleApi) -> None:
    """A hundred thousand steps in few points have the mean of all of them."""
    snap = live.snapshot(ward, ward.run("long"), None, live.FIRST_SMALL)
    columns = ward.known["long"].columns()
    true = np.average(columns["acr"], weights=columns["rollouts"])
    assert shares.wasted(snap.columns) == pytest.approx(true, abs=1e-6)
