"""Merging the words of a source, and deriving a step from its parts; no database needed."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally
from rlvitals.metrics.vitals import vitals
from rlvitals.records import GroupColumns, StepRecord
from rlvitals_service import packing
from rlvitals_service.parts import (
    Part,
    canonical_name,
    merge,
    pack_scalars,
    pack_tally,
    read_counts,
    unpack_scalars,
    unpack_tally,
)
from rlvitals_service.vitals import derive

ragged = st.lists(
    st.lists(st.sampled_from([0.0, 0.1, 1.0, math.nan]), max_size=5), min_size=1, max_size=6
)


def columns(rewards: list[list[float]], **ids: Any) -> GroupColumns:
    """Reduce rewards to what travels."""
    found = Groups.from_rewards(rewards, success_threshold=1.0).to_columns()
    return GroupColumns(**{**found, **ids})


def of_part(part: Part) -> Groups:
    """Give the groups that a part still holds."""
    assert part.groups is not None
    return part.groups


@given(rewards=ragged)
def test_packing_keeps_every_bit(rewards: list[list[float]]) -> None:
    """Packed groups come back equal, NaN, unknown and labels included."""
    ids = [f"g{number}" for number in range(len(rewards))]
    groups = Groups.from_rewards(rewards, success_threshold=1.0, prompt_ids=ids)
    back = packing.unpack(packing.CODEC, packing.pack(groups))
    for name in (*packing.INTEGERS, *packing.FLOATS):
        one, two = getattr(groups, name), getattr(back, name)
        assert np.array_equal(one, two, equal_nan=True), name
        assert one is None or one.dtype == two.dtype
    assert back.prompt_id == ids
    assert packing.pack(back) == packing.pack(groups)


def test_a_later_codec_is_refused() -> None:
    """A payload of a codec this version does not know is an error, not garbage."""
    with pytest.raises(ValueError, match="codec 99"):
        packing.unpack(99, b"")


@given(
    scalars=st.dictionaries(st.text(min_size=1, max_size=5), st.floats(), max_size=5),
    counts=st.dictionaries(
        st.integers(2, 4), st.lists(st.integers(0, 3), min_size=5, max_size=5), max_size=2
    ),
)
def test_stored_parts_come_back(scalars: dict[str, float], counts: dict[int, list[int]]) -> None:
    """Scalars and tallies come back as they were, non-finite values included."""
    back = unpack_scalars(pack_scalars(scalars))
    assert back.keys() == scalars.keys()
    assert repr(sorted(back.items())) == repr(sorted(scalars.items()))
    tally = Tally.from_counts({n: row[: n + 1] for n, row in counts.items()})
    assert unpack_tally(pack_tally(tally)) == tally


def test_merging_a_record_twice_changes_nothing() -> None:
    """The content of a part after a resend is the content before it."""
    record = StepRecord(1, groups=columns([[0, 1], [1, 1]]), dropped=2, scalars={"loss": 1.0})
    once = merge(None, record)
    assert merge(once, record).content() == once.content()
    other = StepRecord(1, scalars={"kl": 2.0})
    both = merge(once, other)
    assert both.content() != once.content()
    assert merge(merge(both, record), other).content() == both.content()
    assert both.dropped == 2


REFUSED = [
    (StepRecord(1, scalars={"": 1.0}), "scalars"),
    (StepRecord(1, scalars={"x" * 201: 1.0}), "scalars"),
    (StepRecord(1, scalars={str(n): 1.0 for n in range(2001)}), "scalars"),
    (StepRecord(1, time=math.nan), "time"),
    (StepRecord(1, dropped=2**41), "dropped"),
    (StepRecord(1, advantage_groups=1, advantage_zero=2), "advantage_zero"),
    (StepRecord(1, counts={"2": [1, 0, 0]}, groups=columns([[1, 0]])), "counts"),
    (StepRecord(1, groups=columns([[1, 0]], group_id=["a", "b"])), "groups.group_id"),
    (StepRecord(1, groups=columns([[1, 0]], prompt_id=["a" * 513])), "groups.prompt_id[0]"),
    (StepRecord(1, groups=columns([[1, 0]], n_correct=[3])), "groups.n_correct"),
    (StepRecord(1, groups=columns([[1, 0]], size=[10**6])), "groups.size"),
    (StepRecord(1, counts={"x": [1]}), "counts['x']"),
    (StepRecord(1, counts={"99999": [1]}), "counts['99999']"),
    (StepRecord(1, counts={"2": [2**40, 1, 0]}), "counts['2']"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_storage_would_not_survive_is_refused(number: int) -> None:
    """The reason begins with the name of the field."""
    record, field = REFUSED[number]
    with pytest.raises(ValueError, match=rf"^{re.escape(field)}: "):
        merge(None, record)


def test_counts_of_other_sizes_add_up() -> None:
    """Counts for several group sizes are one tally; sizes 0 and 1 are dropped and singletons."""
    tally = read_counts({"0": [2], "1": [1, 3], "2": [1, 1, 0]})
    assert (tally.groups, tally.singletons, tally.dropped) == (2, 4, 2)


@given(
    rewards=st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=6), min_size=1),
    cuts=st.lists(st.integers(1, 5), max_size=2, unique=True),
)
def test_a_split_group_is_whole_again(rewards: list[list[float]], cuts: list[int]) -> None:
    """However groups are cut over ranks and ordered, the vitals are those of the whole groups."""
    ids = [str(number) for number in range(len(rewards))]
    edges = [0, *sorted(cuts), 6]
    parts = []
    for rank, (start, stop) in enumerate(itertools.pairwise(edges)):
        own = columns([row[start:stop] for row in rewards], group_id=ids)
        parts.append(merge(None, StepRecord(1, source=str(rank), groups=own)))
    whole = Tally.from_groups(Groups.from_rewards(rewards, success_threshold=1.0))
    for order in itertools.permutations(parts):
        step = derive((1, "train", 1), list(order), of_part)
        assert step.tally is not None
        assert step.tally.counts == whole.counts
        assert (step.tally.groups, step.tally.collapsed) == (whole.groups, whole.collapsed)
        expected = {name: v for name, v in vitals(whole).items() if v is not None}
        assert step.values == pytest.approx(expected)


def test_nothing_known_says_nothing() -> None:
    """A step with scalars alone has no vitals, neither 0 nor 1."""
    part = merge(None, StepRecord(1, scalars={"loss": 0.0}))
    step = derive((1, "train", 1), [part], of_part)
    assert step.values == {"loss": 0.0}
    assert step.tally is None


def test_a_step_without_rewards_has_no_rate() -> None:
    """Case 12: groups without any reward are stored; ACR is null, not 0 or 1."""
    part = merge(None, StepRecord(1, groups=columns([[], []])))
    step = derive((1, "train", 1), [part], of_part)
    assert "acr" not in step.values
    assert step.tally is not None
    assert step.tally.dropped == 2


def test_names_are_kept_storable() -> None:
    """A name is canonical, and without what PostgreSQL refuses."""
    assert canonical_name("train/completion_length") == "response_length_mean"
    assert canonical_name("a\x00\ud83d") == "a\ufffd\ufffd"
