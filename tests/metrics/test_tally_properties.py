"""However groups are cut up and put together again, they sum to one Tally and sound vitals."""

from __future__ import annotations

import math
import random
from dataclasses import fields, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import Groups, Tally, describe, vitals

reward = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, -1.0]), st.floats(-10, 10), st.none(), st.just(math.nan)
)
# Groups of one value, or few would have collapsed.
group = st.lists(reward, max_size=9) | st.builds(
    lambda value, size: [value] * size, st.sampled_from([0.0, 1.0, 0.25]), st.integers(1, 9)
)
batches = st.lists(group, max_size=12)
definitions = st.sampled_from([None, 1.0, 0.5])
seeds = st.integers(0, 10**6)

EXACT = [field.name for field in fields(Tally) if field.type not in ("float", float)]
MOMENTS = ("reward_mean", "reward_m2", "std_sum", "std_sumsq")


def tally(batch: list[list[float | None]], success_threshold: float | None = 1.0) -> Tally:
    """Sum up rewards."""
    return Tally.from_groups(Groups.from_rewards(batch, success_threshold=success_threshold))


def assert_same(one: Tally, two: Tally, scale: float = 10.0) -> None:
    """Check that counts and extremes agree exactly, and moments to 1e-12 of the rewards' scale."""
    for name in (*EXACT, "reward_min", "reward_max"):
        assert getattr(one, name) == getattr(two, name), name
    size = max(1, one.rollouts)
    for name in MOMENTS:
        slack = 1e-12 * size * scale * scale
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-12, abs=slack), name


def merged(parts: list[Tally], source: random.Random) -> Tally:
    """Add up tallies two at a time, any two of them next, until one is left."""
    while len(parts) > 1:
        source.shuffle(parts)
        parts.append(parts.pop() + parts.pop())
    return parts[0] if parts else Tally()


def test_all_but_six_numbers_are_counts() -> None:
    """What must agree exactly is every field but four moments and two extremes."""
    assert {field.name for field in fields(Tally)} - set(EXACT) == {
        *MOMENTS,
        "reward_min",
        "reward_max",
    }


@given(batches, definitions, st.integers(1, 5), seeds)
def test_any_partition_in_any_tree_sums_to_the_whole(
    batch: list[list[float | None]], threshold: float | None, parts: int, seed: int
) -> None:
    """Groups dealt out at random, some parts empty, and merged in any order and brackets."""
    source = random.Random(seed)
    dealt: list[list[list[float | None]]] = [[] for _ in range(parts)]
    for group in batch:
        source.choice(dealt).append(group)
    assert_same(merged([tally(part, threshold) for part in dealt], source), tally(batch, threshold))


@given(batches, definitions, st.integers(1, 5), seeds)
def test_merging_all_at_once_is_adding(
    batch: list[list[float | None]], threshold: float | None, parts: int, seed: int
) -> None:
    """Tally.total of a random partition, its parts with counters, is what + gives, in any order."""
    source = random.Random(seed)
    dealt = [
        replace(tally(batch[part::parts], threshold), filtered=part, advantage_groups=part)
        for part in range(parts)
    ]
    wanted = reduce(add, dealt, Tally())
    assert_same(Tally.total(dealt), wanted)
    assert_same(Tally.total(iter(source.sample(dealt, parts))), wanted)
    assert Tally.total([]) == Tally()
    assert_same(Tally.total(dealt[:1]), dealt[0])


@given(batches, definitions, seeds)
def test_one_group_at_a_time_sums_to_the_whole(
    batch: list[list[float | None]], threshold: float | None, seed: int
) -> None:
    """The finest cut of all, with groups and the rollouts of each shuffled on the way."""
    source = random.Random(seed)
    shuffled = [source.sample(group, len(group)) for group in source.sample(batch, len(batch))]
    alone = [tally([group], threshold) for group in shuffled]
    assert_same(reduce(add, alone, Tally()), tally(batch, threshold))


@given(st.lists(st.lists(st.floats(-10, 10), min_size=1, max_size=6), min_size=1, max_size=8))
def test_moments_are_those_of_all_rewards(batch: list[list[float]]) -> None:
    """Merged from single groups: mean and squared deviations as NumPy has them over everything."""
    summed = reduce(add, (tally([group]) for group in batch))
    together = np.concatenate([np.array(group) for group in batch])
    assert summed.reward_mean == pytest.approx(together.mean(), rel=1e-12, abs=1e-12)
    assert summed.reward_m2 == pytest.approx(together.var() * together.size, rel=1e-9, abs=1e-9)
    stds = [np.std(group, ddof=1) for group in batch if len(group) > 1]
    assert summed.std_sum == pytest.approx(sum(stds), rel=1e-9, abs=1e-9)
    assert (summed.reward_min, summed.reward_max) == (together.min(), together.max())


@given(batches, definitions)
def test_twice_the_groups_say_the_same(
    batch: list[list[float | None]], threshold: float | None
) -> None:
    """Every vital that is no count, and no std over n - 1, is unchanged when each comes twice."""
    summed = tally(batch, threshold)
    once, twice = vitals(summed), vitals(summed + summed)
    for key, value in once.items():
        if key in ("groups", "rollouts", "singletons"):
            assert twice[key] == 2 * (value or 0)
        elif value is None:
            assert twice[key] is None or key == "reward_std", key
        elif key != "reward_std":
            assert twice[key] == pytest.approx(value, rel=1e-12, abs=1e-12), key


@given(batches, batches, definitions)
def test_a_merged_share_lies_between_its_parts(
    one: list[list[float | None]], two: list[list[float | None]], threshold: float | None
) -> None:
    """A collapse or success rate of a sum is never beyond those of what was summed."""
    parts = [vitals(tally(batch, threshold)) for batch in (one, two)]
    whole = vitals(tally(one, threshold) + tally(two, threshold))
    for key in ("acr", "acr_all_fail", "acr_all_pass", "acr_outcome", "success_rate", "pass_at_1"):
        known = [part[key] for part in parts if part.get(key) is not None]
        if known:
            assert min(known) - 1e-12 <= whole[key] <= max(known) + 1e-12, key


@given(batches, definitions, st.tuples(*[st.integers(0, 5)] * 3))
def test_every_vital_keeps_the_bounds_of_the_catalog(
    batch: list[list[float | None]], threshold: float | None, extra: tuple[int, int, int]
) -> None:
    """With filtered groups and seen advantages too, no vital leaves [low, high] of its entry."""
    filtered, zero, alive = extra
    counters = {"filtered": filtered, "advantage_groups": zero + alive, "advantage_zero": zero}
    for key, value in vitals(replace(tally(batch, threshold), **counters)).items():
        metric = describe(key)
        assert metric is not None
        if value is None:
            continue
        assert math.isfinite(value), key
        assert metric.low is None or value >= metric.low - 1e-12, key
        assert metric.high is None or value <= metric.high + 1e-12, key


@given(batches, st.sampled_from([1.0, 0.5]))
def test_pass_at_k_never_falls_in_k(batch: list[list[float | None]], threshold: float) -> None:
    """More tries cannot make a success less likely; at k = N it is the share of groups with one."""
    summed = tally(batch, threshold)
    passes = {
        int(key.removeprefix("pass_at_")): value
        for key, value in vitals(summed).items()
        if key.startswith("pass_at_")
    }
    in_order = [passes[k] for k in sorted(passes)]
    assert all(low <= high + 1e-12 for low, high in pairwise(in_order))
    if len(summed.counts) == 1:
        ((n, row),) = summed.counts.items()
        assert passes[n] == pytest.approx(1 - row[0] / sum(row))


@given(batches, definitions, st.integers(0, 5))
def test_causes_never_exceed_the_collapse(
    batch: list[list[float | None]], threshold: float | None, filtered: int
) -> None:
    """All failed, all passed and constant add up to the rate less what was filtered before."""
    summed = replace(tally(batch, threshold), filtered=filtered)
    derived = vitals(summed)
    if derived["acr"] is None:
        assert summed.groups + filtered == 0
        return
    sides = sum(derived[f"acr_{side}"] or 0.0 for side in ("all_fail", "all_pass", "constant"))
    assert sides <= derived["acr"] + 1e-12
    gap = filtered / (summed.groups + filtered)
    assert derived["acr"] - sides == pytest.approx(gap, abs=1e-12)


@given(st.lists(st.lists(st.integers(-4, 6), max_size=6), max_size=12), st.sampled_from([1.0, 0.5]))
def test_outcome_collapse_covers_reward_collapse(
    quarters: list[list[int]], threshold: float
) -> None:
    """Equal rewards have one outcome: groups of constant outcome are the collapsed and shaped."""
    summed = tally([[number / 4 for number in group] for group in quarters], threshold)
    uniform = sum(row[0] + row[-1] for row in summed.counts.values())
    assert summed.judged == summed.groups
    assert uniform == summed.collapsed + summed.shaping_only
