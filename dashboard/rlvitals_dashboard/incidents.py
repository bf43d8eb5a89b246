"""Lay out incidents: what, since when, why, by which numbers, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import html

from rlvitals_dashboard import words
from rlvitals_dashboard.theme import RANK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_CLOSED = 5


def _item(incident: Mapping[str, Any], newest: bool) -> Any:
    """Give one incident: what, since when, why, by which numbers, and what to do."""
    severity = incident["severity"]
    is_open = incident["state"] == "open"
    summary = html.Summary(
        [
            html.Span(words.severity(severity), className=f"severity severity-{severity}"),
            html.Span(incident["title"], className="incident-title"),
            html.Span(_when(incident), className="incident-when num"),
        ]
    )
    body = [
        html.P(incident["text"]) if incident["text"] else None,
        _causes(incident["causes"]),
        _evidence(incident["evidence"]),
        html.P([html.B("Do: "), incident["advice"]]) if incident["advice"] else None,
        html.P(incident["reference"], className="muted") if incident["reference"] else None,
        _changes(incident["changes"]),
        html.Div(_actions(incident), className="row"),
    ]
    return html.Details(
        [summary, html.Div([part for part in body if part is not None], className="incident-body")],
        className="incident" if is_open else "incident closed",
        key=incident["id"],
        open=newest and is_open and not incident.get("acknowledged_by"),
    )


def listed(incidents: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Give all incidents, open ones first and many closed ones folded; or say there are none."""
    if not incidents:
        return [html.P("No incidents. Detectors watch every step.", className="muted")]
    ordered = sorted(incidents, key=_urgency)
    items = [_item(incident, index == 0) for index, incident in enumerate(ordered)]
    shown = sum(incident["state"] == "open" for incident in ordered) + MOST_CLOSED
    if len(items) <= shown + 1:
        return items
    more = html.Summary(f"{len(items) - shown} more closed ones")
    return [
        *items[:shown],
        html.Details([more, *items[shown:]], className="more-closed", key="more"),
    ]


def _urgency(incident: Mapping[str, Any]) -> tuple[bool, int, int]:
    rank = RANK.get(incident["severity"], len(RANK))
    return incident["state"] != "open", rank, -(incident.get("onset_step") or 0)


def _when(incident: Mapping[str, Any]) -> str:
    onset, last = incident.get("onset_step"), incident.get("last_step")
    if onset is None:
        return ""
    if incident["state"] == "open":
        return f"since step {onset:,}"
    return f"step {onset:,}" if last in (None, onset) else f"steps {onset:,} to {last:,}"


def _causes(causes: Sequence[Mapping[str, Any]]) -> Any:
    if not causes:
        return None
    return html.Ul(
        [
            html.Li(
                [
                    html.Span(words.percent(cause.get("share")), className="num cause-share"),
                    html.Span(
                        html.Span(style={"width": f"{100 * (cause.get('share') or 0):.0f}%"}),
                        className=f"cause-bar cause-{cause['name']}",
                    ),
                    html.Span(cause["text"]),
                ]
            )
            for cause in causes
        ],
        className="causes",
    )


def _evidence(evidence: Mapping[str, Any]) -> Any:
    if not evidence:
        return None
    pairs = [
        html.Div([html.Dt(name.replace("_", " ")), html.Dd(_value(value), className="num")])
        for name, value in evidence.items()
    ]
    return html.Details([html.Summary("Numbers"), html.Dl(pairs, className="evidence")])


def _value(value: Any) -> str:
    return words.number(value) if isinstance(value, int | float) else str(value)


def _changes(changes: Sequence[Mapping[str, Any]]) -> Any:
    if len(changes) <= 1:
        return None
    return html.Ol(
        [
            html.Li(f"{c['action']} at step {c['step']:,} ({c['severity']})", title=c["text"])
            for c in changes
        ],
        className="changes muted",
    )


def _actions(incident: Mapping[str, Any]) -> list[Any]:
    onset, last = incident.get("onset_step"), incident.get("last_step")
    seen = incident.get("acknowledged_by")
    acknowledge = (
        html.Span(f"✓ acknowledged by {seen}", className="muted")
        if seen
        else html.Button(
            "Acknowledge",
            id={"type": "acknowledge", "incident": incident["id"]},
            className="button",
        )
    )
    if onset is None:
        return [acknowledge]
    ends = f"{onset}:{max(last or onset, onset)}"
    show = html.Button(
        "Show in charts",
        id={"type": "zoom", "range": f"{incident['id']}:{ends}"},
        className="button",
    )
    return [acknowledge, show]
