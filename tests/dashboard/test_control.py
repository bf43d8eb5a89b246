"""What the control card asks for, forbids and says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard.sample_api import SampleApi

from rlvitals.api import ApiError
from rlvitals_dashboard import incidents, run_table, trouble, wishes

KNOWN: dict[str, Any] = {"version": 4, "step": 200, "blocked": "", "abilities": ["focal", "avspo"]}
BOTH = {"focal": True, "avspo": True}


def test_a_wish_becomes_a_directive() -> None:
    """Switches, gamma, expiry and reason arrive as the service takes them."""
    assert wishes.wanted(KNOWN, BOTH, 0.5, 100, "collapse") == {
        "mode": "on",
        "expected_version": 4,
        "focal": {"gamma": 0.5},
        "avspo": {},
        "expires_at_step": 300,
        "reason": "collapse",
    }


def test_the_plan_is_told_before_it_is_done() -> None:
    """The sentence names what will happen and when it ends."""
    told = wishes.plan(KNOWN, BOTH, 0.5, 100)
    assert "(1 − success rate)^0.5" in told
    assert "AVSPO" in told
    assert "at step 300" in told
    assert wishes.plan(KNOWN, {"focal": False, "avspo": False}, 0.5, None).startswith("Switch on")


@pytest.mark.parametrize(
    ("run_id", "told"), [("long", "has finished"), ("crashed", "has crashed"), ("healthy", "")]
)
def test_what_forbids_control_is_said(ward: SampleApi, run_id: str, told: str) -> None:
    """A run that is over takes no directive; a running one with abilities does."""
    blocked = wishes.blocked(ward.run(run_id))
    assert told in blocked
    assert bool(told) == bool(blocked)


def test_missing_abilities_are_explained(ward: SampleApi) -> None:
    """Without reweight in the trainer's loop the card says what to add."""
    assert "run.reweight" in wishes.blocked({**ward.run("healthy"), "abilities": []})


def test_what_is_in_force_fills_the_form(ward: SampleApi) -> None:
    """The form starts from the newest directive."""
    known = wishes.seen(ward.run("collapsed"), ward.directives("collapsed"))
    assert (known["version"], known["focal"], known["gamma"], known["avspo"]) == (
        3,
        True,
        0.5,
        True,
    )
    assert known["active"] is True


@pytest.mark.parametrize(
    ("status", "told"),
    [(401, "token"), (404, "no such run"), (500, "error"), (0, "does not answer")],
)
def test_trouble_is_told_by_its_kind(status: int, told: str) -> None:
    """Each kind of failure has its own sentence."""
    assert told in trouble.message(ApiError(status, "code", "because"))


@pytest.mark.parametrize(
    ("status", "told"),
    [(409, "someone else"), (403, "may not control"), (422, "because"), (0, "unknown")],
)
def test_a_failed_directive_is_told(status: int, told: str) -> None:
    """A person learns whether anything was changed."""
    assert told in trouble.directive_message(ApiError(status, "code", "because"))


def test_open_incidents_come_first_with_their_numbers(ward: SampleApi) -> None:
    """The open one leads, causes and advice are in it, and it can be acknowledged."""
    listed = incidents.listed(ward.incidents("collapsed"))
    assert "closed" not in listed[0].className
    text = str(listed[0])
    assert "53 % solved by every rollout" in text
    assert "'type': 'acknowledge'" in text
    assert "No incidents" in str(incidents.listed([]))


def test_rows_count_the_attention_a_run_needs(ward: SampleApi) -> None:
    """A critical incident outweighs a warning, and no incident is no attention."""
    rows = {row["id"]: row for row in run_table.rows(ward.runs())}
    assert rows["collapsed"]["attention"] > rows["stale"]["attention"] > 0
    assert rows["healthy"]["attention"] == 0
    assert rows["empty"]["acr"] is None
    assert rows["collapsed"]["incidents"][0][1] == "▲ critical"
