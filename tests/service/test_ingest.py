"""What a batch does to the database, over real HTTP."""

from __future__ import annotations

import gzip
import json
import math
import time
from typing import Any

import msgspec
import pytest
import zstandard
from tests.serving import Api, Service

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally

MSGPACK = {"Content-Type": "application/msgpack"}
JSON = {"Content-Type": "application/json"}


def groups(rewards: list[Any], **ids: list[str]) -> dict[str, Any]:
    """Reduce lists of 0/1 rewards to the columns of a record."""
    found = Groups.from_rewards(rewards, success_threshold=1.0)
    return {name: c for name, c in found.to_columns().items() if c is not None} | ids


def steps(service: Service, run_id: str) -> list[dict[str, Any]]:
    """Read the step rows of a run, ascending."""
    query = "SELECT * FROM step WHERE run_id = %s ORDER BY phase, attempt, step"
    return service.rows(query, run_id)


def post_raw(api: Api, run_id: str, body: bytes, headers: dict[str, str]) -> Any:
    """Post a ready-made body."""
    return api.call("POST", f"/api/v1/runs/{run_id}/steps", raw=body, headers=headers)


def everything(service: Service, run_id: str) -> dict[str, list[dict[str, Any]]]:
    """Read every row about a run that a resend must not touch."""
    tables = ("step_part", "step_groups", "step", "incident", "incident_change", "attempt")
    found = {
        name: service.rows(f"SELECT * FROM {name} t WHERE run_id = %s ORDER BY t::text", run_id)
        for name in tables
    }
    kept = "SELECT revision, latest, sparkline, verdict, last_step, lost FROM run WHERE id = %s"
    return {**found, "run": service.rows(kept, run_id)}


def test_a_step_is_stored_and_derived(api: Api, service: Service) -> None:
    """One record with groups and scalars gives one step row with the vitals of its groups."""
    run_id = api.new_run()
    record = {
        "step": 3,
        "groups": groups([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]]),
        "scalars": {"grad_norm": 0.5, "my/own": 2.0},
    }
    answer = api.send(run_id, record)
    assert answer["accepted"] == 1
    assert answer["last_step"] == 3
    assert answer["rejected"] == []
    (row,) = steps(service, run_id)
    assert row["acr"] == pytest.approx(2 / 3)
    assert row["acr_all_fail"] == row["acr_all_pass"] == pytest.approx(1 / 3)
    assert row["success_rate"] == 0.5
    assert row["groups"] == 3
    assert row["grad_norm"] == 0.5
    assert row["extra"] == {"my/own": 2.0}
    assert row["acr_pooled"] == pytest.approx(2 / 3)
    assert row["acr_pooled_low"] < 2 / 3 < row["acr_pooled_high"]
    stored = Tally.from_dict(msgspec.msgpack.decode(row["tally"]))
    assert stored.counts == {4: (1, 0, 1, 0, 1)}


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_encoding_stores_the_same(
    api: Api, service: Service, encoding: str, packed: bool
) -> None:
    """JSON and msgpack, plain, gzip or zstd, give the same row."""
    run_id = api.new_run()
    encode = msgspec.msgpack.encode if packed else msgspec.json.encode
    body = encode({"records": [{"step": 1, "scalars": {"loss": 0.25}}]})
    pack = {"identity": bytes, "gzip": gzip.compress, "zstd": zstandard.compress}[encoding]
    headers = {**(MSGPACK if packed else JSON), "Content-Encoding": encoding}
    answer = post_raw(api, run_id, pack(body), headers)
    assert answer.status == 200, answer.body
    assert [row["loss"] for row in steps(service, run_id)] == [0.25]


def test_a_resend_changes_nothing(api: Api, service: Service) -> None:
    """The very same batch again leaves every row as it was, revision and moments included."""
    run_id = api.new_run()
    records = [
        {
            "step": step,
            "time": 1000.0 + step,
            "groups": groups([[0, 0], [1, 1], [0, 1]], group_id=["a", "b", "c"]),
            "scalars": {"grad_norm": "NaN" if step == 2 else 0.1 * step, "x": 1.0},
        }
        for step in range(5)
    ]
    alert = {"title": "look", "text": "here", "step": 3}
    first = api.send(run_id, *records, alerts=[alert], lost={"queue_full": 2})
    before = repr(everything(service, run_id))
    second = api.send(run_id, *records, alerts=[alert], lost={"queue_full": 2})
    assert (first["accepted"], first["duplicates"]) == (5, 0)
    assert (second["accepted"], second["duplicates"]) == (0, 5)
    # As text, since a NaN is not equal to itself.
    assert repr(everything(service, run_id)) == before


def test_a_key_sent_again_replaces_what_it_carries(api: Api, service: Service) -> None:
    """A second record of a key replaces its groups and each scalar it names, and keeps the rest."""
    run_id = api.new_run()
    api.send(
        run_id,
        {"step": 1, "groups": groups([[0, 0]]), "dropped": 3, "scalars": {"loss": 1.0, "kl": 2.0}},
    )
    api.send(run_id, {"step": 1, "scalars": {"kl": 3.0}})
    (row,) = steps(service, run_id)
    assert (row["loss"], row["kl"], row["acr"]) == (1.0, 3.0, 1.0)
    assert Tally.from_dict(msgspec.msgpack.decode(row["tally"])).dropped == 3
    api.send(run_id, {"step": 1, "groups": groups([[0, 1], [1, 0]])})
    (row,) = steps(service, run_id)
    assert (row["acr"], row["groups"], row["loss"]) == (0.0, 2.0, 1.0)
    assert Tally.from_dict(msgspec.msgpack.decode(row["tally"])).dropped == 0
    api.send(run_id, {"step": 1, "counts": {"2": [4, 0, 0]}})
    (row,) = steps(service, run_id)
    assert (row["acr"], row["groups"]) == (1.0, 4.0)
    assert service.rows("SELECT * FROM step_groups WHERE run_id = %s", run_id) == []


def test_one_bad_record_spoils_nothing(api: Api, service: Service) -> None:
    """A bad record is rejected with its index and field; those around it are stored."""
    run_id = api.new_run()
    answer = api.send(
        run_id,
        {"step": 1, "scalars": {"loss": 1.0}},
        {"step": -1},
        {"step": 2, "scalars": {"loss": "high"}},
        {"step": 3, "groups": {"size": [4]}},
        {"step": 4, "counts": {"4": [1, 2]}},
        {"step": 5, "groups": {**groups([[0, 1]]), "reward_std": [None]}},
        {"step": 6, "scalars": {"loss": 6.0}},
    )
    assert answer["accepted"] == 2
    reasons = {one["index"]: one["reason"] for one in answer["rejected"]}
    assert reasons.keys() == {1, 2, 3, 4, 5}
    assert reasons[1].startswith("records[1].step: ")
    assert reasons[2].startswith("records[2].scalars['loss']: ")
    assert reasons[3].startswith("records[3].groups: ")
    assert reasons[4].startswith("records[4].counts['4']: ")
    assert reasons[5].startswith("records[5].groups.reward_std: ")
    assert [row["step"] for row in steps(service, run_id)] == [1, 6]


def test_one_bad_text_in_msgpack_spoils_nothing(api: Api, service: Service) -> None:
    """A text that is not UTF-8 rejects its own record only."""
    run_id = api.new_run()
    good = msgspec.msgpack.encode({"step": 1, "scalars": {"loss": 1.0}})
    bad = msgspec.msgpack.encode({"step": 2, "source": "abc"}).replace(b"abc", b"\xed\xa0\xbd")
    body = b"\x81\xa7records\x92" + good + bad
    answer = post_raw(api, run_id, body, MSGPACK)
    assert answer.status == 200, answer.body
    assert [one["index"] for one in answer.json["rejected"]] == [1]
    assert [row["step"] for row in steps(service, run_id)] == [1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"records": 5}', "records"),
        (b'{"acknowledgements": [{"version": 1, "step": 2}, {"version": -1}]}', None),
        (b'{"acknowledgements": [{"version": 1, "step": -2}]}', "acknowledgements[0].step"),
        (b'{"alerts": [{"title": ""}]}', "alerts[0].title"),
        (b'{"lost": {"x": -1}}', "lost[...]"),
        (b'{"alerts": [{"title": NaN}]}', "alerts[0].title"),
    ],
)
def test_a_wrong_envelope_names_its_field(api: Api, body: bytes, field: str | None) -> None:
    """What is wrong outside the records is 422 and names the field."""
    answer = post_raw(api, api.new_run(), body, JSON)
    assert answer.status == 422, answer.body
    error = answer.json["error"]
    assert error["code"] == "invalid"
    assert error["message"]
    if field is not None:
        assert error["field"] == field


def test_a_body_that_is_none_is_400(api: Api) -> None:
    """Neither JSON nor msgpack is a bad request, whichever was promised."""
    run_id = api.new_run()
    for headers, body in ((JSON, b'{"records": ['), (MSGPACK, b"\x81\xa7records\xc1")):
        answer = post_raw(api, run_id, body, headers)
        assert answer.status == 400, answer.body
    packed = {**JSON, "Content-Encoding": "gzip"}
    assert post_raw(api, run_id, b"not gzip", packed).status == 400
    nested = b'{"records":' + b"[" * 200_000
    assert post_raw(api, run_id, nested, JSON).status == 400


def test_unknown_types_are_415(api: Api) -> None:
    """A content type or encoding nobody reads is named and refused."""
    run_id = api.new_run()
    answer = post_raw(api, run_id, b"a,b", {"Content-Type": "text/csv"})
    assert answer.status == 415
    assert "text/csv" in answer.json["error"]["message"]
    answer = post_raw(api, run_id, b"{}", {**JSON, "Content-Encoding": "br"})
    assert answer.status == 415


def test_nonfinite_numbers_keep_their_class(api: Api, service: Service) -> None:
    """Bare NaN and Infinity in JSON, their names, and msgpack floats keep their class."""
    run_id = api.new_run()
    scalars = b'{"a": 0.5, "grad_norm": NaN, "loss": Infinity, "b": -Infinity}'
    body = b'{"records": [{"step": 1, "scalars": ' + scalars + b"}]}"
    assert post_raw(api, run_id, body, JSON).json["accepted"] == 1
    named = {"grad_norm": "NaN", "loss": "Infinity", "b": "-Infinity", "a": 0.5}
    api.send(run_id, {"step": 2, "scalars": named})
    floats = {"grad_norm": math.nan, "loss": math.inf, "b": -math.inf, "a": 0.5}
    packed = msgspec.msgpack.encode({"records": [{"step": 3, "scalars": floats}]})
    assert post_raw(api, run_id, packed, MSGPACK).json["accepted"] == 1
    rows = steps(service, run_id)
    assert len(rows) == 3
    for row in rows:
        assert math.isnan(row["grad_norm"])
        assert row["loss"] == math.inf
        assert row["extra"] == {"a": 0.5, "b": "-Infinity"}
    run = api.get(f"/runs/{run_id}").json
    assert run["latest"]["grad_norm"] is None
    assert run["nonfinite"] == {"grad_norm": "NaN", "loss": "Infinity", "b": "-Infinity"}


def test_text_that_the_database_refuses_is_replaced(api: Api, service: Service) -> None:
    """Emoji stay; NUL and lone surrogates are replaced, wherever a text may stand."""
    key = "k\ud83d\u0000-" + api.new_run()
    run = {
        "project": "p\u0000",
        "key": key,
        "name": "😀 \ud83d\u0000",
        "config": {"\u0000": "\ud83d"},
    }
    body = json.dumps(run).encode()
    answer = api.call("POST", "/api/v1/runs", raw=body, headers=JSON)
    assert answer.status == 201, answer.body
    assert answer.json["name"] == "😀 \ufffd\ufffd"
    run_id = answer.json["id"]
    record = {"step": 1, "source": "\ud83d", "scalars": {"a\u0000": 1.0}}
    record["groups"] = groups([[0, 1]], prompt_id=["\ud83d\u0000"])
    assert api.send(run_id, record, alerts=[{"title": "\u0000", "text": "\ud83d"}])["accepted"] == 1
    (row,) = steps(service, run_id)
    assert row["extra"] == {"a\ufffd": 1.0}
    assert api.get(f"/runs/{run_id}").json["config"] == {"\ufffd": "\ufffd"}


def test_a_large_body_is_413(service: Service) -> None:
    """Over the limit, as sent or unpacked, is 413, and the service goes on."""
    api = service.api("ingest")
    run_id = api.new_run()
    bomb = {**JSON, "Content-Encoding": "gzip"}
    limit = service.settings.max_decompressed_bytes
    assert post_raw(api, run_id, gzip.compress(b" " * (limit + 1)), bomb).status == 413
    bomb["Content-Encoding"] = "zstd"
    assert post_raw(api, run_id, zstandard.compress(b" " * (limit + 1)), bomb).status == 413
    huge = b" " * (service.settings.max_body_bytes + 1)
    answer = post_raw(api, run_id, huge, JSON)
    assert answer.status == 413
    assert answer.json["error"]["code"] == "too_large"
    assert api.send(run_id, {"step": 1})["accepted"] == 1


def test_steps_may_come_in_any_order(api: Api, service: Service) -> None:
    """Case 36: step 203 after 249 is stored, and nothing is lost."""
    run_id = api.new_run()
    for step in (249, 203, 250, 204):
        api.send(run_id, {"step": step, "scalars": {"loss": float(step)}})
    assert [row["step"] for row in steps(service, run_id)] == [203, 204, 249, 250]
    run = api.get(f"/runs/{run_id}").json
    assert run["step"] == 250
    assert run["latest"]["loss"] == 250.0


def test_evaluation_is_a_phase_of_its_own(api: Api, service: Service) -> None:
    """Case 42: an eval row at a train step overwrites nothing and never enters the train ACR."""
    run_id = api.new_run()
    api.send(run_id, {"step": 20, "groups": groups([[0, 1]] * 8), "scalars": {"loss": 1.0}})
    dead = {"step": 20, "phase": "eval", "groups": groups([[0, 0]] * 8), "scalars": {"loss": 9.0}}
    api.send(run_id, dead)
    evaluated, trained = steps(service, run_id)
    assert (evaluated["phase"], evaluated["acr"], evaluated["loss"]) == ("eval", 1.0, 9.0)
    assert (trained["phase"], trained["acr"], trained["loss"]) == ("train", 0.0, 1.0)
    assert trained["acr_pooled"] == 0.0
    run = api.get(f"/runs/{run_id}").json
    assert (run["latest"]["loss"], run["latest_eval"]["loss"]) == (1.0, 9.0)
    assert run["sparkline"]["acr"] == [0.0]


def test_names_of_trainers_become_one_series(api: Api, service: Service) -> None:
    """Case 46: old and new names of a metric share a column; unknown names are kept."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "scalars": {"completion_length": 10.0, "train/loss": 1.0}})
    api.send(run_id, {"step": 2, "scalars": {"completions/mean_length": 20.0, "rewards/X": 0.5}})
    first, second = steps(service, run_id)
    assert (first["response_length_mean"], second["response_length_mean"]) == (10.0, 20.0)
    assert first["loss"] == 1.0
    assert second["extra"] == {"rewards/X": 0.5}


def test_what_the_trainer_says_otherwise_is_kept_beside(api: Api, service: Service) -> None:
    """The groups decide; a differing number from the trainer is kept under its own label."""
    run_id = api.new_run()
    record = {"step": 1, "groups": groups([[1, 1], [0, 0]])}
    api.send(run_id, {**record, "scalars": {"reward": 0.7, "success_rate": 0.5}})
    (row,) = steps(service, run_id)
    assert (row["reward_mean"], row["success_rate"]) == (0.5, 0.5)
    assert row["extra"] == {"trainer/reward_mean": 0.7}


def test_the_clients_clock_decides_nothing(api: Api) -> None:
    """Case 48: a clock five hours ahead shows as skew; liveness is the server's."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "time": time.time() + 5 * 3600})
    run = api.get(f"/runs/{run_id}").json
    assert run["clock_skew_seconds"] == pytest.approx(5 * 3600, abs=60)
    assert run["state"] == "running"
    other = api.get(f"/runs/{api.new_run()}").json
    assert other["last_seen_at"] >= run["last_seen_at"]


def test_what_a_client_lost_is_shown(api: Api) -> None:
    """The counts of what a client had to drop stand in the run, by source and reason."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "source": "3"}, lost={"queue_full": 2})
    api.send(run_id, {"step": 2, "source": "3"}, lost={"queue_full": 5})
    assert api.get(f"/runs/{run_id}").json["lost"] == {"3": {"queue_full": 5}}


def test_unknown_attempts_are_refused(api: Api) -> None:
    """A record of the next attempt opens it; one far beyond is a mistake and says so."""
    run_id = api.new_run()
    answer = api.send(run_id, {"step": 1}, {"step": 1, "attempt": 2}, {"step": 1, "attempt": 9})
    assert answer["accepted"] == 2
    (rejected,) = answer["rejected"]
    assert rejected["index"] == 2
    assert rejected["reason"].startswith("records[2].attempt: ")
    attempts = api.get(f"/runs/{run_id}").json["attempts"]
    assert [one["attempt"] for one in attempts] == [1, 2]
