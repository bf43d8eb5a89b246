"""Whatever is thrown at the service, it answers, and never with a 5xx."""

from __future__ import annotations

import gzip
import json
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serving import Api, Service

JSON = {"Content-Type": "application/json"}
MSGPACK = {"Content-Type": "application/msgpack"}
COMMON = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

texts = st.text(max_size=12) | st.sampled_from(["NaN", "Infinity", "\x00", "train", "0", "a" * 300])
numbers = (
    st.integers()
    | st.integers(-2, 5)
    | st.sampled_from([2**31, 2**53, 2**63, 2**64, 10**30])
    | st.floats()
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
counts = st.lists(st.integers(-1, 2**41) | st.integers(0, 5), max_size=6)
columns = st.fixed_dictionaries(
    {
        "size": st.lists(st.integers(0, 20_000) | st.integers(0, 4), max_size=4),
        **{
            name: st.lists(st.none() | numbers, max_size=4)
            for name in ("reward_mean", "reward_std", "reward_min", "reward_max")
        },
    },
    optional={
        "n_correct": st.lists(st.none() | st.integers(-1, 5), max_size=4),
        "group_id": st.lists(texts, max_size=4),
    },
)
records = values | st.fixed_dictionaries(
    {"step": st.integers(-1, 5) | numbers},
    optional={
        "attempt": st.integers(0, 3) | numbers,
        "phase": texts,
        "generation": st.integers(0, 3) | numbers,
        "source": texts,
        "stage": st.sampled_from(["sampled", "trained", "other"]),
        "time": numbers,
        "groups": columns | values,
        "counts": st.dictionaries(
            st.sampled_from(["0", "1", "2", "3", "4", "x", "-1", "99999", "²"]), counts, max_size=3
        ),
        "dropped": st.integers(0, 3) | numbers,
        "advantage_groups": st.integers(0, 3),
        "advantage_zero": st.integers(0, 3),
        "carried": st.booleans(),
        "applied": st.integers(0, 3) | numbers,
        "scalars": st.dictionaries(texts, scalars, max_size=4),
    },
)
batches = values | st.fixed_dictionaries(
    {},
    optional={
        "records": st.lists(records, max_size=5),
        "acknowledgements": st.lists(values, max_size=2),
        "alerts": st.lists(
            values | st.fixed_dictionaries({"title": texts, "text": texts}), max_size=2
        ),
        "lost": values | st.dictionaries(texts, st.integers(0, 9), max_size=2),
        "other": values,
    },
)


@pytest.fixture(scope="module")
def target(service: Service) -> tuple[Api, str]:
    """Make the run that everything is thrown at."""
    api = service.api("admin")
    return api, api.new_run()


def check(answer: Any) -> None:
    """Fail on a server error, and on a refusal that does not say why."""
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        error = answer.json["error"]
        assert error["code"]
        assert error["message"]


@COMMON
@given(batch=batches)
def test_any_json_is_answered(target: tuple[Api, str], batch: Any) -> None:
    """JSON of any shape, NaN and lone surrogates included; what was not taken is explained."""
    api, run_id = target
    body = json.dumps(batch).encode()
    answer = api.call("POST", f"/api/v1/runs/{run_id}/steps", raw=body, headers=JSON)
    check(answer)
    if answer.status == 200:
        found = answer.json
        sent = len(batch.get("records", []))
        assert found["accepted"] + found["duplicates"] + len(found["rejected"]) == sent
        for one in found["rejected"]:
            assert one["reason"].startswith(f"records[{one['index']}]")


@COMMON
@given(batch=batches)
def test_any_msgpack_is_answered(target: tuple[Api, str], batch: Any) -> None:
    """The same as msgpack, where it can be written so."""
    api, run_id = target
    try:
        body = msgspec.msgpack.encode(batch)
    except (OverflowError, UnicodeEncodeError):
        return
    check(api.call("POST", f"/api/v1/runs/{run_id}/steps", raw=body, headers=MSGPACK))


@COMMON
@given(
    body=st.binary(max_size=200),
    kind=st.sampled_from([JSON, MSGPACK, {"Content-Type": "text/plain"}, {"Content-Type": ""}]),
    encoding=st.sampled_from(["identity", "gzip", "zstd", "br", "", "GZIP"]),
    packed=st.booleans(),
)
def test_any_bytes_are_answered(
    target: tuple[Api, str], body: bytes, kind: dict[str, str], encoding: str, packed: bool
) -> None:
    """Bytes of any kind, promised to be anything, packed or not."""
    api, run_id = target
    if packed:
        pack = {"gzip": gzip.compress, "zstd": zstandard.compress}.get(encoding, bytes)
        body = pack(body)
    headers = {**kind, "Content-Encoding": encoding}
    check(api.call("POST", f"/api/v1/runs/{run_id}/steps", raw=body, headers=headers))


@COMMON
@given(body=values, path=st.sampled_from(["", "/{run}/heartbeat", "/{run}/finish"]))
def test_any_body_of_a_run_is_answered(target: tuple[Api, str], body: Any, path: str) -> None:
    """The other endpoints that trainers call take garbage as calmly."""
    api, run_id = target
    if isinstance(body, dict):
        body = {"project": "math", "key": "k", **body}
    raw = json.dumps(body).encode()
    path = f"/api/v1/runs{path.format(run=run_id)}"
    check(api.call("POST", path, raw=raw, headers=JSON))


@COMMON
@given(
    query=st.dictionaries(
        st.sampled_from(["project", "state", "search", "tag", "sort", "limit", "cursor"]),
        texts | numbers.map(str),
        max_size=4,
    )
)
def test_any_question_is_answered(target: tuple[Api, str], query: dict[str, str]) -> None:
    """Lists take any filter."""
    api, run_id = target
    query = {name: value.encode("utf-8", "replace") for name, value in query.items()}  # type: ignore[misc]
    check(api.call("GET", "/api/v1/runs", query=query))
    check(api.call("GET", "/api/v1/incidents", query=query))
    check(api.call("GET", f"/api/v1/runs/{run_id}/incidents", query=query))


def test_the_run_is_whole_afterwards(target: tuple[Api, str], service: Service) -> None:
    """After all that, the run reads, writes and judges as ever."""
    api, run_id = target
    assert api.get(f"/runs/{run_id}").status == 200
    attempt = api.get(f"/runs/{run_id}").json["attempt"]
    record = {"step": 2**40, "attempt": attempt, "scalars": {"loss": 0.5}}
    assert api.send(run_id, record)["accepted"] == 1
    rows = service.rows("SELECT loss FROM step WHERE run_id = %s AND step = %s", run_id, 2**40)
    assert rows == [{"loss": 0.5}]
