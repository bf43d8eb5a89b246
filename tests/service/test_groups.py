"""What each group of a step was worth, as stored and as its Tally counts it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.serving import Api

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally
from rlvitals_service.groups import describe, states


def columns(rewards: list[list[float]], **ids: list[str]) -> dict[str, Any]:
    """Reduce rewards to the columns of a record."""
    found = Groups.from_rewards(rewards, success_threshold=1.0).to_columns()
    return {**{name: column for name, column in found.items() if column is not None}, **ids}


def test_each_group_says_what_it_is_worth(api: Api) -> None:
    """All kinds of groups come back with their numbers, their state and the step's Tally."""
    run_id = api.new_run()
    rewards = [[1, 0, 1, 0], [0] * 4, [1] * 4, [0.5] * 4, [0.1, 0.2, 0.3, 0.4], [1], []]
    ids = {"group_id": list("abcdefg"), "prompt_id": [f"p{i}" for i in range(7)]}
    api.send(run_id, {"step": 3, "groups": columns(rewards, **ids)})
    answer = api.get(f"/runs/{run_id}/groups", step=3).json
    assert [group["state"] for group in answer["groups"]] == [
        *("live", "all_fail", "all_pass", "constant", "shaping_only", "singleton", "dropped")
    ]
    live, *_, singleton, dropped = answer["groups"]
    assert live == {
        "group_id": "a",
        "prompt_id": "p0",
        "size": 4,
        "n_correct": 2,
        "success_rate": 0.5,
        "reward_mean": 0.5,
        "reward_std": np.std([1, 0, 1, 0], ddof=1),
        "reward_min": 0.0,
        "reward_max": 1.0,
        "state": "live",
        "source": "0",
    }
    assert singleton["reward_std"] is None
    assert dropped["reward_mean"] is None
    assert dropped["success_rate"] is None
    assert (answer["step"], answer["attempt"], answer["stage"]) == (3, 1, "sampled")
    assert answer["tally"]["groups"] == 5
    assert answer["tally"]["all_fail"] == 1


def test_a_group_split_over_ranks_is_pooled(api: Api) -> None:
    """Two ranks that hold half a group each show one group, from both."""
    run_id = api.new_run()
    for source, rewards in (("0", [[1, 1]]), ("1", [[0, 0]])):
        record = {"step": 1, "source": source, "groups": columns(rewards, group_id=["g"])}
        api.send(run_id, record)
    (group,) = api.get(f"/runs/{run_id}/groups").json["groups"]
    assert (group["size"], group["n_correct"], group["state"]) == (4, 2, "live")
    assert group["source"] == "0, 1"


def test_the_newest_step_and_attempt_come_unless_told(api: Api) -> None:
    """Without a step it is the newest one; a repeated step shows its newest attempt."""
    run_id = api.new_run()
    api.send(run_id, *({"step": s, "groups": columns([[1, 0]])} for s in (1, 2, 3)))
    api.send(run_id, {"step": 2, "attempt": 2, "groups": columns([[0, 0]])})
    newest = api.get(f"/runs/{run_id}/groups").json
    assert (newest["step"], newest["attempt"]) == (2, 2)
    assert api.get(f"/runs/{run_id}/groups", step=2).json["groups"][0]["state"] == "all_fail"
    first = api.get(f"/runs/{run_id}/groups", step=2, attempt=1).json
    assert first["groups"][0]["state"] == "live"


def test_stages_are_apart(api: Api) -> None:
    """Groups before dynamic sampling are shown first; those trained on are there to ask."""
    run_id = api.new_run()
    api.send(
        run_id,
        {"step": 1, "groups": columns([[0, 0], [1, 0]])},
        {"step": 1, "stage": "trained", "groups": columns([[1, 0]])},
    )
    assert len(api.get(f"/runs/{run_id}/groups").json["groups"]) == 2
    trained = api.get(f"/runs/{run_id}/groups", stage="trained").json
    assert [group["state"] for group in trained["groups"]] == ["live"]
    assert trained["tally"]["groups"] == 1


def test_a_step_without_groups_is_empty(api: Api) -> None:
    """Nothing sent is nothing shown, not an error; a wrong step names its field."""
    run_id = api.new_run()
    answer = api.get(f"/runs/{run_id}/groups", step=7).json
    assert (answer["groups"], answer["tally"], answer["step"]) == ([], None, 7)
    wrong = api.get(f"/runs/{run_id}/groups", step="last")
    assert (wrong.status, wrong.json["error"]["field"]) == (422, "step")


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=5), min_size=1, max_size=20))
def test_states_add_up_to_the_tally(rewards: list[list[float]]) -> None:
    """However many groups, each state occurs exactly as often as the Tally counts it."""
    groups = Groups.from_rewards(rewards, success_threshold=1.0)
    found, tally = states(groups), Tally.from_groups(groups)
    for state in ("all_fail", "all_pass", "constant", "shaping_only", "dropped"):
        assert found.count(state) == getattr(tally, state)
    assert found.count("singleton") == tally.singletons


def test_a_thousand_groups_are_described() -> None:
    """A large step comes whole and in order, also without ids."""
    rewards = np.random.default_rng(0).integers(0, 2, (1024, 8)).tolist()
    found = describe([("0", Groups.from_rewards(rewards, success_threshold=1.0))])
    assert [group["n_correct"] for group in found] == [sum(row) for row in rewards]
    assert describe([]) == []
