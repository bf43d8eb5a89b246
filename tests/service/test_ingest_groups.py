"""Groups that are filtered, split, partial, carried or repeated still count once and rightly."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from tests.serving import Api, Service

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally
from rlvitals_service import packing


def groups(rewards: list[Any], **ids: list[str]) -> dict[str, Any]:
    """Reduce lists of 0/1 rewards to the columns of a record."""
    found = Groups.from_rewards(rewards, success_threshold=1.0)
    return {name: c for name, c in found.to_columns().items() if c is not None} | ids


def only_step(service: Service, run_id: str) -> dict[str, Any]:
    """Read the one step row of a run."""
    (row,) = service.rows("SELECT * FROM step WHERE run_id = %s", run_id)
    return row


def tally(row: dict[str, Any], column: str = "tally") -> Tally:
    """Unpack a stored tally."""
    return Tally.from_dict(msgspec.msgpack.decode(row[column]))


def test_dynamic_sampling_with_the_total_sent(api: Api, service: Service) -> None:
    """Case 14: 40 of 128 groups kept and the 88 removed ones counted: ACR 88/128 = .6875."""
    run_id = api.new_run()
    live = groups([[0, 1]] * 40)
    api.send(run_id, {"step": 1, "stage": "trained", "groups": live, "filtered": 88})
    row = only_step(service, run_id)
    assert row["acr"] == 0.6875
    assert row["acr_trained"] == 0.0


def test_dynamic_sampling_with_only_the_kept_groups(api: Api, service: Service) -> None:
    """Case 14: only the kept groups sent: ACR is not measurable, never 0."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "stage": "trained", "groups": groups([[0, 1]] * 40)})
    row = only_step(service, run_id)
    assert row["acr"] is None
    assert row["acr_pooled"] is None
    assert row["success_rate"] is None
    assert row["acr_trained"] == 0.0
    assert row["reward_mean"] == 0.5


def test_sampled_and_trained_stand_side_by_side(api: Api, service: Service) -> None:
    """What was sampled gives ACR, what was trained on gives ACR of the trained, in any order."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "stage": "trained", "groups": groups([[0, 1]] * 3)})
    api.send(run_id, {"step": 1, "groups": groups([[0, 1]] * 3 + [[0, 0]] * 3)})
    row = only_step(service, run_id)
    assert (row["acr"], row["acr_trained"], row["groups"]) == (0.5, 0.0, 6.0)
    assert tally(row, "tally_trained").groups == 3


def test_singletons_are_no_groups(api: Api, service: Service) -> None:
    """Case 22: a group of one has no std, is not in the ACR, and is counted as a singleton."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "groups": groups([[1], [0, 1]])})
    row = only_step(service, run_id)
    assert (row["acr"], row["groups"], row["singletons"], row["rollouts"]) == (0.0, 1.0, 1.0, 3.0)


def test_missing_rewards_stay_missing(api: Api, service: Service) -> None:
    """Case 25: of rewards 1, none, 0, 1 three count; mean 2/3, and one rollout is errored."""
    run_id = api.new_run()
    columns = groups([[1, None, 0, 1]])
    api.send(run_id, {"step": 1, "groups": columns, "errored": 1})
    row = only_step(service, run_id)
    assert row["reward_mean"] == pytest.approx(2 / 3)
    assert row["rollouts"] == 3.0
    assert tally(row).errored == 1


def test_a_generation_that_is_reused_counts_once(api: Api, service: Service) -> None:
    """Case 41: the same generation at four steps counts at the first, and is marked after."""
    run_id = api.new_run()
    dead = groups([[0, 0]] * 4)
    api.send(run_id, {"step": 1, "generation": 7, "groups": dead, "scalars": {"loss": 1.0}})
    for step in (2, 3, 4):
        carried = {"step": step, "generation": 7, "groups": dead, "carried": True}
        api.send(run_id, {**carried, "scalars": {"loss": float(step)}})
    rows = service.rows("SELECT * FROM step WHERE run_id = %s ORDER BY step", run_id)
    assert [row["acr"] for row in rows] == [1.0, None, None, None]
    assert [row["loss"] for row in rows] == [1.0, 2.0, 3.0, 4.0]
    assert [row["extra"] for row in rows] == [None, *[{"carried": 1.0}] * 3]
    total = sum((tally(row) for row in rows if row["tally"]), Tally())
    assert total.groups == 4


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_a_group_split_over_ranks_is_one_group(
    api: Api, service: Service, order: tuple[int, ...]
) -> None:
    """Case 53: each rank sends part of each group; they are merged, whichever comes first."""
    run_id = api.new_run()
    rewards = {"a": [0, 0, 1], "b": [1, 1, 1], "c": [0, 0, 0]}
    for rank in order:
        own = groups([[row[rank], row[rank]] for row in rewards.values()], group_id=list(rewards))
        record = {"step": 1, "source": str(rank), "groups": own}
        api.send(run_id, record)
        assert api.send(run_id, record)["duplicates"] == 1
    row = only_step(service, run_id)
    # Each rank alone sees nothing but equal rewards; the groups of six are not all dead.
    assert row["groups"] == 3.0
    assert row["acr"] == pytest.approx(2 / 3)
    assert tally(row).counts == {6: (1, 0, 1, 0, 0, 0, 1)}
    assert row["reward_mean"] == pytest.approx(5 / 9 - 1 / 9)


def test_partial_groups(api: Api, service: Service) -> None:
    """Case 54: sizes 8, 7, 1, 0 are two groups, a singleton and a dropped one."""
    run_id = api.new_run()
    rewards = [[0] * 8, [1] * 6 + [0], [1], []]
    api.send(run_id, {"step": 1, "groups": groups(rewards)})
    row = only_step(service, run_id)
    found = tally(row)
    assert (found.groups, found.singletons, found.dropped) == (2, 1, 1)
    assert row["acr"] == 0.5
    (stored,) = service.rows("SELECT * FROM step_groups WHERE run_id = %s", run_id)
    assert packing.unpack(stored["codec"], stored["payload"]).size.tolist() == [8, 7, 1, 0]


def test_the_same_prompt_twice_is_two_groups(api: Api, service: Service) -> None:
    """Case 57: two groups of one prompt stay two groups."""
    run_id = api.new_run()
    twice = groups([[0, 0, 0, 0], [0, 1, 0, 1]], prompt_id=["p", "p"])
    api.send(run_id, {"step": 1, "groups": twice})
    row = only_step(service, run_id)
    assert (row["groups"], row["acr"]) == (2.0, 0.5)


def test_generations_of_a_step_add_up(api: Api, service: Service) -> None:
    """Several generations and ranks at a step are pooled: counts add, nothing is averaged twice."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "generation": 0, "groups": groups([[0, 0]])})
    api.send(run_id, {"step": 1, "generation": 1, "groups": groups([[0, 1]] * 9)})
    row = only_step(service, run_id)
    assert (row["acr"], row["groups"]) == (0.1, 10.0)


def test_ready_made_counts(api: Api, service: Service) -> None:
    """Counts alone give the same vitals as the groups they stand for."""
    rewards = [[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, 1, 1]]
    by_groups, by_counts = api.new_run(), api.new_run()
    api.send(by_groups, {"step": 1, "groups": groups(rewards)})
    api.send(by_counts, {"step": 1, "counts": {"3": [1, 1, 0, 2]}})
    columns = ("acr", "acr_all_fail", "acr_all_pass", "success_rate", "pass_at_1", "pass_at_2")
    one, two = only_step(service, by_groups), only_step(service, by_counts)
    assert [one[name] for name in columns] == pytest.approx([two[name] for name in columns])
    assert one["pass_at_2"] == pytest.approx((0 + 2 / 3 + 1 + 1) / 4)


def test_sources_are_averaged_and_generations_replace(api: Api, service: Service) -> None:
    """A scalar of several ranks is their mean, of several generations the newest; NaN shows."""
    run_id = api.new_run()
    api.send(
        run_id,
        {"step": 1, "source": "0", "scalars": {"loss": 9.0, "kl": 1.0}},
        {"step": 1, "source": "0", "generation": 1, "scalars": {"loss": 1.0}},
        {"step": 1, "source": "1", "scalars": {"loss": 3.0, "kl": "NaN"}},
    )
    row = only_step(service, run_id)
    assert row["loss"] == 2.0
    assert row["kl"] != row["kl"]


def test_advantages_give_the_effective_rate(api: Api, service: Service) -> None:
    """Advantage counts may follow the groups in a record of their own."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "groups": groups([[0, 0], [0, 1]])})
    api.send(run_id, {"step": 1, "advantage_groups": 2, "advantage_zero": 0, "applied": 4})
    row = only_step(service, run_id)
    assert (row["acr"], row["acr_effective"], row["applied"]) == (0.5, 0.0, 4)
