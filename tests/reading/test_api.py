"""The reading client gives people what the service stores, and says plainly what it cannot."""

from __future__ import annotations

import io
import itertools
import math
import socket

import numpy as np
import pandas as pd
import pytest
from tests.serving import Service

import rlvitals
from rlvitals.history import History

STEPS = 30


def test_runs_are_listed_and_found(run: rlvitals.Run, reader: rlvitals.Api) -> None:
    """A run is in the list of its project and can be asked for by id."""
    [summary] = [one for one in reader.runs("reading") if one["id"] == run.id]
    assert summary["name"] == "first run"
    assert reader.runs("nothing here") == []
    whole = reader.run(str(run.id))
    assert whole["config"] == {"lr": 1e-6}
    assert "acr" in whole["metrics"]


def test_all_runs_walks_over_pages(service: Service, reader: rlvitals.Api) -> None:
    """Every run comes once, however small the pages are."""
    made = {service.api().new_run("paged") for _ in range(5)}
    assert reader.runs("paged", limit=2).next_cursor is not None
    found = [one["id"] for one in reader.all_runs(project="paged", limit=2)]
    assert len(found) == 5
    assert set(found) == made


def test_history_keeps_what_is_not_finite(run: rlvitals.Run, reader: rlvitals.Api) -> None:
    """NaN is NaN in columns and data frames, and a null in the answer itself."""
    history = reader.history(str(run.id), ["acr", "grad_norm", "unknown"])
    series = history.series("grad_norm")
    assert series.step.tolist() == list(range(STEPS))
    assert np.flatnonzero(np.isnan(series.value)).tolist() == [10]
    assert not series.missing.any()
    assert history.metrics["grad_norm"]["value"][10] is None
    assert history["metrics"] is history.metrics
    frame = history.to_pandas()
    assert frame.loc[3, "acr"] == 0.5
    assert math.isnan(frame.loc[10, "grad_norm"])
    assert frame.index.name == "step"


def test_history_takes_ranges_and_phases(run: rlvitals.Run, reader: rlvitals.Api) -> None:
    """Steps are limited at both ends, and eval is asked for by its phase."""
    ranged = reader.history(str(run.id), "kl", 5, 7)
    assert ranged.metrics["kl"]["step"] == [5, 6, 7]
    evaluated = reader.history(str(run.id), ["reward_mean"], phase="eval")
    assert evaluated.metrics["reward_mean"]["value"] == [0.5]


def test_groups_of_a_step(run: rlvitals.Run, reader: rlvitals.Api) -> None:
    """Each group's state is told."""
    found = reader.groups(str(run.id), 4)
    assert [group["state"] for group in found["groups"]] == ["all_fail", "live"]


@pytest.mark.parametrize(("form", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_export_is_whole(form: str, read: object, run: rlvitals.Run, reader: rlvitals.Api) -> None:
    """Every step is in the file."""
    assert callable(read)
    frame = read(io.BytesIO(reader.export(str(run.id), form)))
    assert frame["step"].tolist() == list(range(STEPS))


def test_incidents_are_listed_and_acknowledged(run: rlvitals.Run, reader: rlvitals.Api) -> None:
    """The NaN of step 10 is an incident that a person can acknowledge."""
    [incident] = [
        one for one in reader.incidents(str(run.id)) if one["kind"] == "gradient_nonfinite"
    ]
    reader.acknowledge(str(run.id), incident["id"], "seen")
    everywhere = {one["id"]: one for one in reader.incidents()}
    assert everywhere[incident["id"]]["acknowledged_at"] is not None


def test_directives_are_set_listed_and_withdrawn(service: Service, reader: rlvitals.Api) -> None:
    """The newest directive holds; an expected version that is outdated is a conflict."""
    run_id = service.api().new_run(abilities=["focal"])
    assert reader.directive(run_id) is None
    first = reader.set_directive(run_id, {"focal": {"gamma": 0.5}}, reason="try")
    assert (first["mode"], first["version"]) == ("on", 1)
    with pytest.raises(rlvitals.ApiError) as conflict:
        reader.set_directive(run_id, {"focal": {"gamma": 1.0}, "expected_version": 7})
    assert conflict.value.status == 409
    reader.withdraw_directive(run_id, expected_version=1)
    held = reader.directive(run_id)
    assert held is not None
    assert held["mode"] == "off"
    assert [one["version"] for one in reader.directives(run_id)] == [2, 1]


def test_a_refusal_names_field_and_fix(service: Service, reader: rlvitals.Api) -> None:
    """The service's own words reach the caller."""
    run_id = service.api().new_run(abilities=["focal"])
    with pytest.raises(rlvitals.ApiError) as refused:
        reader.set_directive(run_id, {"focal": {"gamma": -1}})
    assert refused.value.status == 422
    assert "gamma" in str(refused.value.field)


@pytest.mark.parametrize("token", [None, "rlv_wrong"])
def test_without_a_good_token_nothing_is_read(service: Service, token: str | None) -> None:
    """A missing or unknown token is a 401."""
    with pytest.raises(rlvitals.ApiError) as refused:
        rlvitals.Api(service.url, token).runs()
    assert refused.value.status == 401


def test_an_ingest_token_reads_nothing(service: Service, run: rlvitals.Run) -> None:
    """A trainer's token is not good for reading."""
    with pytest.raises(rlvitals.ApiError) as refused:
        rlvitals.Api(service.url, service.tokens["ingest"]).history(str(run.id), ["acr"])
    assert refused.value.status == 403


def test_an_unknown_run_is_not_found(reader: rlvitals.Api) -> None:
    """Odd identifiers are quoted, not interpreted."""
    for wanted in ("no-such-run", "../tokens", "a b?c"):
        with pytest.raises(rlvitals.ApiError) as refused:
            reader.run(wanted)
        assert refused.value.status in (404, 422)


def test_nobody_there_is_an_api_error() -> None:
    """A closed port is status 0 with the address in the message."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(rlvitals.ApiError, match=url) as unreachable:
        rlvitals.Api(url).runs()
    assert unreachable.value.status == 0
    assert not rlvitals.Api(url).ready()


def test_without_any_address_the_message_says_what_to_do() -> None:
    """No url, no variable, no local service: say so."""
    with pytest.raises(rlvitals.ApiError, match="RLVITALS_URL"):
        rlvitals.Api()


def test_tokens_are_made_listed_and_revoked(service: Service, reader: rlvitals.Api) -> None:
    """A secret is shown once, works, and stops working when revoked."""
    made = reader.create_token("notebook", ["read"])
    assert rlvitals.Api(service.url, made["token"]).runs() is not None
    assert any(one["id"] == made["id"] and "token" not in one for one in reader.tokens())
    reader.revoke_token(made["id"])
    with pytest.raises(rlvitals.ApiError):
        rlvitals.Api(service.url, made["token"]).runs()


def test_the_stream_tells_of_steps(service: Service, reader: rlvitals.Api) -> None:
    """What was missed comes first, with the revision to go on from."""
    trainer = service.api()
    run_id = trainer.new_run()
    trainer.send(run_id, {"step": 3, "scalars": {"loss": 1.0}})
    events = list(itertools.islice(reader.stream(run_id, since=0), 1))
    assert events[0]["event"] in ("step", "run")
    assert events[0]["id"] is not None


def test_the_catalog_explains_metrics(reader: rlvitals.Api) -> None:
    """Each metric has a label and a definition."""
    assert reader.catalog()["acr"]["label"]


def test_all_attempts_are_told_apart() -> None:
    """With several attempts a step has a row for each, and classes stay with their row."""
    answer = {
        "run_id": "r",
        "metrics": {
            "kl": {
                "step": [1, 2, 2, 3],
                "value": [0.5, None, 2.0, None],
                "attempt": [1, 1, 2, 2],
                "nonfinite": [[2, "Infinity"]],
            }
        },
    }
    history = History(answer)
    assert history.series("kl").value.tolist()[:3] == [0.5, math.inf, 2.0]
    assert history.series("kl").missing.tolist() == [False, False, False, True]
    assert history.to_csv().splitlines() == [
        "step,attempt,kl",
        "1,1,0.5",
        "2,1,Infinity",
        "2,2,2.0",
        "3,2,",
    ]
    assert history.to_pandas().index.names == ["step", "attempt"]


def test_means_of_a_thinned_metric_leave_its_points_alone() -> None:
    """Rows and frames hold the points as drawn; the means of buckets are asked for by name."""
    points = {"step": [0, 3, 9], "value": [1.0, 9.0, 2.0], "nonfinite": []}
    mean = {"step": [2, 7], "value": [3.5, 2.25], "count": [5, 5]}
    history = History({"metrics": {"kl": {**points, "mean": mean}, "acr": points}})
    assert history.metrics["kl"]["mean"] == mean
    assert history.to_pandas()["kl"].tolist() == [1.0, 9.0, 2.0]
    assert [row["kl"] for row in history.rows()] == [1.0, 9.0, 2.0]
    assert history.means("kl").step.tolist() == [2, 7]
    assert history.means("kl").value.tolist() == [3.5, 2.25]
    assert history.means("acr").value.tolist() == history.series("acr").value.tolist()


def test_an_empty_history_is_an_empty_frame() -> None:
    """No metrics give no columns and no rows."""
    history = History({"run_id": "r", "metrics": {}})
    assert history.to_pandas().empty
    assert history.to_csv() == "step\n"
