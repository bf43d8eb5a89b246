"""A reader of the stream sees every change once it is committed, and misses none while away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import urllib3
from tests.serving import Api, Service

from rlvitals_service.changes import PAGE_STEPS, Event
from rlvitals_service.stream import encode

Received = tuple[str, int, dict[str, Any]]


@contextmanager
def follow(api: Api, run_id: str, last_event_id: str = "", **query: Any) -> Iterator[Any]:
    """Open a stream; give an iterator over (event, id, data)."""
    headers = {"Authorization": f"Bearer {api.token}"}
    if last_event_id:
        headers["Last-Event-ID"] = last_event_id
    response = urllib3.request(
        "GET",
        f"{api.url}/api/v1/runs/{run_id}/stream",
        fields={name: str(value) for name, value in query.items()},
        headers=headers,
        preload_content=False,
        timeout=30,
        retries=False,
    )
    assert response.status == 200, response.data
    assert response.headers["Content-Type"].startswith("text/event-stream")
    try:
        yield _events(response)
    finally:
        response.close()


def _events(response: Any) -> Iterator[Received]:
    buffer = b""
    while True:
        chunk = response.read1()
        assert chunk, "the stream ended"
        buffer += chunk
        while b"\n\n" in buffer:
            block, _, buffer = buffer.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
            if "event" in fields:
                yield fields["event"], int(fields["id"]), json.loads(fields["data"])


def until(events: Iterator[Received], kind: str = "run") -> list[Received]:
    """Read up to and including the first event of a kind."""
    read = []
    for event in events:
        read.append(event)
        if event[0] == kind:
            return read
    raise AssertionError("unreachable")


def loss(step: int, value: Any = 1.0) -> dict[str, Any]:
    """Make a record of one scalar."""
    return {"step": step, "scalars": {"loss": value}}


def test_missed_steps_come_first_and_then_live_ones(api: Api) -> None:
    """A reader with an old cursor gets what it missed, then what happens."""
    run_id = api.new_run()
    cursor = api.get(f"/runs/{run_id}").json["revision"]
    api.send(run_id, loss(1), loss(2))
    api.send(run_id, loss(3))
    with follow(api, run_id, since=cursor) as events:
        missed = until(events)
        assert [data["step"] for kind, _, data in missed if kind == "step"] == [1, 2, 3]
        api.send(run_id, loss(4, "NaN"))
        (kind, _, step), *_, (last, cursor, run) = until(events)
    assert (kind, step["step"]) == ("step", 4)
    assert (step["metrics"], step["nonfinite"]) == ({"loss": None}, {"loss": "NaN"})
    assert (last, run["step"], run["state"]) == ("run", 4, "running")
    assert cursor == run["revision"] == api.get(f"/runs/{run_id}").json["revision"]


def test_without_a_cursor_the_stream_begins_now(api: Api) -> None:
    """A reader that asks for nothing old gets nothing old."""
    run_id = api.new_run()
    api.send(run_id, loss(1))
    with follow(api, run_id) as events:
        api.send(run_id, loss(2))
        assert [data["step"] for kind, _, data in until(events) if kind == "step"] == [2]


def test_a_cut_in_the_middle_of_a_batch_loses_nothing(api: Api) -> None:
    """Wherever a stream is cut, coming back with the last id brings all that was not read."""
    run_id = api.new_run()
    cursor = api.get(f"/runs/{run_id}").json["revision"]
    api.send(run_id, *map(loss, range(5)))
    with follow(api, run_id, since=cursor) as events:
        whole = until(events)
    for read in range(1, len(whole)):
        with follow(api, run_id, last_event_id=str(whole[read - 1][1])) as events:
            rest = until(events)
        steps = [data["step"] for kind, _, data in whole[:read] + rest if kind == "step"]
        assert set(steps) == set(range(5))


def test_many_missed_steps_come_page_by_page_in_order(api: Api) -> None:
    """Three pages of steps arrive complete, ascending, and without a page's end splitting one."""
    run_id = api.new_run()
    cursor = api.get(f"/runs/{run_id}").json["revision"]
    total = 2 * PAGE_STEPS + 100
    for start in range(0, total, 300):
        api.send(run_id, *map(loss, range(start, min(start + 300, total))))
    steps: list[int] = []
    with follow(api, run_id, since=cursor) as events:
        for kind, _, data in events:
            if kind == "step":
                steps.append(data["step"])
            elif len(steps) == total:
                break
    assert steps == list(range(total))


def test_directives_and_incidents_are_events(api: Api) -> None:
    """What a person wishes and what the judge says reach whoever looks on."""
    run_id = api.new_run(abilities=["focal"])
    with follow(api, run_id) as events:
        api.put(f"/runs/{run_id}/directive", {"mode": "on", "focal": {"gamma": 1}})
        (_, _, data) = until(events, "directive")[-1]
        assert (data["directive"]["version"], data["directive"]["state"]) == (1, "pending")
        api.send(run_id, acknowledgements=[{"version": 1, "step": 3}])
        (_, _, data) = until(events, "directive")[-1]
        assert data["directive"]["state"] == "acknowledged"
        api.send(run_id, alerts=[{"title": "reward server is down", "level": "critical"}])
        (_, _, data) = until(events, "incident")[-1]
        assert (data["title"], data["severity"]) == ("reward server is down", "critical")


def test_only_the_named_metrics(api: Api) -> None:
    """A page with one chart need not receive forty metrics."""
    run_id = api.new_run()
    with follow(api, run_id, metrics="loss,entropy") as events:
        api.send(run_id, {"step": 1, "scalars": {"loss": 1.0, "entropy": "Infinity", "kl": 3.0}})
        (_, _, step), *_ = until(events)
    assert step["metrics"] == {"loss": 1.0, "entropy": None}
    assert step["nonfinite"] == {"entropy": "Infinity"}


def test_the_stream_goes_on_when_the_listener_lost_its_connection(
    api: Api, service: Service
) -> None:
    """Killing the LISTEN connection in the database delays a reader, no more."""
    run_id = api.new_run()
    with follow(api, run_id) as events:
        parameters = service.database.driver_parameters()
        with psycopg.connect(**parameters, autocommit=True) as session:
            killed = session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'rlvitals listen' AND datname = current_database()"
            ).fetchall()
        assert killed == [(True,)]
        api.send(run_id, loss(1))
        assert until(events)[0][2]["step"] == 1
        api.send(run_id, loss(2))
        assert until(events)[0][2]["step"] == 2


def test_who_may_follow(service: Service, api: Api) -> None:
    """A stream is read like everything else: with the read scope, and a run that exists."""
    path = f"/runs/{api.new_run()}/stream"
    assert service.api("ingest").get(path).status == 403
    assert service.api(None).get(path).status == 401
    assert api.get("/runs/00000000-0000-0000-0000-000000000000/stream").status == 404
    assert api.get(path, since=-1).json["error"]["field"] == "since"


@pytest.mark.parametrize("names", [None, frozenset({"acr"})])
def test_an_event_is_one_block(names: frozenset[str] | None) -> None:
    """The format leaves no room for a line break inside the data."""
    data = {"revision": 8, "metrics": {"acr": 0.5}, "nonfinite": {}, "text": "two\nlines"}
    block = encode(Event("step", 7, data), names).decode()
    assert block.startswith("id: 7\nevent: step\ndata: {")
    assert block.endswith("}\n\n")
    assert block.count("\n") == 4
