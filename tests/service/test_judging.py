"""Incidents, alerts and acknowledgements, as they come out of what was sent."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from tests.serving import Api, Service, serving

DEAD = {"counts": {"4": [8, 0, 0, 0, 0]}}
LIVE = {"counts": {"4": [0, 0, 8, 0, 0]}}


def incidents(api: Api, run_id: str, kind: str) -> list[dict[str, Any]]:
    """Read the incidents of one kind, newest first."""
    found = api.get(f"/runs/{run_id}/incidents").json["incidents"]
    return [one for one in found if one["kind"] == kind]


def test_a_collapse_is_one_incident_from_open_to_closed(api: Api, service: Service) -> None:
    """A collapse opens one incident, names its causes, and closes it when groups live again."""
    run_id = api.new_run()
    api.send(run_id, *({"step": step, **LIVE} for step in range(30)))
    assert incidents(api, run_id, "advantage_collapse") == []
    for step in range(30, 90):
        api.send(run_id, {"step": step, **DEAD})
    (one,) = incidents(api, run_id, "advantage_collapse")
    assert one["state"] == "open"
    assert one["severity"] == "critical"
    assert one["causes"][0]["name"]
    assert one["advice"]
    assert one["evidence"]
    assert [change["action"] for change in one["changes"]][:2] == ["opened", "escalated"]
    run = api.get(f"/runs/{run_id}").json
    assert [(i["id"], i["kind"]) for i in run["open_incidents"]] == [(one["id"], one["kind"])]
    api.send(run_id, *({"step": step, **LIVE} for step in range(90, 200)))
    (one,) = incidents(api, run_id, "advantage_collapse")
    assert one["state"] == "closed"
    assert one["closed_at"] is not None
    assert one["changes"][-1]["action"] == "closed"
    numbers = "SELECT number FROM incident_change WHERE run_id = %s ORDER BY number"
    found = [row["number"] for row in service.rows(numbers, run_id)]
    assert found == list(range(1, len(found) + 1))


def test_evaluation_opens_no_collapse(api: Api) -> None:
    """Case 42: dead groups in eval never open an incident of training."""
    run_id = api.new_run()
    for step in range(60):
        api.send(run_id, {"step": step, **LIVE}, {"step": step, "phase": "eval", **DEAD})
    assert incidents(api, run_id, "advantage_collapse") == []


def test_a_gradient_that_stays_nan_is_one_incident(api: Api) -> None:
    """Case 29: fifty NaN gradients are one incident that counts them; ingest goes on."""
    run_id = api.new_run()
    for step in range(50):
        assert api.send(run_id, {"step": step, "scalars": {"grad_norm": "NaN"}})["accepted"] == 1
    (one,) = incidents(api, run_id, "gradient_nonfinite")
    assert one["state"] == "open"
    assert one["onset_step"] == 0
    assert any(value == 50 for value in one["evidence"].values()) or one["last_step"] >= 25
    api.send(run_id, *({"step": step, "scalars": {"grad_norm": 0.5}} for step in range(50, 90)))
    (one,) = incidents(api, run_id, "gradient_nonfinite")
    assert one["state"] == "closed"


def test_a_restarted_service_goes_on_judging(database_url: str) -> None:
    """A service that starts anew has the open incident go on: no second one, no lost close."""
    run_id = ""
    for number, rows in enumerate((DEAD, DEAD, LIVE)):
        with serving(database_url) as service:
            api = service.api("admin")
            run_id = run_id or api.new_run()
            first = 60 * number
            api.send(run_id, *({"step": step, **rows} for step in range(first, first + 60)))
            (one,) = incidents(api, run_id, "advantage_collapse")
            assert one["state"] == ("closed" if rows is LIVE else "open")
    assert [change["action"] for change in one["changes"]].count("opened") == 1


def test_a_late_step_keeps_the_pooled_rate_it_had(api: Api, service: Service) -> None:
    """A rank that reports an old step late changes that step, not the pooled rate noted then."""
    run_id = api.new_run()
    api.send(run_id, *({"step": step, **DEAD} for step in range(5)))
    api.send(run_id, *({"step": step, **LIVE} for step in range(5, 10)))
    query = "SELECT step, acr, acr_pooled FROM step WHERE run_id = %s ORDER BY step"
    before = service.rows(query, run_id)
    api.send(run_id, {"step": 2, "source": "1", **LIVE})
    after = service.rows(query, run_id)
    assert [row["acr_pooled"] for row in after] == [row["acr_pooled"] for row in before]
    assert (before[2]["acr"], after[2]["acr"]) == (1.0, 0.5)
    assert after[9]["acr_pooled"] == 0.5


def test_a_run_without_signal_ends_with_that_verdict(api: Api) -> None:
    """Case 16: a run that never had a live group ends as 'no learning signal'."""
    run_id = api.new_run()
    api.send(run_id, *({"step": step, **DEAD} for step in range(60)))
    api.post(f"/runs/{run_id}/finish", {"attempt": 1, "state": "finished"})
    (one,) = incidents(api, run_id, "advantage_collapse")
    assert "no learning signal" in one["title"].lower()


def test_alerts_do_not_flood(api: Api) -> None:
    """The same title again counts up, a resend changes nothing, an acknowledgement ends it."""
    run_id = api.new_run()
    for step in (1, 2, 2, 3):
        alert = {"title": "look", "text": f"at {step}", "level": "critical", "step": step}
        api.send(run_id, alerts=[alert])
    api.send(run_id, alerts=[{"title": "other"}])
    found = incidents(api, run_id, "alert")
    assert [one["title"] for one in found] == ["other", "look"]
    assert found[1]["evidence"] == {"count": 3}
    assert found[1]["severity"] == "critical"
    assert (found[1]["onset_step"], found[1]["last_step"]) == (1, 3)
    path = f"/runs/{run_id}/incidents/{found[1]['id']}/acknowledge"
    seen = api.post(path, {"note": "known"}).json
    assert (seen["acknowledged_by"], seen["acknowledged_note"]) == ("admin", "known")
    assert seen["state"] == "closed"
    api.send(run_id, alerts=[{"title": "look", "text": "anew", "level": "critical", "step": 9}])
    assert len(incidents(api, run_id, "alert")) == 3


def test_the_first_acknowledgement_stays(api: Api, service: Service) -> None:
    """Who saw an incident first stays on record; the incident stays open."""
    run_id = api.new_run()
    api.send(run_id, *({"step": step, **DEAD} for step in range(60)))
    (one,) = incidents(api, run_id, "advantage_collapse")
    first = service.api("control").post(f"/incidents/{one['id']}/acknowledge")
    assert first.status == 200, first.body
    assert (first.json["acknowledged_by"], first.json["state"]) == ("control", "open")
    revision = api.get(f"/runs/{run_id}").json["revision"]
    again = api.post(f"/incidents/{one['id']}/acknowledge", {"note": "me too"})
    assert again.json["acknowledged_by"] == "control"
    assert api.get(f"/runs/{run_id}").json["revision"] == revision
    missing = api.post(f"/incidents/{uuid.uuid4()}/acknowledge")
    assert missing.status == 404


def test_incidents_are_filtered_and_paged(api: Api) -> None:
    """The list over all runs narrows by project, state, severity and kind, page by page."""
    project = f"incidents-{uuid.uuid4()}"
    run_id = api.new_run(project)
    for number in range(5):
        level = "critical" if number % 2 else "info"
        api.send(run_id, alerts=[{"title": str(number), "level": level, "step": number}])
    titles: list[str] = []
    cursor: str | None = None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = api.get("/incidents", project=project, limit=2, **more).json
        titles += [one["title"] for one in page["incidents"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert titles == ["4", "3", "2", "1", "0"]
    critical = api.get("/incidents", project=project, severity="critical").json["incidents"]
    assert [one["title"] for one in critical] == ["3", "1"]
    assert api.get("/incidents", project=project, state="closed").json["incidents"] == []
    assert api.get("/incidents", project=project, kind="stale").json["incidents"] == []
    assert critical[0]["run_id"] == run_id
    assert critical[0]["project"] == project
    assert api.get("/incidents", severity="odd").status == 422


def test_a_directive_travels_with_the_answer(api: Api, service: Service) -> None:
    """Each answer carries the directive; what the trainer says of it is stored once."""
    run_id = api.new_run(abilities=["focal"])
    assert api.send(run_id, {"step": 1, **LIVE})["directive"] is None
    wish = {"mode": "on", "focal": {"gamma": 0.5}, "reason": "collapse"}
    issued = api.put(f"/runs/{run_id}/directive", wish)
    assert issued.status == 200, issued.body
    told = api.send(run_id, {"step": 2, **LIVE})["directive"]
    assert (told["version"], told["mode"], told["focal"]) == (1, "on", {"gamma": 0.5})
    assert told["issued_by"] == "admin"
    assert api.post(f"/runs/{run_id}/heartbeat").json["directive"] == told
    ack = {"version": 1, "step": 3, "source": "0"}
    for _ in range(2):
        api.send(run_id, acknowledgements=[ack])
    (one,) = api.get(f"/runs/{run_id}/directives").json["directives"]
    assert (one["state"], one["acknowledged_step"], len(one["acks"])) == ("acknowledged", 3, 1)
    api.send(run_id, {"step": 4, "applied": 1, **LIVE}, {"step": 5, "applied": 1, **LIVE})
    (one,) = api.get(f"/runs/{run_id}/directives").json["directives"]
    assert (one["state"], one["effective_step"]) == ("effective", 4)
    stored = service.rows("SELECT state, effective_step FROM directive WHERE run_id = %s", run_id)
    assert stored == [{"state": "effective", "effective_step": 4}]
    api.send(run_id, acknowledgements=[{"version": 7, "step": 1}])


@pytest.mark.parametrize("status", ["refused", "expired"])
def test_a_trainer_may_refuse(api: Api, status: str) -> None:
    """A refusal keeps the trainer's own words."""
    run_id = api.new_run(abilities=["focal"])
    api.put(f"/runs/{run_id}/directive", {"mode": "on", "focal": {"gamma": 0.5}})
    said = {"version": 1, "step": 3, "status": status, "reason": "no std division\u0000"}
    api.send(run_id, acknowledgements=[said])
    (one,) = api.get(f"/runs/{run_id}/directives").json["directives"]
    assert one["state"] == status
    assert one["acks"][0]["reason"] == "no std division\ufffd"
