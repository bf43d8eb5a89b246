"""Rewards in whatever form a trainer has them become the same groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import Groups, Tally
from rlvitals.metrics.groups import Groups as GroupsType

LADDER = [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.5, 0.0]]


def columns(groups: GroupsType) -> dict[str, object]:
    """Give the columns without ids, for comparing."""
    plain = groups.to_columns()
    return {name: plain[name] for name in plain if not name.endswith("_id")}


def test_moments_are_those_of_the_field() -> None:
    """Mean, min and max are plain; the std has ddof=1: [1, 0, 0, 0] has variance .25."""
    groups = Groups.from_rewards(LADDER)
    assert groups.size.tolist() == [4, 4]
    assert groups.reward_mean.tolist() == [0.25, 0.625]
    assert groups.reward_std.tolist() == pytest.approx([0.5, np.std(LADDER[1], ddof=1)])
    assert (groups.reward_min.tolist(), groups.reward_max.tolist()) == ([0, 0], [1, 1])
    assert groups.n_correct is None


@pytest.mark.parametrize(
    "rewards",
    [
        np.array(LADDER),
        np.array(LADDER, np.float32),
        np.array(LADDER, np.float16),
        tuple(tuple(row) for row in LADDER),
        [np.array(row) for row in LADDER],
        [list(map(np.float32, row)) for row in LADDER],
        np.array(LADDER, object),
        np.asfortranarray(LADDER),
    ],
)
def test_form_makes_no_difference(rewards: object) -> None:
    """Arrays of any float type, tuples, rows of arrays and objects give the same groups."""
    wanted = columns(Groups.from_rewards(LADDER, success_threshold=1.0))
    assert columns(Groups.from_rewards(rewards, success_threshold=1.0)) == wanted


def test_tensors_of_any_kind_come_in() -> None:
    """Tensors with gradients, of bfloat16, integers or booleans, whole or in rows, are taken."""
    torch = pytest.importorskip("torch")
    wanted = columns(Groups.from_rewards(LADDER))
    for tensor in (
        torch.tensor(LADDER, requires_grad=True),
        torch.tensor(LADDER, dtype=torch.bfloat16),
        torch.tensor(LADDER, dtype=torch.float64),
        torch.tensor(LADDER).T.contiguous().T,
    ):
        assert columns(Groups.from_rewards(tensor)) == wanted
        assert columns(Groups.from_rewards(list(tensor))) == wanted
    ones = columns(Groups.from_rewards([[1.0, 0.0]]))
    for kind in (torch.bool, torch.int64, torch.uint8):
        assert columns(Groups.from_rewards(torch.tensor([[1, 0]], dtype=kind))) == ones
    scalars = [torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(0)]
    assert columns(Groups.from_rewards([scalars])) == ones
    assert columns(Groups.from_rewards(scalars, group_ids=torch.tensor([7, 7]))) == ones


def test_float64_tensors_keep_their_digits() -> None:
    """A gap that float32 cannot hold survives in a float64 tensor."""
    torch = pytest.importorskip("torch")
    rewards = torch.tensor([[1.0, 1.0 + 1e-12]], dtype=torch.float64)
    assert Groups.from_rewards(rewards).reward_max[0] - 1.0 == pytest.approx(1e-12, rel=1e-3)


def test_booleans_and_integers_are_rewards() -> None:
    """A list of booleans or integers counts as rewards of 0 and 1."""
    assert columns(Groups.from_rewards([[True, False]])) == columns(Groups.from_rewards([[1, 0]]))


def test_ragged_groups_of_eight_seven_one_and_none() -> None:
    """Each group keeps its own size; undefined numbers are NaN, and no warning is given."""
    groups = Groups.from_rewards([[1] * 8, [0] * 7, [1], []], success_threshold=1)
    assert groups.size.tolist() == [8, 7, 1, 0]
    assert np.isnan(groups.reward_std).tolist() == [False, False, True, True]
    assert np.isnan(groups.reward_mean).tolist() == [False, False, False, True]
    assert groups.n_correct is not None
    assert groups.n_correct.tolist() == [8, 0, 1, 0]


@pytest.mark.parametrize(
    ("nothing", "ids"),
    [
        ([], None),
        ([], []),
        ([[]], ["a"]),
        (np.zeros((0, 8)), None),
        (np.zeros((3, 0)), None),
        ([None], [1]),
        ([[None]], None),
    ],
)
def test_no_rewards_are_no_error(nothing: object, ids: object) -> None:
    """A step without rewards is stored as groups without rewards."""
    groups = Groups.from_rewards(nothing, group_ids=ids, success_threshold=1)
    assert groups.size.sum() == 0
    assert Tally.from_groups(groups).groups == 0


@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf, 1e200, -1.7e308])
def test_unusable_rewards_are_errored(bad: float | None) -> None:
    """A missing, non-finite or absurd reward is counted and touches no other number."""
    groups = Groups.from_rewards([[1.0, bad, 0.0], [bad, bad, bad]], success_threshold=1)
    assert groups.errored == 4
    assert columns(groups) == columns(Groups.from_rewards([[1.0, 0.0], []], success_threshold=1))


def test_flat_rewards_are_grouped_by_id() -> None:
    """Interleaved rollouts find their group, and groups stand in order of first appearance."""
    groups = Groups.from_rewards(
        [1, 5, 2, 6, 3], group_ids=["b", "a", "b", "a", "b"], prompt_ids=[9, 4, 9, 4, 9]
    )
    assert groups.group_id == ["b", "a"]
    assert groups.prompt_id == ["9", "4"]
    assert groups.reward_mean.tolist() == [2.0, 5.5]


def test_a_group_whose_rewards_are_all_missing_keeps_its_place() -> None:
    """Ids without usable rewards stay as groups of size 0."""
    groups = Groups.from_rewards([1, None, 0, None], group_ids=[1, 2, 1, 2])
    assert groups.group_id == ["1", "2"]
    assert groups.size.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"rewards": [1.0, 0.0]}, "group_ids"),
        ({"rewards": [1.0, 0.0], "group_ids": [1]}, "group_ids"),
        ({"rewards": [1.0, 0.0], "group_ids": [1, None]}, "group_ids"),
        ({"rewards": [1.0, 0.0], "group_ids": "ab"}, "group_ids"),
        ({"rewards": [1.0, 0.0], "group_ids": 3}, "group_ids"),
        ({"rewards": [1.0, 0.0], "group_ids": [[1], [1]]}, "group_ids"),
        ({"rewards": LADDER, "group_ids": [1, 2, 3]}, "group_ids"),
        ({"rewards": LADDER, "prompt_ids": [1, 2, 3]}, "prompt_ids"),
        ({"rewards": [1, 0], "group_ids": [1, 1], "prompt_ids": "pq"}, "prompt_ids"),
        ({"rewards": [1, 0], "group_ids": [1, 1], "prompt_ids": ["p", "q"]}, "prompt_ids"),
        ({"rewards": LADDER, "correct": [1, 0]}, "correct"),
        ({"rewards": LADDER, "correct": [[1] * 4, [2] * 4]}, "correct"),
        ({"rewards": [[1, 0], [1]], "correct": [[1], [0, 1]]}, "correct"),
        ({"rewards": "1.0"}, "rewards"),
        ({"rewards": ["1", "0"]}, "rewards"),
        ({"rewards": None}, "rewards"),
        ({"rewards": 1.0}, "rewards"),
        ({"rewards": {"a": 1}}, "rewards"),
        ({"rewards": [[1j, 0]]}, "rewards"),
        ({"rewards": [[10**400, 0]]}, "rewards"),
        ({"rewards": [[1, 0], None]}, "rewards"),
        ({"rewards": [[1, 0], 1.0]}, "rewards"),
        ({"rewards": [[[1, 0]], [[1]]]}, "rewards"),
        ({"rewards": np.zeros((2, 2, 2))}, "rewards"),
        ({"rewards": np.array([["2026-01-01"]], "datetime64[s]")}, "rewards"),
    ],
)
def test_unclear_input_is_refused_by_name(arguments: dict[str, object], field: str) -> None:
    """Whatever cannot be read without guessing raises a ValueError that names the field."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        Groups.from_rewards(**arguments)


def test_explicit_verdicts_win_over_the_threshold() -> None:
    """Correct says what is correct, whatever the reward; its absence leaves a group unknown."""
    groups = Groups.from_rewards(
        [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, None]],
        correct=[[True, False, False, False], [True, None, False, False], [1, 0, 0, 1]],
        success_threshold=1.0,
    )
    assert groups.n_correct is not None
    assert groups.n_correct.tolist() == [1, -1, 1]
    assert groups.n_failed is None


@pytest.mark.parametrize(
    ("rewards", "success", "failure", "correct", "failed"),
    [
        ([0.0, 0.5, 1.0, 1.1], 1.0, 0.0, 2, 1),
        ([-1.0, -1.0, 1.0, 0.0], 1.0, 0.0, 1, 3),
        ([-1.0, 0.0, 1.0, 2.0], 0.0, 0.0, 3, 1),
        ([-3.0, -1.0, 0.0, 0.0], -1.0, 0.0, 3, 1),
        ([0.2, 0.4, 0.6, 0.8], 0.5, 0.5, 2, 2),
        ([0.2, 0.4, 0.6, 0.8], 0.5, 0.3, 2, 1),
    ],
)
def test_thresholds(
    rewards: list[float], success: float, failure: float, correct: int, failed: int
) -> None:
    """A reward between the thresholds is partial credit: neither correct nor failed for certain."""
    groups = Groups.from_rewards([rewards], success_threshold=success, failure_threshold=failure)
    assert groups.n_correct is not None
    assert groups.n_failed is not None
    assert (groups.n_correct[0], groups.n_failed[0]) == (correct, failed)


def test_a_threshold_sees_through_float32() -> None:
    """0.9 as float32 is 0.89999998, and reaches a threshold of 0.9 all the same."""
    groups = Groups.from_rewards(np.array([[0.9, 0.89]], np.float32), success_threshold=0.9)
    assert groups.n_correct is not None
    assert groups.n_correct.tolist() == [1]


def test_columns_travel_and_return() -> None:
    """What is written as lists with None reads back as the same columns."""
    groups = Groups.from_rewards(
        [[1, 0, 1], [1], []], correct=[[1, 0, None], [1], []], group_ids=["a", "b", "c"]
    )
    plain = groups.to_columns()
    assert plain["n_correct"] == [None, 1, 0]
    assert plain["reward_std"][1:] == [None, None]  # type: ignore[index]
    assert Groups.from_columns(plain).to_columns() == plain


def test_failures_travel_only_when_they_say_more() -> None:
    """n_failed is left out when it is size - n_correct throughout, and kept with partial credit."""
    binary = Groups.from_rewards([[1, 0], [0, 0]], success_threshold=1)
    assert binary.to_columns()["n_failed"] is None
    partial = Groups.from_rewards([[1, 0], [0.5, 0]], success_threshold=1)
    assert partial.to_columns()["n_failed"] == [1, 1]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"size": None}, "size"),
        ({"size": [None]}, "size"),
        ({"size": [-1]}, "size"),
        ({"size": [1.5]}, "size"),
        ({"reward_mean": [0.5, 0.5]}, "reward_mean"),
        ({"reward_mean": [None]}, "reward_mean"),
        ({"reward_mean": [1e300]}, "reward_mean"),
        ({"reward_std": [float("nan")]}, "reward_std"),
        ({"reward_min": [2.0]}, "reward_min"),
        ({"reward_max": ["x"]}, "reward_max"),
        ({"n_correct": [3]}, "n_correct"),
        ({"group_id": [None]}, "group_id"),
        ({"group_id": ["a", "b"]}, "group_id"),
    ],
)
def test_columns_that_cannot_be_are_refused(change: dict[str, object], field: str) -> None:
    """Columns of unequal length or with impossible numbers raise a ValueError with the name."""
    good = Groups.from_rewards([[1, 0]], success_threshold=1, group_ids=["a"]).to_columns()
    with pytest.raises(ValueError, match=rf"^{field}: "):
        Groups.from_columns({**good, **change})


def test_concat_fills_in_what_a_part_lacks() -> None:
    """Unknown success is -1 and a missing id empty; errored rollouts add up."""
    known = Groups.from_rewards([[1, 0]], correct=[[1, 0]], group_ids=["a"])
    partial = Groups.from_rewards([[0.5, 0, None]], success_threshold=1)
    unknown = Groups.from_rewards([[3, 3]])
    joined = Groups.concat([known, partial, unknown])
    assert joined.n_correct is not None
    assert joined.n_failed is not None
    assert joined.n_correct.tolist() == [1, 0, -1]
    assert joined.n_failed.tolist() == [1, 1, -1]
    assert joined.group_id == ["a", "", ""]
    assert joined.prompt_id is None
    assert joined.errored == 1
    assert len(joined.merged()) == 3
    assert len(Groups.concat([])) == 0


rewards_of_a_group = st.lists(
    st.one_of(st.none(), st.floats(-5, 5), st.sampled_from([0.0, 1.0])), max_size=9
)


@given(st.lists(rewards_of_a_group, max_size=6), st.randoms(use_true_random=False))
def test_a_split_group_merges_to_the_whole(groups: list[list[float | None]], rng: object) -> None:
    """Rollouts of a group dealt to two ranks, in any order, pool to the group as one."""
    flat = [(row, reward) for row, group in enumerate(groups) for reward in group]
    rng.shuffle(flat)  # type: ignore[attr-defined]
    whole, *parts = [
        Groups.from_rewards(
            [reward for _, reward in deal],
            group_ids=[row for row, _ in deal],
            success_threshold=1.0,
        )
        for deal in (flat, flat[::2], flat[1::2])
    ]
    pooled = Groups.concat(parts).merged()
    assert pooled.errored == whole.errored
    assert sorted(pooled.group_id or []) == sorted(whole.group_id or [])
    order = [(pooled.group_id or []).index(name) for name in whole.group_id or []]
    for name in ("size", "reward_mean", "reward_std", "reward_min", "reward_max"):
        got, wanted = getattr(pooled, name)[order], getattr(whole, name)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    assert (pooled.n_correct[order] == whole.n_correct).all()  # type: ignore[index]
    assert (pooled.n_failed[order] == whole.n_failed).all()  # type: ignore[index]


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12))
def test_moments_agree_with_numpy(rewards: list[float]) -> None:
    """Mean and std are those of NumPy; equal rewards have a std of exactly 0."""
    groups = Groups.from_rewards([rewards])
    assert groups.reward_mean[0] == pytest.approx(np.mean(rewards), abs=1e-9)
    assert groups.reward_std[0] == pytest.approx(np.std(rewards, ddof=1), abs=1e-9)
    assert Groups.from_rewards([[rewards[0]] * 7]).reward_std[0] == 0.0
