"""Runs: one a key, attempts, lists, and how they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.serving import Api, Service


def key() -> str:
    """Make a key nobody used."""
    return f"key-{time.time_ns()}"


def test_a_run_is_introduced(api: Api) -> None:
    """The answer says which run, attempt and project it is; the same again says the same."""
    wanted = {
        "project": "math",
        "key": key(),
        "name": "qwen",
        "config": {"lr": 1e-6, "nested": {"a": [1, None]}},
        "tags": ["a", "b"],
        "group": "seeds",
        "attempt_key": "x",
        "abilities": ["focal"],
        "success_threshold": 1.0,
        "started_at": 1.5,
    }
    first = api.post("/runs", wanted)
    again = api.post("/runs", wanted)
    assert (first.status, again.status) == (201, 200)
    assert first.json == again.json
    assert first.json["attempt"] == 1
    assert first.json["resumed"] is False
    assert first.json["last_step"] is None
    assert first.json["directive"] is None
    run = api.get(f"/runs/{first.json['id']}").json
    for name in ("name", "config", "tags", "group", "abilities", "success_threshold"):
        assert run[name] == wanted[name]
    assert run["state"] == "running"


def test_every_rank_gets_the_same_run(api: Api, service: Service) -> None:
    """Case 58: eight processes that start together with one key are one run and one attempt."""
    wanted = {"project": f"new-{time.time_ns()}", "key": key(), "attempt_key": "job-1"}
    answers: list[Any] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        answers.append(service.api("ingest").post("/runs", wanted))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert len({(answer.json["id"], answer.json["attempt"]) for answer in answers}) == 1
    assert len(api.get("/runs", project=wanted["project"]).json["runs"]) == 1


def test_a_new_start_is_a_new_attempt(api: Api, service: Service) -> None:
    """Case 37: resuming at 101 after 154 keeps both attempts apart; the newer one leads."""
    wanted = {"project": "math", "key": key(), "attempt_key": "1"}
    run_id = api.post("/runs", wanted).json["id"]
    dead = {"counts": {"4": [16, 0, 0, 0, 0]}}
    live = {"counts": {"4": [0, 0, 16, 0, 0]}}
    api.send(run_id, *({"step": step, **dead} for step in range(1, 155)))
    assert api.get(f"/runs/{run_id}").json["latest"]["acr_pooled"] == 1.0
    resumed = api.post("/runs", {**wanted, "attempt_key": "2"})
    assert resumed.status == 200
    assert (resumed.json["attempt"], resumed.json["resumed"]) == (2, True)
    assert resumed.json["last_step"] == 154
    api.send(run_id, *({"step": step, "attempt": 2, **live} for step in range(101, 201)))
    run = api.get(f"/runs/{run_id}").json
    assert run["step"] == 200
    assert run["latest"]["acr_pooled"] == 0.0
    spans = [(one["attempt"], one["first_step"], one["last_step"]) for one in run["attempts"]]
    assert spans == [(1, 1, 154), (2, 101, 200)]
    count = "SELECT attempt, count(*) AS n FROM step WHERE run_id = %s GROUP BY 1 ORDER BY 1"
    assert [row["n"] for row in service.rows(count, run_id)] == [154, 100]
    first = "SELECT acr_pooled FROM step WHERE run_id = %s AND attempt = 2 AND step = 101"
    assert service.rows(first, run_id) == [{"acr_pooled": 0.0}]
    assert run["open_incidents"] == []
    incidents = api.get(f"/runs/{run_id}/incidents").json["incidents"]
    collapsed = [one for one in incidents if one["kind"] == "advantage_collapse"]
    assert [one["state"] for one in collapsed] == ["closed"]
    assert collapsed[0]["changes"][-1]["text"] == "Attempt 2 began."


def test_resume_says_what_a_known_key_means(api: Api) -> None:
    """`never` refuses a new attempt, `must` refuses a new run; the same attempt is always fine."""
    wanted = {"project": "math", "key": key(), "attempt_key": "1"}
    missing = api.post("/runs", {**wanted, "resume": "must"})
    assert (missing.status, missing.json["error"]["field"]) == (404, "resume")
    assert api.post("/runs", {**wanted, "resume": "never"}).status == 201
    assert api.post("/runs", {**wanted, "resume": "never"}).status == 200
    refused = api.post("/runs", {**wanted, "resume": "never", "attempt_key": "2"})
    assert (refused.status, refused.json["error"]["field"]) == (409, "resume")
    assert api.post("/runs", {**wanted, "resume": "must", "attempt_key": "2"}).json["attempt"] == 2


def test_runs_of_one_name_are_two_runs(api: Api) -> None:
    """Case 74: a second run of the same name hides nothing."""
    one, two = api.new_run(name="exp-74"), api.new_run(name="exp-74")
    assert one != two
    found = api.get("/runs", search="exp-74").json["runs"]
    assert {run["id"] for run in found} == {one, two}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"key": "k"}, "project"),
        ({"project": "", "key": "k"}, "project"),
        ({"project": "p", "key": "k" * 201}, "key"),
        ({"project": "p", "key": "k", "resume": "maybe"}, "resume"),
        ({"project": "p", "key": "k", "tags": "a"}, "tags"),
        ({"project": "p", "key": "k", "tags": ["a", 1]}, "tags[1]"),
        ({"project": "p", "key": "k", "success_threshold": "NaN"}, "success_threshold"),
        ({"project": "p", "key": "k", "colour": 1}, "colour"),
    ],
    ids=str,
)
def test_a_bad_introduction_names_its_field(api: Api, body: Any, field: str) -> None:
    """What is wrong is 422 and named, never a 500."""
    answer = api.post("/runs", body)
    assert answer.status == 422, answer.body
    assert answer.json["error"]["field"] == field


def test_nonfinite_configuration_is_named(api: Api) -> None:
    """A NaN in the configuration is kept as its name."""
    raw = b'{"project": "math", "key": "nan-config", "config": {"a": NaN, "b": [Infinity]}}'
    answer = api.call("POST", "/api/v1/runs", raw=raw, headers={"Content-Type": "application/json"})
    assert answer.status == 201, answer.body
    assert api.get(f"/runs/{answer.json['id']}").json["config"] == {"a": "NaN", "b": ["Infinity"]}


def test_lists_are_filtered_sorted_and_paged(api: Api) -> None:
    """Each filter narrows, each order sorts both ways, and pages cover everything once."""
    project = f"lists-{time.time_ns()}"
    rates = {"low": [0, 0, 8], "high": [8, 0, 0], "none": None}
    ids = {}
    for number, (name, counts) in enumerate(rates.items()):
        ids[name] = api.new_run(project, name=f"run {name} 100%_", tags=[name, "all"])
        record: dict[str, Any] = {"step": 10 - number, "scalars": {"loss": 1.0}}
        api.send(ids[name], record | ({"counts": {"2": counts[::-1]}} if counts else {}))
    api.send(ids["low"], {"step": 11, "counts": {"2": [0, 8, 0]}})
    api.send(ids["none"], alerts=[{"title": "look"}])
    api.post(f"/runs/{ids['high']}/finish", {"state": "failed"})

    def names(**query: Any) -> list[str]:
        runs = api.get("/runs", project=project, **query).json["runs"]
        return [run["name"].split()[1] for run in runs]

    assert names(state="failed") == ["high"]
    assert set(names(state=["failed", "running"])) == set(rates)
    assert names(tag="low") == ["low"]
    assert names(search="RUN HIGH") == ["high"]
    assert len(names(search="100%_")) == 3
    assert names(search="100_%") == []
    assert len(names(search=project[:-1].upper())) == 3
    assert names(sort="step") == ["none", "high", "low"]
    assert names(sort="-step") == ["low", "high", "none"]
    assert names(sort="name") == ["high", "low", "none"]
    assert names(sort="-acr") == ["high", "low", "none"]
    assert names(sort="-incidents")[0] == "none"
    for sort in ("last_seen_at", "-started_at", "name", "-step", "acr", "-incidents"):
        whole, paged, cursor = names(sort=sort), [], None
        while True:
            more = {"cursor": cursor} if cursor else {}
            page = api.get("/runs", project=project, sort=sort, limit=1, **more).json
            paged += [run["name"].split()[1] for run in page["runs"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert paged == whole, sort
    assert api.get("/runs", sort="colour").json["error"]["field"] == "sort"
    assert api.get("/runs", cursor="garbage").json["error"]["field"] == "cursor"
    assert api.get("/runs", state="odd").json["error"]["field"] == "state[0]"


def test_a_list_shows_what_matters(api: Api) -> None:
    """A summary has the newest values, a sparkline of at most 60 and what is open."""
    run_id = api.new_run("summaries")
    counts = {"2": [3, 1, 0]}
    api.send(run_id, *({"step": step, "counts": counts} for step in range(100)))
    api.send(run_id, {"step": 100, "scalars": {"loss": "Infinity"}}, alerts=[{"title": "look"}])
    (run,) = api.get("/runs", project="summaries").json["runs"]
    assert run["step"] == 100
    assert run["latest"]["acr"] == 0.75
    assert run["latest"]["loss"] is None
    assert run["nonfinite"] == {"loss": "Infinity"}
    # the whole run in points of two steps: more would be over 60
    assert run["sparkline"] == {"acr": [0.75] * 50, "step": list(range(0, 100, 2)), "stride": 2}
    assert "look" in {one["title"] for one in run["open_incidents"]}
    assert run["verdict"]


def test_a_sparkline_follows_steps_that_other_ranks_add_to(api: Api) -> None:
    """A step of which half the groups came later has one point, the rate of them all."""
    run_id = api.new_run("two ranks")
    api.send(run_id, *({"step": s, "counts": {"2": [1, 0, 0]}, "source": "0"} for s in range(3)))
    api.send(run_id, *({"step": s, "counts": {"2": [0, 1, 0]}, "source": "1"} for s in range(2)))
    assert api.get(f"/runs/{run_id}").json["sparkline"]["acr"] == [0.5, 0.5, 1.0]


def test_people_change_what_they_say_about_a_run(api: Api) -> None:
    """Name, tags, notes and the archive; an archived run is in the archive's list only."""
    run_id = api.new_run("patches")
    changed = api.patch(f"/runs/{run_id}", {"name": "b", "tags": ["t"], "notes": "n\u0000"})
    assert changed.status == 200
    assert changed.json["name"] == "b"
    assert changed.json["notes"] == "n\ufffd"
    revision = changed.json["revision"]
    assert api.patch(f"/runs/{run_id}", {"archived": True}).json["revision"] == revision + 1
    assert api.get("/runs", project="patches").json["runs"] == []
    assert len(api.get("/runs", project="patches", archived=True).json["runs"]) == 1
    assert api.patch(f"/runs/{run_id}", {"name": ""}).status == 422


def test_a_run_ends(api: Api) -> None:
    """Finish is idempotent, late records are still taken, a new attempt runs again."""
    wanted = {"project": "math", "key": key(), "attempt_key": "1"}
    run_id = api.post("/runs", wanted).json["id"]
    end = {"attempt": 1, "state": "failed", "exit_code": 1, "summary": {"best": 0.5}}
    assert api.post(f"/runs/{run_id}/finish", end).json == {"state": "failed"}
    assert api.post(f"/runs/{run_id}/finish", {"state": "finished"}).json == {"state": "failed"}
    run = api.get(f"/runs/{run_id}").json
    assert (run["exit_code"], run["summary"]) == (1, {"best": 0.5})
    assert run["finished_at"] is not None
    api.send(run_id, {"step": 5})
    assert api.get(f"/runs/{run_id}").json["state"] == "failed"
    api.post("/runs", {**wanted, "attempt_key": "2"})
    run = api.get(f"/runs/{run_id}").json
    assert (run["state"], run["finished_at"], run["exit_code"]) == ("running", None, None)
    assert api.post(f"/runs/{run_id}/finish", {"attempt": 1}).json == {"state": "running"}


def test_a_silent_run_is_stale_and_comes_back(
    database_url: str, eventually: Callable[..., Any]
) -> None:
    """Cases 75 and 76: silence makes a run stale, never finished; a word brings it back."""
    from tests.serving import serving

    quick = {"stale_after": "PT0.6S", "stale_check_every": "PT0.1S"}
    with serving(database_url, **quick) as service:
        api = service.api("admin")
        by_data, by_heartbeat, ended = api.new_run(), api.new_run(), api.new_run()
        api.send(by_data, {"step": 7})
        api.post(f"/runs/{ended}/finish", {})

        def state(run_id: str) -> str:
            return str(api.get(f"/runs/{run_id}").json["state"])

        eventually(lambda: state(by_data) == state(by_heartbeat) == "stale")
        assert state(ended) == "finished"
        (open_one,) = api.get(f"/runs/{by_data}/incidents", state="open").json["incidents"]
        assert (open_one["kind"], open_one["last_step"]) == ("stale", 7)
        api.send(by_data, {"step": 8})
        api.post(f"/runs/{by_heartbeat}/heartbeat", {"attempt": 1, "source": "0"})
        for run_id in (by_data, by_heartbeat):
            (incident,) = api.get(f"/runs/{run_id}/incidents").json["incidents"][-1:]
            assert [one["action"] for one in incident["changes"]] == ["opened", "closed"]
        assert len(api.get("/runs", search="run-").json["runs"]) >= 3
