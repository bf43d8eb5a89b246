"""Numbers, times and directives in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.dashboard.sample_runs import directive

from rlvitals_dashboard import words

NOW = datetime(2026, 8, 20, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.049440, "0.0494"),
        (1234.5, "1,234"),
        (1e-6, "1.00e-6"),
        (-2.5, "-2.5"),
        (3.2e7, "3.20e7"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    """Three significant digits, thousands apart, powers for the very large and small."""
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "–"), (0.0, "0%"), (0.473, "47%"), (0.004, "0.4%"), (0.9969, "99.7%"), (1.0, "100%")],
)
def test_percent(share: float | None, text: str) -> None:
    """Whole percent, but never a 0% or 100% that is not one when a decimal can tell."""
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, "–"),
        ("2026-08-20T11:59:57Z", "3 s ago"),
        ("2026-08-20T11:35:00+00:00", "25 min ago"),
        ("2026-08-20T10:00:00Z", "2 h ago"),
        ("2026-08-17T12:00:00Z", "3 d ago"),
        ("2026-08-20T12:00:09Z", "0 s ago"),
    ],
)
def test_ago(moment: str | None, text: str) -> None:
    """The largest unit that fits; a clock ahead of ours is now."""
    assert words.ago(moment, NOW) == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "pending since version 3"),
        ({"expires_at_step": 600}, "until step 600"),
        (
            {"state": "acknowledged", "acknowledged_step": 7},
            "acknowledged by the trainer at step 7",
        ),
        ({"state": "effective", "effective_step": 212}, "in force since step 212"),
        ({"state": "refused", "refusal": "no std division"}, "refused: no std division"),
        ({"state": "expired", "expires_at_step": 120}, "expired at step 120"),
        ({"state": "withdrawn", "mode": "off", "focal": None}, "withdrawn"),
    ],
)
def test_directive_state(fields: dict[str, object], text: str) -> None:
    """Each state of a directive has its sentence."""
    assert text in words.directive_state(directive(3, **fields))


def test_no_directive_is_said_too() -> None:
    """The absence of a directive is a state people ask about."""
    assert words.directive_state(None).startswith("No directive yet")
