"""The summary that adds up."""

from __future__ import annotations

import json
import math
import random
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import Groups, Tally, vitals

rewards = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, -1.0, math.nan]), st.floats(-5, 5))
batches = st.lists(st.lists(rewards, max_size=9), max_size=8)


def tally(batch: object, **layout: object) -> Tally:
    """Sum up rewards with a success threshold of 1."""
    return Tally.from_groups(Groups.from_rewards(batch, success_threshold=1.0, **layout))


def with_counters(summed: Tally, extra: int) -> Tally:
    """Add what no rewards show: filtered groups and seen advantages."""
    return replace(summed, filtered=extra, advantage_groups=extra + 2, advantage_zero=1)


tallies = st.one_of(
    st.builds(tally, batches),
    st.builds(with_counters, st.builds(tally, batches), st.integers(0, 5)),
)


def assert_close(one: Tally, two: Tally) -> None:
    """Check that counts agree exactly and sums to 1e-9."""
    for field in fields(Tally):
        got, wanted = getattr(one, field.name), getattr(two, field.name)
        if isinstance(wanted, float):
            assert got == pytest.approx(wanted, rel=1e-9, abs=1e-9), field.name
        else:
            assert got == wanted, field.name


def test_four_groups_by_hand() -> None:
    """All wrong, all right, half credit throughout, and 3 of 4: each lands where it belongs."""
    summed = tally([[0] * 4, [1] * 4, [0.5] * 4, [1, 1, 1, 0]])
    assert summed.counts == {4: (2, 0, 0, 1, 1)}
    assert (summed.all_fail, summed.all_pass, summed.constant) == (1, 1, 1)
    assert (summed.groups, summed.rollouts, summed.collapsed, summed.judged) == (4, 16, 3, 4)
    assert summed.reward_mean == pytest.approx(9 / 16)
    assert (summed.reward_min, summed.reward_max) == (0.0, 1.0)
    # The one live group has std .5 (ddof=1).
    assert (summed.std_sum, summed.std_sumsq) == pytest.approx((0.5, 0.25))
    # Squares sum to 0 + 4 + 1 + 3, less 16 (9/16)^2.
    assert summed.reward_m2 == pytest.approx(8 - 81 / 16)


def test_outcome_without_a_definition_stays_unknown() -> None:
    """Without correct or threshold nothing is judged, and equal rewards are merely constant."""
    summed = Tally.from_groups(Groups.from_rewards([[0, 0], [1, 1], [1, 0]]))
    assert summed.counts == {}
    assert (summed.all_fail, summed.all_pass, summed.constant) == (0, 0, 2)
    assert vitals(summed)["acr_outcome"] is None


def test_collapse_is_max_minus_min_within_the_tolerance() -> None:
    """1e-6 apart is equal, 2e-6 apart is not."""
    groups = Groups.from_rewards([[0.0, 1e-6], [0.0, 2e-6]])
    assert Tally.from_groups(groups).collapsed == 1
    assert Tally.from_groups(groups, tolerance=0.0).collapsed == 0


@given(tallies, tallies, tallies)
def test_sum_is_a_commutative_monoid(one: Tally, two: Tally, three: Tally) -> None:
    """Order and brackets make no difference beyond 1e-9, and Tally() is exactly nothing."""
    assert_close(one + two, two + one)
    assert_close((one + two) + three, one + (two + three))
    assert one + Tally() == one
    assert Tally() + one == one


@given(batches, st.integers(1, 4))
def test_parts_add_up_to_the_whole(batch: list[list[float | None]], parts: int) -> None:
    """Groups dealt to several parts sum to the Tally of all of them."""
    summed = sum((tally(batch[part::parts]) for part in range(parts)), Tally())
    assert_close(summed, tally(batch))


@given(batches, st.integers(0, 10**6))
def test_order_makes_no_difference(batch: list[list[float | None]], seed: int) -> None:
    """Groups and rollouts in any order give the same Tally."""
    rng = random.Random(seed)
    shuffled = [rng.sample(group, len(group)) for group in rng.sample(batch, len(batch))]
    assert_close(tally(shuffled), tally(batch))


@given(tallies)
def test_a_tally_survives_json(summed: Tally) -> None:
    """to_dict is strict JSON and from_dict gives the very same Tally back."""
    text = json.dumps(summed.to_dict(), allow_nan=False)
    assert Tally.from_dict(json.loads(text)) == summed


@given(batches)
def test_vitals_stay_within_bounds(batch: list[list[float | None]]) -> None:
    """Shares lie in [0, 1], no number is NaN, and the sides of the collapse rate add up to it."""
    summed = tally(batch)
    derived = vitals(summed)
    assert not any(value is not None and math.isnan(value) for value in derived.values())
    for key, value in derived.items():
        if key.startswith(("acr", "pass_at", "success", "tail", "shaping")) and value is not None:
            assert 0.0 <= value <= 1.0 + 1e-12, key
    sides = [derived[f"acr_{side}"] for side in ("all_fail", "all_pass", "constant")]
    if summed.groups:
        assert sum(side or 0.0 for side in sides) == pytest.approx(derived["acr"])
    else:
        assert derived["acr"] is None


@given(st.dictionaries(st.integers(0, 6), st.integers(0, 3), max_size=4), st.data())
def test_counts_alone_say_the_same_as_rewards(sizes: dict[int, int], data: st.DataObject) -> None:
    """For binary rewards the number correct is all there is to know."""
    counts = {
        n: data.draw(st.lists(st.integers(0, 2), min_size=n + 1, max_size=n + 1)) for n in sizes
    }
    groups = [
        [1] * c + [0] * (n - c)
        for n, row in counts.items()
        for c, held in enumerate(row)
        for _ in range(held)
    ]
    assert_close(Tally.from_counts(counts), tally(groups))


@pytest.mark.parametrize("counts", [{2: [1, 0]}, {2: [1, 0, -1]}, {-1: []}, {10**7: [1]}])
def test_impossible_counts_are_refused(counts: dict[int, list[int]]) -> None:
    """A histogram of the wrong length or with negative entries names its group size."""
    with pytest.raises(ValueError, match=rf"^counts\.{next(iter(counts))}: "):
        Tally.from_counts(counts)


def test_a_mistyped_size_does_not_fill_the_memory() -> None:
    """A group of 2**40 rollouts is refused by name."""
    groups = Groups.from_columns(
        {
            "size": [2**40],
            "reward_mean": [0],
            "reward_std": [0],
            "reward_min": [0],
            "reward_max": [0],
            "n_correct": [0],
        }
    )
    with pytest.raises(ValueError, match=r"^size: "):
        Tally.from_groups(groups)


def test_unknown_fields_are_refused() -> None:
    """A dictionary with a field that no Tally has is not read in part."""
    with pytest.raises(ValueError, match=r"^mystery: "):
        Tally.from_dict({"groups": 1, "mystery": 2})


def test_a_tally_adds_only_to_a_tally() -> None:
    """Adding anything else is a TypeError."""
    with pytest.raises(TypeError):
        Tally() + 1  # type: ignore[operator]


def test_many_windows_stay_exact() -> None:
    """Ten thousand equal rewards far from 0 have no spread, in one piece or in a thousand."""
    part = tally([[1e6 + 0.1] * 10])
    summed = sum([part] * 1000, Tally())
    assert summed.reward_m2 == 0.0
    assert summed.reward_mean == 1e6 + 0.1


def test_extremes_give_numbers_and_no_warning() -> None:
    """The largest and smallest usable rewards leave every sum finite."""
    summed = tally([[1e100, -1e100], [5e-324, 0.0], [1e100] * 3, [1e308, 0.0]])
    doubled = summed + summed
    for value in vitals(doubled).values():
        assert value is None or math.isfinite(value)
    assert summed.errored == 1


def test_hot_path_cost_does_not_grow_with_groups_in_python() -> None:
    """A thousand groups of 16 take no more Python-level calls than ten groups do."""

    def calls(groups: int) -> int:
        seen = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal seen
            seen += event in ("call", "c_call")

        batch = np.tile(np.eye(16, dtype=np.float32)[:2], (groups // 2, 1))
        sys.setprofile(count)
        try:
            tally(batch)
        finally:
            sys.setprofile(None)
        return seen

    calls(10)
    assert calls(1000) <= calls(10)
    assert calls(1000) == calls(100)
