"""History shows every spike and every step, newest attempt first, in strict JSON."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest
from tests.serving import Api, Service


def scalar(step: int, value: Any, name: str = "grad_norm", **rest: Any) -> dict[str, Any]:
    """Make a record of one scalar."""
    return {"step": step, "scalars": {name: value}, **rest}


@pytest.fixture(scope="module")
def long_run(service: Service) -> str:
    """Fill a run of 5,000 steps with one spike, one NaN, both infinities and a name of its own."""
    api = service.api()
    run_id = api.new_run()
    odd = {1234: 1e9, 2000: "NaN", 3000: "Infinity", 4000: "-Infinity"}
    for start in range(0, 5000, 1000):
        records = [
            {"step": s, "scalars": {"grad_norm": odd.get(s, 1 + s % 7 / 10), "my/own": s / 2}}
            for s in range(start, start + 1000)
        ]
        api.send(run_id, *records)
    return run_id


def series(api: Api, run_id: str, name: str = "grad_norm", **query: Any) -> dict[str, Any]:
    """Read one metric."""
    answer = api.get(f"/runs/{run_id}/history", metrics=name, **query)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json["metrics"][name]
    return found


def test_overview_keeps_spike_ends_and_nonfinite(api: Api, long_run: str) -> None:
    """5,000 steps in 200 points: the one-step spike, both ends and all odd values are there."""
    answer = api.get(f"/runs/{long_run}/history", metrics="grad_norm", max_points=200).json
    found = answer["metrics"]["grad_norm"]
    assert answer["sampled"] is True
    assert answer["total_steps"] == 5000
    assert answer["attempts"] == [1]
    assert len(found["step"]) <= 200
    assert (found["step"][0], found["step"][-1]) == (0, 4999)
    assert found["value"][found["step"].index(1234)] == 1e9
    assert found["nonfinite"] == [[2000, "NaN"], [3000, "Infinity"], [4000, "-Infinity"]]


def test_overview_has_the_mean_of_each_bucket(api: Api, long_run: str) -> None:
    """The means of `my/own`, which is step / 2, are those of their steps, and 1249.75 in all."""
    found = series(api, long_run, "my/own", max_points=200)["mean"]
    assert len(found["step"]) == len(found["value"]) == len(found["count"]) <= 100
    assert sum(found["count"]) == 5000
    weighted = sum(n * v for n, v in zip(found["count"], found["value"], strict=True))
    assert weighted / 5000 == pytest.approx(1249.75)
    # a bucket of 64 steps from 0 on: mean 31.5 / 2, middle step 31
    assert (found["step"][0], found["value"][0], found["count"][0]) == (31, 15.75, 64)
    odd = series(api, long_run, max_points=200)["mean"]
    assert sum(odd["count"]) == 4997
    assert all(math.isfinite(value) for value in odd["value"])


def test_means_of_all_attempts_name_their_attempt(api: Api) -> None:
    """A thinned series of two attempts has means of each alone."""
    run_id = api.new_run()
    api.send(run_id, *(scalar(s, 1.0) for s in range(32)))
    api.send(run_id, *(scalar(s, 2.0, attempt=2) for s in range(32)))
    found = series(api, run_id, attempt="all", max_points=12)["mean"]
    assert set(zip(found["attempt"], found["value"], strict=True)) == {(1, 1.0), (2, 2.0)}


def test_a_zoomed_range_shows_raw_points(api: Api, long_run: str) -> None:
    """A range that fits comes whole, null where a value is not finite."""
    answer = api.get(
        f"/runs/{long_run}/history", metrics="grad_norm", from_step=1990, to_step=2010
    ).json
    found = answer["metrics"]["grad_norm"]
    assert answer["sampled"] is False
    assert found["step"] == list(range(1990, 2011))
    assert "mean" not in found
    assert found["value"][10] is None
    assert found["value"][9] == 1 + 1999 % 7 / 10
    assert found["nonfinite"] == [[2000, "NaN"]]


def test_the_same_question_gets_the_same_points(api: Api, long_run: str) -> None:
    """Nothing about an overview is left to chance."""
    bodies = {api.get(f"/runs/{long_run}/history", max_points=50).body for _ in range(3)}
    assert len(bodies) == 1


def test_an_unchanged_run_answers_304_until_it_changes(api: Api) -> None:
    """A poll of a run that did not change costs no data."""
    run_id = api.new_run()
    api.send(run_id, scalar(1, 0.5))
    path = f"/api/v1/runs/{run_id}/history"
    tag = api.call("GET", path).headers["ETag"]
    again = api.call("GET", path, headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    api.send(run_id, scalar(2, 0.5))
    assert api.call("GET", path, headers={"If-None-Match": tag}).status == 200


def test_without_names_every_metric_with_data_comes(api: Api, long_run: str) -> None:
    """A reader who does not know the names gets them all."""
    assert set(api.get(f"/runs/{long_run}/history").json["metrics"]) == {"grad_norm", "my/own"}
    assert series(api, long_run, "my/own", from_step=3, to_step=3)["value"] == [1.5]


def test_trainers_spelling_finds_the_canonical_metric(api: Api, long_run: str) -> None:
    """A name logged as the trainer spells it is found under that name, too."""
    found = series(api, long_run, "actor/grad_norm", from_step=0, to_step=1)
    assert found["value"] == [1.0, 1.1]


def test_a_metric_without_data_is_an_empty_series(api: Api, long_run: str) -> None:
    """What has not been logged yet is empty, not an error."""
    assert series(api, long_run, "entropy") == {"step": [], "value": [], "nonfinite": []}
    empty = api.get(f"/runs/{api.new_run()}/history", metrics="acr").json
    assert empty["total_steps"] == 0
    assert empty["metrics"]["acr"]["step"] == []


def test_names_cannot_break_out_of_the_query(api: Api, long_run: str) -> None:
    """A metric may be called anything, quotes and all."""
    name = """it's "quoted" %s {} \\ ;--"""
    assert series(api, long_run, name)["step"] == []
    api.send(run_id := api.new_run(), scalar(1, 2.5, name))
    assert series(api, run_id, name)["value"] == [2.5]


def test_attempts(api: Api) -> None:
    """A resumed run shows the newest attempt per step; each attempt, and all, are there to ask."""
    run_id = api.new_run()
    api.send(run_id, *(scalar(s, 1.0) for s in range(5)))
    api.send(run_id, *(scalar(s, 2.0, attempt=2) for s in range(3, 4)))
    assert series(api, run_id)["value"] == [1, 1, 1, 2, 1]
    assert series(api, run_id, attempt=1)["value"] == [1, 1, 1, 1, 1]
    assert series(api, run_id, attempt=2)["step"] == [3]
    both = series(api, run_id, attempt="all")
    assert both["attempt"] == [1, 1, 1, 1, 1, 2]
    assert both["step"] == [0, 1, 2, 3, 4, 3]


def test_phases_are_apart(api: Api) -> None:
    """Evaluation at a step never mixes with training at that step."""
    run_id = api.new_run()
    api.send(run_id, scalar(1, 1.0), scalar(1, 9.0, phase="eval"))
    assert series(api, run_id)["value"] == [1.0]
    assert series(api, run_id, phase="eval")["value"] == [9.0]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"metrics": ""}, "metrics"),
        ({"metrics": "acr,,loss"}, "metrics"),
        ({"metrics": "x" * 300}, "metrics"),
        ({"max_points": 3}, "max_points"),
        ({"max_points": "many"}, "max_points"),
        ({"from_step": -1}, "from_step"),
        ({"from_step": 5, "to_step": 4}, "from_step"),
        ({"to_step": 2**60}, "to_step"),
        ({"attempt": 0}, "attempt"),
        ({"attempt": "last"}, "attempt"),
        ({"phase": "test"}, "phase"),
        ({"format": "xml"}, "format"),
    ],
)
def test_a_wrong_question_names_its_field(
    api: Api, long_run: str, query: dict[str, Any], field: str
) -> None:
    """Each malformed parameter is 422 with its own name, never a 500."""
    answer = api.get(f"/runs/{long_run}/history", **query)
    assert answer.status == 422
    assert answer.json["error"]["field"] == field


def test_who_may_read(service: Service, long_run: str) -> None:
    """Reading needs the read scope; an ingest token is not one, and no token is 401."""
    path = f"/runs/{long_run}/history"
    statuses = {name: service.api(name).get(path).status for name in ("read", "ingest", None)}
    assert statuses == {"read": 200, "ingest": 403, None: 401}
    unknown = service.api("read").get("/runs/00000000-0000-0000-0000-000000000000/history")
    assert unknown.status == 404


def test_csv_holds_every_row(api: Api, long_run: str) -> None:
    """A file has one row a step whatever max_points says, odd values as text."""
    answer = api.get(f"/runs/{long_run}/history", format="csv", max_points=10)
    assert answer.headers["Content-Type"].startswith("text/csv")
    lines = answer.body.decode().splitlines()
    assert len(lines) == 5001
    header = [name.strip('"') for name in lines[0].split(",")]
    assert header == ["step", "attempt", "phase", "time", "grad_norm", "my/own"]
    values = {int(line.split(",")[0]): float(line.split(",")[4]) for line in lines[1:]}
    assert values[1234] == 1e9
    assert math.isnan(values[2000])
    assert (values[3000], values[4000]) == (math.inf, -math.inf)


def test_parquet_keeps_nan_apart_from_missing(api: Api) -> None:
    """A NaN that was logged stays NaN; a step without the metric is null."""
    from pyarrow import parquet

    run_id = api.new_run()
    api.send(run_id, scalar(1, "NaN"), scalar(2, 1.0, "loss"), scalar(3, "-Infinity"))
    answer = api.get(f"/runs/{run_id}/history", format="parquet", metrics="grad_norm,loss")
    table = parquet.read_table(io.BytesIO(answer.body))
    assert table.column("step").to_pylist() == [1, 2, 3]
    assert table.column("loss").to_pylist() == [None, 1.0, None]
    nan, missing, infinite = table.column("grad_norm").to_pylist()
    assert math.isnan(nan)
    assert missing is None
    assert infinite == -math.inf


def test_a_file_can_hold_all_attempts_and_odd_names(api: Api) -> None:
    """All attempts come step by step; a metric called like a fixed column gets a suffix."""
    run_id = api.new_run()
    api.send(run_id, scalar(1, 1.0, "time"), scalar(2, 2.0, "time"))
    api.send(run_id, scalar(2, 3.0, "time", attempt=2, time=12.5))
    answer = api.get(f"/runs/{run_id}/history", format="csv", attempt="all")
    lines = answer.body.decode().replace('"', "").splitlines()
    assert lines == [
        "step,attempt,phase,time,time (metric)",
        "1,1,train,,1",
        "2,1,train,,2",
        "2,2,train,12.5,3",
    ]


def test_a_file_of_a_run_without_steps_has_its_header(api: Api) -> None:
    """An empty run exports as an empty table, not as an error."""
    answer = api.get(f"/runs/{api.new_run()}/history", format="csv", metrics="acr")
    assert answer.body.decode().replace('"', "") == "step,attempt,phase,time,acr\n"


def test_json_is_strict_for_a_series_of_nothing_but_nan(api: Api) -> None:
    """A metric that never was a number still makes a page that can be read."""
    run_id = api.new_run()
    api.send(run_id, *(scalar(s, "NaN") for s in range(50)))
    body = api.get(f"/runs/{run_id}/history", max_points=10).body
    found = json.loads(body)["metrics"]["grad_norm"]
    assert found["value"] == [None, None]
    assert len(found["nonfinite"]) == 50
