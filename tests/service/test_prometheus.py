"""Prometheus can scrape the service, and sees what a reader with that token may see."""

from __future__ import annotations

import math

from prometheus_client.parser import text_string_to_metric_families
from tests.serving import Answer, Api, Service, serving


def samples(answer: Answer) -> dict[frozenset[str], float]:
    """Parse a scrape into {name and label values: value}."""
    assert answer.status == 200, answer.body
    return {
        frozenset({sample.name, *sample.labels.values()}): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def key(*words: str) -> frozenset[str]:
    """Give the key of a sample."""
    return frozenset(words)


def test_a_scrape_shows_runs_incidents_and_requests(service: Service, api: Api) -> None:
    """Runs by state, open incidents, a live run's vitals, and what was served."""
    run_id = api.new_run(name="qwen")
    api.send(run_id, {"step": 7, "scalars": {"grad_norm": "Infinity", "loss": 0.5}})
    api.send(run_id, alerts=[{"title": "disk full", "level": "critical"}])
    found = samples(service.api("read").call("GET", "/metrics"))
    known = (run_id, "math", "qwen")
    assert found[key("rlvitals_runs", "running")] >= 1
    assert found[key("rlvitals_open_incidents", "alert", "critical")] >= 1
    assert found[key("rlvitals_run_step", *known)] == 7
    assert found[key("rlvitals_run_metric", *known, "loss")] == 0.5
    assert found[key("rlvitals_run_metric", *known, "grad_norm")] == math.inf
    assert found[key("rlvitals_http_requests_total", "POST", "200", "/runs/{run_id}/steps")] >= 1


def test_a_finished_run_is_no_longer_exported(service: Service, api: Api) -> None:
    """A scrape holds live runs only, however many there ever were."""
    run_id = api.new_run()
    api.send(run_id, {"step": 1})
    api.post(f"/runs/{run_id}/finish", {"attempt": 1, "state": "finished"})
    assert not any(run_id in labels for labels in samples(api.call("GET", "/metrics")))


def test_a_scrape_needs_a_reader_unless_public(service: Service) -> None:
    """Run names are not for everybody, except where the operator says so."""
    assert service.api(None).call("GET", "/metrics").status == 401
    assert service.api("ingest").call("GET", "/metrics").status == 403
    url = service.settings.database_url
    with serving(url, metrics_public=True, migrate_on_start=False) as public:
        assert public.api(None).call("GET", "/metrics").status == 200


def test_a_bound_token_scrapes_its_project_only(service: Service, api: Api) -> None:
    """A token bound to one project does not learn the names of another's runs."""
    mine, other = api.new_run("mine"), api.new_run("other")
    token = api.post("/tokens", {"name": "scraper", "project": "mine", "scopes": ["read"]}).json
    text = Api(service.url, token["token"]).call("GET", "/metrics").body.decode()
    assert mine in text
    assert other not in text
