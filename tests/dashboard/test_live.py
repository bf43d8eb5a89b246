"""What a tick costs and changes: nothing when nothing happened."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from tests.dashboard.sample_api import SampleApi

import rlvitals
from rlvitals.api import ApiError
from rlvitals_dashboard import live
from rlvitals_dashboard.app import create_dashboard
from rlvitals_dashboard.pages import run as run_page

START = {"head": "", "data": "", "small": ""}


def test_stand_in_has_the_real_clients_methods() -> None:
    """Whatever the stand-in takes by name, the real client takes by the same name."""
    for name in ("runs", "run", "history", "groups", "incidents", "directives", "set_directive"):
        real = set(inspect.signature(getattr(rlvitals.Api, name)).parameters)
        ours = set(inspect.signature(getattr(SampleApi, name)).parameters)
        assert ours - {"wanted"} <= real | {"directive"}, name


def test_unchanged_run_asks_once_and_sends_nothing(own_ward: SampleApi) -> None:
    """With the cursor of the last answer, a tick is one question and an empty answer."""
    frozen = own_ward.run("collapsed")
    own_ward.run = lambda _: frozen  # type: ignore[method-assign]
    first = run_page.update(own_ward, "collapsed", None, 9, START)
    own_ward.asked.clear()
    assert run_page.update(own_ward, "collapsed", None, 9, first["cursor"]) == {}
    assert own_ward.asked == []


def test_sign_of_life_moves_only_the_head(own_ward: SampleApi) -> None:
    """A heartbeat changes when the run was last seen, and fetches no data."""
    first = run_page.update(own_ward, "collapsed", None, 9, START)
    own_ward.known["collapsed"].seen_seconds_ago = 500
    own_ward.asked.clear()
    second = run_page.update(own_ward, "collapsed", None, 9, first["cursor"])
    assert set(second) == {"head", "cursor"}
    assert own_ward.asked == ["run"]


def test_new_step_redraws_and_keeps_the_small_cards(own_ward: SampleApi) -> None:
    """A step changes figures and tiles, not the list of small panels."""
    first = run_page.update(own_ward, "healthy", None, 9, START)
    own_ward.advance("healthy")
    second = run_page.update(own_ward, "healthy", None, 9, first["cursor"])
    assert "figures" in second
    assert "more" in first
    assert "more" not in second


def test_recovery_clears_the_banner(own_ward: SampleApi) -> None:
    """After trouble the next good answer takes the banner away though nothing else changed."""
    first = run_page.update(own_ward, "collapsed", None, 9, START)
    down = {**first["cursor"], "down": "The service does not answer."}
    assert run_page.update(own_ward, "collapsed", None, 9, down)["head"]["trouble"] == ""


def test_small_metrics_are_usual_ones_first_then_by_name() -> None:
    """What a main panel shows is not repeated; unknown names follow in order."""
    names = ["zeta", "kl", "acr", "loss", "pass_at_8", "pass_at_12", "groups", "alpha/x"]
    assert live.small_metrics(names) == ["loss", "kl", "alpha/x", "zeta"]


def test_thousands_of_metrics_stay_few_panels(own_ward: SampleApi) -> None:
    """A run that logs 2,000 names fetches and draws only those shown."""
    own_ward.known["healthy"].custom = tuple(f"custom/{i}" for i in range(2000))
    changed = run_page.update(own_ward, "healthy", None, live.FIRST_SMALL, START)
    assert len(changed["more"]) == live.FIRST_SMALL
    assert changed["more_hidden"] is False


@pytest.mark.parametrize(
    ("host", "status"), [("localhost:80", 200), ("127.0.0.1", 200), ("evil.example", 403)]
)
def test_foreign_names_are_turned_away(ward: SampleApi, host: str, status: int) -> None:
    """A name that is not this machine's is refused: it may be a rebound one."""
    client = create_dashboard(ward).server.test_client()
    assert client.get("/", headers={"Host": host}).status_code == status


def test_other_sites_pages_are_turned_away(ward: SampleApi) -> None:
    """A page of another origin cannot call this one's callbacks."""
    client = create_dashboard(ward).server.test_client()
    headers = {"Host": "localhost", "Origin": "http://evil.example"}
    assert client.post("/_dash-update-component", json={}, headers=headers).status_code == 403


def test_allowed_hosts_come_from_the_environment(
    ward: SampleApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RLVITALS_DASHBOARD_ALLOWED_HOSTS adds names."""
    monkeypatch.setenv("RLVITALS_DASHBOARD_ALLOWED_HOSTS", "node7, node8.lab")
    client = create_dashboard(ward).server.test_client()
    assert client.get("/", headers={"Host": "node8.lab:8401"}).status_code == 200


def test_idle_tick_is_small_on_the_wire(own_ward: SampleApi) -> None:
    """A tick that finds nothing new answers 204 without a body, to a question under 1 KB."""
    frozen = own_ward.runs()
    own_ward.runs = lambda **_: frozen  # type: ignore[method-assign]
    client = create_dashboard(own_ward).server.test_client()
    first = client.post("/_dash-update-component", json=_runs_tick(""))
    cursor = first.get_json()["response"]["runs-cursor"]["data"]
    question = _runs_tick(cursor)
    again = client.post("/_dash-update-component", json=question)
    assert (again.status_code, again.data) == (204, b"")
    assert len(json.dumps(question)) < 1024


def test_text_is_compressed(ward: SampleApi) -> None:
    """A large script comes by gzip to a browser that takes it."""
    client = create_dashboard(ward).server.test_client()
    with client.get("/assets/style.css", headers={"Accept-Encoding": "gzip"}) as packed:
        assert packed.headers["Content-Encoding"] == "gzip"
        small = len(packed.data)
    with client.get("/assets/style.css") as plain:
        assert "Content-Encoding" not in plain.headers
        assert len(plain.data) > 2 * small


def _runs_tick(cursor: str) -> dict[str, Any]:
    outputs = [
        ("runs-grid", "rowData"),
        ("runs-count", "children"),
        ("runs-project", "options"),
        ("runs-box", "hidden"),
        ("runs-empty", "hidden"),
        ("runs-trouble", "children"),
        ("runs-cursor", "data"),
    ]
    return {
        "output": ".." + "...".join(f"{i}.{p}" for i, p in outputs) + "..",
        "outputs": [{"id": i, "property": p} for i, p in outputs],
        "inputs": [{"id": "runs-pulse", "property": "data", "value": 1}],
        "state": [
            {"id": "runs-search", "property": "value", "value": None},
            {"id": "runs-project", "property": "value", "value": None},
            {"id": "runs-cursor", "property": "data", "value": cursor},
        ],
        "changedPropIds": ["runs-pulse.data"],
    }


def test_idle_tick_of_a_run_is_small_on_the_wire(own_ward: SampleApi) -> None:
    """A run that stays as it is costs a question under 1 KB and an answer without a body."""
    frozen = own_ward.run("collapsed")
    own_ward.run = lambda _: frozen  # type: ignore[method-assign]
    cursor = run_page.update(own_ward, "collapsed", None, 9, START)["cursor"]
    question = _run_tick(cursor)
    client = create_dashboard(own_ward).server.test_client()
    answer = client.post("/_dash-update-component", json=question)
    assert (answer.status_code, answer.data) == (204, b"")
    assert len(json.dumps(question)) < 1024
    moved = client.post("/_dash-update-component", json=_run_tick(START))
    assert moved.get_json()["response"]["run-news"]["data"] == [cursor["head"], 1]


def test_news_of_trouble_come_once(own_ward: SampleApi) -> None:
    """While the service stays away, the banner is not sent again and again."""
    own_ward.failure = ApiError(0, "unreachable", "cannot reach it")
    told = run_page.news(own_ward, "collapsed", None, 9, START)
    assert told is not None
    assert run_page.news(own_ward, "collapsed", None, 9, {**START, "down": told}) is None


def _run_tick(cursor: dict[str, str]) -> dict[str, Any]:
    return {
        "output": "run-news.data",
        "outputs": {"id": "run-news", "property": "data"},
        "inputs": [{"id": "run-pulse", "property": "data", "value": 1}],
        "state": [
            {"id": "run-id", "property": "data", "value": "collapsed"},
            {"id": "run-view", "property": "data", "value": None},
            {"id": "more-button", "property": "n_clicks", "value": None},
            {"id": "run-cursor", "property": "data", "value": cursor},
        ],
        "changedPropIds": ["run-pulse.data"],
    }
