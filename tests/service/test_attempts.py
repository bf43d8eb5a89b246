"""The newest attempt is the one that began last, whichever was heard of first."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving import Api, Service, serving

import rlvitals
from rlvitals import replay
from rlvitals.transport import Transport
from rlvitals_service.columns import Column, Steps
from rlvitals_service.sparkline import Sparkline

OLD, NEW = {"attempt_key": "old", "started_at": 1000.0}, {"attempt_key": "new", "started_at": 2000}


def wanted(**given: Any) -> dict[str, Any]:
    """Give what introduces an attempt of a run nobody knows yet."""
    return {"project": "attempts", "key": f"key-{time.time_ns()}", **given}


def introduce(api: Api, body: dict[str, Any], *starts: dict[str, Any]) -> tuple[str, list[int]]:
    """Introduce attempts in this order; give the run's id and their numbers."""
    answers = [api.post("/runs", {**body, **start}) for start in starts]
    assert {answer.status for answer in answers} <= {200, 201}, answers
    assert len({answer.json["id"] for answer in answers}) == 1
    return answers[0].json["id"], [answer.json["attempt"] for answer in answers]


def steps(attempt: int, numbers: range, value: float) -> list[dict[str, Any]]:
    """Make records of which the value and the groups tell the attempt."""
    counts = {"2": [1, 0, 0]} if value < 1.5 else {"2": [0, 1, 0]}
    return [
        {"step": step, "attempt": attempt, "scalars": {"loss": value}, "counts": counts}
        for step in numbers
    ]


def send_old(api: Api, run_id: str, number: int) -> None:
    """Send what the older attempt did: further than the newer one, and more names."""
    api.send(run_id, *steps(number, range(101), 1.0), *steps(number, range(101, 150), 1.0))
    api.send(run_id, {"step": 150, "attempt": number, "scalars": {"loss": 1.5, "only_old": 7.0}})
    api.send(run_id, {"step": 90, "attempt": number, "phase": "eval", "scalars": {"reward": 1.0}})


def send_new(api: Api, run_id: str, number: int) -> None:
    """Send what the newer attempt did: from step 40 to 119."""
    api.send(run_id, *steps(number, range(40, 120), 2.0))
    api.send(run_id, {"step": 40, "attempt": number, "phase": "eval", "scalars": {"reward": 2.0}})


def shown(api: Api, run_id: str) -> dict[str, Any]:
    """Give what people see of a run that says nothing of the numbers of its attempts."""
    run = api.get(f"/runs/{run_id}").json
    names = ("state", "step", "latest", "latest_eval", "metrics", "config", "name")
    found = {name: run[name] for name in names}
    line = run["sparkline"]  # how wide its points are depends on how far the run ever came
    drawn = [(step, step + line["stride"] - 1) for step in line["step"]]
    found["rates"] = [
        {rate for rate, (_, end) in zip(line["acr"], drawn, strict=True) if end < 40},
        {rate for rate, (start, _) in zip(line["acr"], drawn, strict=True) if start >= 40},
    ]
    found["drawn to"] = drawn[-1][1]
    for phase in ("train", "eval"):
        answer = api.get(f"/runs/{run_id}/history", phase=phase, metrics="loss,reward,acr").json
        found[f"{phase} history"] = answer["metrics"]
    spans = [(one["first_step"], one["last_step"]) for one in run["attempts"]]
    return {**found, "verdict": run["verdict"], "spans": spans}


def test_an_attempt_heard_of_late_leaves_the_run_as_if_it_had_come_in_time(api: Api) -> None:
    """Steps, newest values, chart, sparkline and state are the same in either order of arrival."""
    body = wanted(name="same")
    in_time, (first,) = introduce(api, body, OLD)
    send_old(api, in_time, first)
    _, (second,) = introduce(api, body, {**NEW, "config": {"lr": 2}})
    send_new(api, in_time, second)
    body = wanted(name="same")
    late, (newer,) = introduce(api, body, {**NEW, "config": {"lr": 2}})
    send_new(api, late, newer)
    _, (older,) = introduce(api, body, {**OLD, "config": {"lr": 1}, "name": "older"})
    send_old(api, late, older)
    assert (first, second, newer, older) == (1, 2, 1, 2)
    assert shown(api, late) == shown(api, in_time)
    run = api.get(f"/runs/{late}").json
    assert (run["step"], run["attempt"], run["latest"]["loss"]) == (119, 1, 2.0)
    assert [one["attempt"] for one in run["attempts"]] == [2, 1]
    assert run["open_incidents"] == []
    assert shown(api, late)["rates"] == [{1.0}, {0.0}]


def test_readers_see_the_newer_attempt_and_can_ask_for_each(api: Api) -> None:
    """History, its files and groups default to the newer one; numbers given out stay keys."""
    body = wanted()
    run_id, (newer,) = introduce(api, body, NEW)
    send_new(api, run_id, newer)
    before = api.get(f"/runs/{run_id}").json["revision"]
    _, (older,) = introduce(api, body, OLD)
    assert api.get(f"/runs/{run_id}").json["revision"] > before
    send_old(api, run_id, older)
    expected = [1.0] * 40 + [2.0] * 80 + [1.0] * 30 + [1.5]
    answer = api.get(f"/runs/{run_id}/history", metrics="loss").json
    assert answer["metrics"]["loss"]["value"] == expected
    text = api.get(f"/runs/{run_id}/history", metrics="loss", format="csv").body.decode()
    rows = list(csv.DictReader(text.splitlines()))
    assert [float(row["loss"]) for row in rows] == expected
    assert {row["attempt"] for row in rows[40:120]} == {str(newer)}
    for number, first in ((newer, 40), (older, 0)):
        own = api.get(f"/runs/{run_id}/history", metrics="loss", attempt=number).json
        assert own["metrics"]["loss"]["step"][0] == first
    assert introduce(api, body, NEW, OLD)[1] == [newer, older]
    groups = {"size": [2], **{f"reward_{n}": [0.0] for n in ("mean", "std", "min", "max")}}
    for number, step in ((newer, 119), (older, 140), (older, 119)):
        api.send(run_id, {"step": step, "attempt": number, "groups": groups})
    for query, found in (({}, (119, newer)), ({"step": 140}, (140, older))):
        answer = api.get(f"/runs/{run_id}/groups", **query).json
        assert (answer["step"], answer["attempt"]) == found
    answer = api.get(f"/runs/{run_id}/groups", step=119, attempt=older).json
    assert answer["attempt"] == older


def test_what_a_late_attempt_says_ends_and_revives_nothing(
    database_url: str, eventually: Callable[..., Any]
) -> None:
    """A run that finished stays finished, and a silent one stays stale; records are taken."""
    quick = {"stale_after": "PT0.6S", "stale_check_every": "PT0.1S"}
    with serving(database_url, **quick) as service:
        api = service.api("admin")

        def state(run_id: str) -> str:
            return str(api.get(f"/runs/{run_id}").json["state"])

        ended, silent = wanted(), wanted()
        (ended_id, _), (silent_id, _) = introduce(api, ended, NEW), introduce(api, silent, NEW)
        for run_id in (ended_id, silent_id):
            api.send(run_id, {"step": 7}, lost={"queue_full": 1})
        api.post(f"/runs/{ended_id}/finish", {"source": "0"})
        eventually(lambda: state(silent_id) == "stale")
        for body, run_id, stays in ((ended, ended_id, "finished"), (silent, silent_id, "stale")):
            before = api.get(f"/runs/{run_id}").json
            introduce(api, body, OLD)
            api.send(run_id, {"step": 9, "attempt": 2}, lost={"queue_full": 5, "damaged": 2})
            end = {"attempt": 2, "source": "0", "state": "crashed", "exit_code": 1}
            assert api.post(f"/runs/{run_id}/finish", end).json == {"state": stays}
            after = api.get(f"/runs/{run_id}").json
            for name in ("state", "step", "finished_at", "exit_code", "last_seen_at", "lost"):
                assert after[name] == before[name], name
            assert [one["last_step"] for one in after["attempts"]] == [9, 7]
            assert api.get(f"/runs/{run_id}/history", metrics="acr").json["total_steps"] == 2


def test_a_directive_expires_by_the_steps_of_the_newest_attempt(api: Api) -> None:
    """An older attempt that came further, heard of late, does not expire what is in force."""
    body = wanted(abilities=["focal"])
    run_id, _ = introduce(api, body, NEW)
    api.send(run_id, {"step": 100, "scalars": {"loss": 1.0}})
    asked = {"mode": "on", "focal": {"gamma": 1.0}, "expires_at_step": 300}
    assert api.put(f"/runs/{run_id}/directive", asked).status == 200
    introduce(api, body, OLD)
    late = api.send(run_id, {"step": 500, "attempt": 2, "scalars": {"loss": 1.0}})
    assert (late["last_step"], late["directive"]["version"]) == (100, 1)
    acknowledged = {"version": 1, "step": 101}
    api.send(run_id, {"step": 101, "scalars": {"loss": 1.0}}, acknowledgements=[acknowledged])
    (directive,) = api.get(f"/runs/{run_id}/directives").json["directives"]
    assert directive["state"] == "acknowledged"
    assert api.get(f"/runs/{run_id}").json["step"] == 101


def test_the_last_step_is_that_of_the_newest_attempt_with_steps(api: Api) -> None:
    """A resumed run keeps the step it had come to until it has one of its own."""
    body = wanted()
    run_id, _ = introduce(api, body, OLD, NEW)
    assert api.send(run_id, {"step": 50})["last_step"] == 50
    assert api.send(run_id, {"step": 20, "attempt": 2})["last_step"] == 20
    assert api.send(run_id, {"step": 60})["last_step"] == 20


NOW = time.time()
HOUR = 3600.0


@pytest.mark.parametrize(
    ("first", "second", "newest"),
    [
        ({"started_at": 1000}, {"started_at": 2000}, 2),
        ({"started_at": 2000}, {"started_at": 1000}, 1),
        ({"started_at": 1000}, {"started_at": 1000}, 2),
        ({}, {}, 2),
        ({}, {"started_at": 1000}, 1),
        ({"started_at": 1000}, {}, 2),
        # a clock an hour ahead, then a right one
        ({"started_at": NOW + HOUR}, {}, 2),
        ({"started_at": NOW + HOUR, "sent_at": NOW + HOUR}, {"started_at": NOW, "sent_at": NOW}, 2),
        # a clock an hour behind that begins now, after another machine's right one
        (
            {"started_at": NOW - 5, "sent_at": NOW},
            {"started_at": NOW - HOUR, "sent_at": NOW - HOUR},
            2,
        ),
        # a clock an hour ahead throughout, and its older attempt comes late
        (
            {"started_at": NOW + HOUR, "sent_at": NOW + HOUR},
            {"started_at": NOW + HOUR - 600, "sent_at": NOW + HOUR},
            1,
        ),
        # sent before it began, and numbers that are no times
        ({"started_at": NOW, "sent_at": NOW - HOUR}, {}, 2),
        ({"started_at": -1e308, "sent_at": 1e308}, {"started_at": 1e308, "sent_at": -1e308}, 2),
        ({"started_at": 1e308}, {"started_at": -1e308}, 1),
    ],
    ids=str,
)
def test_which_attempt_is_the_newest(
    first: dict[str, Any], second: dict[str, Any], newest: int, api: Api
) -> None:
    """The later start wins; a missing one is now, none is in the future, and a tie goes by number.

    `sent_at` makes up for a wrong clock, and the attempt that comes next has the next number.
    """
    body = wanted()
    starts = [{"attempt_key": "a", **first}, {"attempt_key": "b", **second}]
    run_id, numbers = introduce(api, body, *starts)
    assert numbers == [1, 2]
    assert api.get(f"/runs/{run_id}").json["attempt"] == newest
    answer = api.send(run_id, {"step": 1, "attempt": 3}, {"step": 1, "attempt": 5})
    assert (answer["accepted"], [one["index"] for one in answer["rejected"]]) == (1, [1])
    assert api.get(f"/runs/{run_id}").json["attempt"] == 3
    assert introduce(api, body, {"attempt_key": "c"})[1] == [4]
    assert api.get(f"/runs/{run_id}").json["attempt"] == 4


def test_a_late_sync_does_not_cover_the_run_that_went_on(
    service: Service, api: Api, tmp_path: Path
) -> None:
    """Recorded offline first, then resumed online, then synced: the resumed run leads."""
    key = f"sync-{time.time_ns()}"
    offline = rlvitals.init("sync", id=key, mode="offline", dir=tmp_path / "there", config={"n": 1})
    for step in range(30):
        offline.log({"loss": 1.0}, step=step)
    offline.finish()
    known = {"url": service.url, "token": service.tokens["ingest"]}
    online = rlvitals.init("sync", id=key, dir=tmp_path / "here", config={"n": 2}, **known)
    assert online.wait_registered(30)
    for step in range(10, 20):
        online.log({"loss": 2.0}, step=step)
    online.finish()
    transport = Transport(service.url, service.tokens["ingest"])
    (outcome,) = replay.sync(tmp_path / "there" / "spool", lambda _: transport)
    assert (outcome.state, outcome.records) == ("sent", 30)
    run = api.get(f"/runs/{online.id}").json
    assert (run["attempt"], run["step"], run["config"]) == (online.attempt, 19, {"n": 2})
    assert (run["state"], run["latest"]["loss"]) == ("finished", 2.0)
    began = [one["started_at"] for one in run["attempts"]]
    assert began == sorted(began)
    loss = api.get(f"/runs/{online.id}/history", metrics="loss").json["metrics"]["loss"]["value"]
    assert loss == [1.0] * 10 + [2.0] * 10 + [1.0] * 10


def test_rows_of_the_newest_attempt_by_any_order() -> None:
    """Of each step the row stays whose attempt comes last in the order given."""
    step, attempt = np.array([5, 5, 5, 6, 7]), np.array([3, 1, 2, 1, 3])
    metric = Column(attempt.astype(float), np.ones(5, dtype=bool))
    rows = Steps(step, attempt, np.full(5, np.nan), {"acr": metric})
    assert rows.newest([3, 2, 1]).attempt.tolist() == [1, 1, 3]
    assert rows.newest([3, 1, 2, 4]).attempt.tolist() == [2, 1, 3]
    assert rows.newest().attempt.tolist() == [3, 1, 3]
    assert len(rows.rows(np.array([], dtype=np.intp)).newest([1]).step) == 0


def test_a_sparkline_goes_by_age_not_by_number() -> None:
    """An older attempt with a higher number adds what lies before the newer one, nothing else."""
    line = Sparkline()
    age = {1: 1, 2: 0}.__getitem__
    for step in range(40, 100):
        line.add(1, step, 0.0, None, age)
    for step in range(200):
        line.add(2, step, 1.0, None, age)
    rates = {n << line.bits: b.total / b.count for n, b in line.buckets.items()}
    assert set(rates) == set(range(0, 100, 2))
    assert all(rate == (1.0 if step < 40 else 0.0) for step, rate in rates.items())
