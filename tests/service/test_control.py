"""Directives: versioned wishes, checked at the door, and what the trainer made of them."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from tests.serving import Api, Service

from rlvitals_service.listen import SWEEP_SECONDS

FOCAL = {"mode": "on", "focal": {"gamma": 1.0}}
ABLE = {"abilities": ["focal", "avspo"]}


@pytest.fixture
def run_id(api: Api) -> str:
    """Introduce a run whose trainer can do everything."""
    return api.new_run(**ABLE)


def put(api: Api, run_id: str, **wish: Any) -> Any:
    """Issue a directive that must be taken."""
    answer = api.put(f"/runs/{run_id}/directive", wish)
    assert answer.status == 200, answer.body
    return answer.json


def current(api: Api, run_id: str, **query: Any) -> Any:
    """Ask for the directive in force."""
    return api.get(f"/runs/{run_id}/directive", **query).json["directive"]


def test_a_directive_is_handed_to_the_trainer(api: Api, run_id: str) -> None:
    """What a person puts is what the next ingest answer carries, defaults spelled out."""
    assert current(api, run_id) is None
    issued = put(api, run_id, mode="on", avspo={"alpha": 0.3}, reason="ACR 60 %")
    assert (issued["version"], issued["state"], issued["issued_by"]) == (1, "pending", "admin")
    assert issued["avspo"]["alpha"] == 0.3
    assert issued["avspo"]["threshold"] == 0.5
    handed = api.send(run_id, {"step": 1})["directive"]
    assert {name: issued[name] for name in handed} | {"issued_at": ""} == handed | {"issued_at": ""}


def test_the_trainers_words_move_the_state(api: Api, run_id: str) -> None:
    """Pending, acknowledged, effective, superseded, withdrawn: each follows from what came in."""
    put(api, run_id, **FOCAL)
    api.send(run_id, acknowledgements=[{"version": 1, "step": 5}])
    assert current(api, run_id)["state"] == "acknowledged"
    groups = {
        "size": [2],
        "reward_mean": [0.5],
        "reward_std": [0.7],
        "reward_min": [0.0],
        "reward_max": [1.0],
        "n_correct": [1],
    }
    api.send(run_id, {"step": 6, "applied": 1, "groups": groups})
    effective = current(api, run_id)
    assert effective["state"] == "effective"
    assert (effective["acknowledged_step"], effective["effective_step"]) == (5, 6)

    assert put(api, run_id, mode="off", reason="enough")["state"] == "pending"
    api.send(run_id, acknowledgements=[{"version": 2, "step": 9}])
    log = api.get(f"/runs/{run_id}/directives").json["directives"]
    assert [(d["version"], d["state"]) for d in log] == [(2, "withdrawn"), (1, "superseded")]
    assert log[1]["acks"][0]["step"] == 5


def test_a_refusal_carries_the_trainers_reason(api: Api, run_id: str) -> None:
    """One refusing rank shows, in its own words."""
    put(api, run_id, **FOCAL)
    words = "no std division in this trainer"
    ack = {"version": 1, "step": 5, "status": "refused", "reason": words, "source": "3"}
    api.send(run_id, acknowledgements=[ack])
    found = current(api, run_id)
    assert (found["state"], found["refusal"]) == ("refused", words)


def test_a_directive_expires_at_its_step(api: Api, run_id: str) -> None:
    """Once the run has come that far, the directive says so."""
    put(api, run_id, **FOCAL, expires_at_step=10)
    api.send(run_id, {"step": 9, "scalars": {"loss": 1.0}})
    assert current(api, run_id)["state"] == "pending"
    api.send(run_id, {"step": 10, "scalars": {"loss": 1.0}})
    assert current(api, run_id)["state"] == "expired"


def test_expected_version_guards_against_a_second_hand(api: Api, run_id: str) -> None:
    """Who has not seen the newest version is told so instead of overwriting it."""
    put(api, run_id, **FOCAL, expected_version=0)
    late = api.put(f"/runs/{run_id}/directive", {**FOCAL, "expected_version": 0})
    assert (late.status, late.json["error"]["field"]) == (409, "expected_version")
    assert put(api, run_id, mode="off", expected_version=1)["version"] == 2


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"mode": "shadow", "focal": {"gamma": 1}}, "mode"),
        ({"mode": "maybe"}, "mode"),
        ({"mode": "on"}, "focal"),
        ({"mode": "on", "focal": {}}, "focal.gamma"),
        ({"mode": "on", "focal": {"gamma": -1}}, "focal.gamma"),
        ({"mode": "on", "focal": {"gamma": float("nan")}}, "focal.gamma"),
        ({"mode": "on", "focal": {"gamma": "big"}}, "focal.gamma"),
        ({"mode": "on", "focal": {"gamma": 1, "beta": 2}}, "focal.beta"),
        ({"mode": "on", "avspo": {"alpha": 7e9}}, "avspo.alpha"),
        ({"mode": "on", "focal": {"gamma": 1}, "avspo": {"kap": 1}}, "avspo.kap"),
        ({"mode": "on", "focal": {"gamma": 1}, "sharpness": {"rho": 0.1}}, "sharpness"),
        ({"mode": "on", "focal": 3}, "focal"),
        ({**FOCAL, "expires_at_step": 0}, "expires_at_step"),
        ({**FOCAL, "reason": "x" * 3000}, "reason"),
        ({**FOCAL, "colour": "blue"}, "colour"),
    ],
)
def test_a_wrong_wish_names_its_field(
    api: Api, run_id: str, wish: dict[str, Any], field: str
) -> None:
    """Nothing reaches a trainer that it could not carry out."""
    answer = api.put(f"/runs/{run_id}/directive", wish)
    assert answer.status == 422, answer.body
    assert answer.json["error"]["field"] == field
    assert current(api, run_id) is None


def test_a_wish_that_would_be_void_at_once_is_refused(api: Api, run_id: str) -> None:
    """An expiry behind the run's last step cannot be meant."""
    api.send(run_id, {"step": 50, "scalars": {"loss": 1.0}})
    answer = api.put(f"/runs/{run_id}/directive", {**FOCAL, "expires_at_step": 50})
    assert (answer.status, answer.json["error"]["field"]) == (422, "expires_at_step")


def test_a_trainer_without_the_ability_is_not_asked(api: Api) -> None:
    """The reason is said where the wish is made, not found out in training."""
    limited = api.new_run(abilities=["focal"])
    answer = api.put(f"/runs/{limited}/directive", {"mode": "on", "avspo": {}})
    assert (answer.status, answer.json["error"]["field"]) == (409, "avspo")
    assert "declared focal" in answer.json["error"]["message"]


def test_a_waiting_trainer_wakes_at_the_put(api: Api, run_id: str) -> None:
    """A long poll is held while nothing changes and answers the new version before its time."""
    put(api, run_id, **FOCAL)
    order: list[str] = []
    answers: list[Any] = []

    def wait() -> None:
        answers.append(current(api, run_id, since=1, wait=30))
        order.append("woke")

    trainer = threading.Thread(target=wait)
    started = time.monotonic()
    trainer.start()
    assert current(api, run_id, since=1, wait=0.2)["version"] == 1  # its own time is over first
    api.send(run_id, {"step": 1, "scalars": {"loss": 1.0}})  # a change, but of something else
    trainer.join(0.3)
    assert trainer.is_alive()
    order.append("put")
    put(api, run_id, mode="off")
    trainer.join(30)
    assert order == ["put", "woke"]
    assert answers[0]["version"] == 2
    assert time.monotonic() - started < 25  # far from its 30 s: it was woken


def test_a_known_version_answers_at_once(api: Api, run_id: str) -> None:
    """Who is behind does not wait."""
    put(api, run_id, **FOCAL)
    assert current(api, run_id, since=0, wait=30)["version"] == 1
    assert current(api, run_id, wait=30)["version"] == 1


def test_a_lost_notification_is_made_up_for(api: Api, service: Service, run_id: str) -> None:
    """A version that came without any notification is found by the sweep."""
    answers: list[Any] = []
    trainer = threading.Thread(
        target=lambda: answers.append(current(api, run_id, since=0, wait=30))
    )
    trainer.start()
    with service.database.transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO directive (run_id, version, mode) VALUES (%s, 1, 'off')", (run_id,)
        )
        connection.exec_driver_sql(
            "UPDATE run SET revision = revision + 1 WHERE id = %s", (run_id,)
        )
    trainer.join(10 * SWEEP_SECONDS)
    assert answers
    assert answers[0]["version"] == 1


def test_concurrent_wishes_each_get_a_version(api: Api, run_id: str) -> None:
    """Eight hands at once: eight versions, none lost, one newest."""
    hands = [
        threading.Thread(target=put, args=(api, run_id), kwargs={**FOCAL, "reason": str(i)})
        for i in range(8)
    ]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join(30)
    log = api.get(f"/runs/{run_id}/directives").json["directives"]
    assert [one["version"] for one in log] == list(range(8, 0, -1))
    assert sorted(one["reason"] for one in log) == [str(i) for i in range(8)]
    assert [one["state"] for one in log] == ["pending"] + ["superseded"] * 7


def test_who_may_steer(service: Service, api: Api, run_id: str) -> None:
    """Trainers may ask, people with control may put, readers may look at the log."""
    path = f"/runs/{run_id}/directive"
    asked = {name: service.api(name).get(path).status for name in ("ingest", "read", None)}
    assert asked == {"ingest": 200, "read": 200, None: 401}
    for name, status in {"ingest": 403, "read": 403, "control": 200}.items():
        assert service.api(name).put(path, FOCAL).status == status
    unknown = "/runs/00000000-0000-0000-0000-000000000000/directive"
    assert api.put(unknown, FOCAL).status == 404
    assert api.get(unknown, since=0, wait=30).status == 404


@pytest.mark.parametrize("query", [{"wait": 31}, {"wait": "nan"}, {"since": -1}])
def test_a_wrong_poll_names_its_field(api: Api, run_id: str, query: dict[str, Any]) -> None:
    """A poll that nobody could mean is 422."""
    answer = api.get(f"/runs/{run_id}/directive", **query)
    assert (answer.status, answer.json["error"]["field"]) == (422, next(iter(query)))
