"""A run's sparkline shows the whole run so far, as the means of at most 60 buckets."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_service.sparkline import MOST_BUCKETS, Sparkline, points

Point = tuple[int, float | None]
rates = st.none() | st.floats(0, 1)
history = st.dictionaries(st.integers(0, 5000), rates, max_size=300)


def drawn(news: Iterable[Point], line: Sparkline | None = None, attempt: int = 1) -> Sparkline:
    """Show steps to a sparkline; a step that comes again replaces what it said before."""
    line = line or Sparkline()
    said: dict[int, float | None] = {}
    for step, rate in news:
        line.add(attempt, step, rate, said.get(step))
        said[step] = rate
    return line


def brute_force(final: Mapping[int, float | None]) -> tuple[list[int], list[float]]:
    """Average over plain buckets of the narrowest width that makes at most 60."""
    known = {step: rate for step, rate in final.items() if rate is not None}
    for bits in range(64):
        buckets: dict[int, list[float]] = {}
        for step in sorted(known):
            buckets.setdefault(step >> bits, []).append(known[step])
        if len(buckets) <= MOST_BUCKETS:
            break
    means = [sum(bucket) / len(bucket) for bucket in buckets.values()]
    return [number << bits for number in buckets], means


@given(history, st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_means_of_the_whole_run(
    final: dict[int, float | None], shuffler: random.Random
) -> None:
    """However steps come, the points are those of brute force over all of them."""
    news = list(final.items())
    shuffler.shuffle(news)
    found = points(drawn(news).to_json())
    steps, means = brute_force(final)
    assert found["step"] == steps
    assert found["acr"] == pytest.approx(means, abs=1e-6)


@given(history, history)
def test_a_step_derived_again_replaces_its_rate(
    first: dict[int, float | None], again: dict[int, float | None]
) -> None:
    """What other ranks add to a step later changes its bucket as if it had come at once."""
    line = drawn([*first.items(), *again.items()])
    final = {**first, **again}
    known = {step: rate for step, rate in final.items() if rate is not None}
    found = points(line.to_json())
    buckets: dict[int, list[float]] = {}
    for step, rate in sorted(known.items()):
        buckets.setdefault(step - step % found["stride"], []).append(rate)
    assert found["step"] == list(buckets)
    means = [sum(bucket) / len(bucket) for bucket in buckets.values()]
    assert found["acr"] == pytest.approx(means, abs=1e-6)
    assert len(buckets) <= MOST_BUCKETS


@given(history)
def test_what_is_stored_is_all_there_is(final: dict[int, float | None]) -> None:
    """A service that reads its sparkline back goes on exactly as one that kept it."""
    line = drawn(final.items())
    assert Sparkline.read(line.to_json()) == line


def test_points_of_a_growing_run_stay_until_pairs_become_one() -> None:
    """61 steps are 31 points of two; until 120 the earlier points do not change."""
    line = drawn((step, step / 1000) for step in range(61))
    before = points(line.to_json())
    assert (len(before["acr"]), before["stride"]) == (31, 2)
    assert before["acr"][:2] == [0.0005, 0.0025]
    after = points(drawn(((step, step / 1000) for step in range(61, 120)), line).to_json())
    assert after["acr"][:30] == before["acr"][:30]
    assert len(after["acr"]) == 60


def test_a_run_of_a_hundred_thousand_steps_is_shown_from_its_beginning() -> None:
    """A rate that rises from 0 to 1 rises from 0 to 1 in 49 points of 2,048 steps."""
    found = points(drawn((step, step / 99_999) for step in range(100_000)).to_json())
    assert found["stride"] == 2048
    assert len(found["acr"]) == 49
    assert found["acr"][0] < 0.02
    assert found["acr"][-1] > 0.98
    assert found["acr"] == sorted(found["acr"])


def test_a_newer_attempt_replaces_what_it_goes_back_over() -> None:
    """Back at step 40 of 100, with points of two: 20 points of the first attempt stay."""
    line = drawn((step, 0.0) for step in range(100))
    line = drawn([(40, 1.0)], line, attempt=2)
    assert points(line.to_json())["acr"] == [0.0] * 20 + [1.0]
    for step in (99, 41, 39):  # late news of the attempt left behind
        line.add(1, step, 0.5, 0.0)
    assert points(line.to_json())["acr"] == [0.0] * 19 + [0.25, 1.0]


def test_a_newer_attempt_within_a_bucket_has_it_alone() -> None:
    """Back at step 41, in the middle of 40 and 41: that point is the newer attempt's."""
    line = drawn([(41, 1.0)], drawn((step, 0.0) for step in range(100)), attempt=2)
    assert points(line.to_json())["acr"] == [0.0] * 20 + [1.0]


def test_a_newer_attempt_that_goes_on_shares_the_last_bucket() -> None:
    """An attempt that ends at step 100 and one that begins at 101 have one mean of 100 and 101."""
    line = drawn([(101, 1.0)], drawn((step, 0.0) for step in range(101)), attempt=2)
    assert points(line.to_json())["acr"] == [0.0] * 50 + [0.5]


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_rate_that_is_not_finite_is_no_point(odd: float) -> None:
    """A trainer that logs NaN as its rate spoils neither the mean nor the JSON."""
    assert points(drawn([(1, odd), (1, 0.5), (2, odd)]).to_json())["acr"] == [0.5]


def test_nothing_and_rows_of_an_earlier_kind_draw_nothing() -> None:
    """A run without groups, and one stored before there were buckets, has no points yet."""
    earlier: dict[str, Any] = {"acr": [0.5], "step": [1], "attempt": [1]}
    for stored in ({}, earlier, Sparkline().to_json()):
        assert points(stored) == {"acr": [], "step": [], "stride": 1}
