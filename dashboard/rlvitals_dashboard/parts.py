"""Lay out the pieces of the pages: cards, tiles, incidents, banners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from rlvitals_dashboard import words
from rlvitals_dashboard.panels import Panel, help_text, label
from rlvitals_dashboard.theme import STATE_SHAPE
from rlvitals_dashboard.tiles import Tile, spark_image

GRAPH_CONFIG = {"displayModeBar": False, "doubleClick": "reset", "responsive": True}


def graph(name: str, title: str) -> Any:
    """Give an empty chart that the live callback fills; ``title`` speaks to screen readers."""
    return html.Div(
        dcc.Graph(
            id={"type": "graph", "panel": name},
            config=GRAPH_CONFIG,
            style={"height": "100%"},
            responsive=True,
            figure={"data": [], "layout": {"xaxis": {"visible": False}, "yaxis": {"visible": False}}},
        ),
        role="img",
        className="plot-box",
        **{"aria-label": title},
    )


def hint(text: str) -> Any:
    """Give a question mark that explains on hover and on focus."""
    return html.Span(
        ["?", html.Span(text, className="hint-text", role="tooltip")],
        className="hint",
        tabIndex=0,
        role="note",
        **{"aria-label": text},
    )


def panel_card(panel: Panel) -> Any:
    """Give the card of a main panel: its question, its answer, its chart."""
    explained = help_text(*panel.metrics[:4])
    return html.Section(
        [
            html.Header(
                [html.H2(panel.question), hint(explained)],
                className="panel-head",
            ),
            html.P(" ", id=f"answer-{panel.id}", className="answer"),
            graph(panel.id, panel.question),
        ],
        id=f"panel-{panel.id}",
        className="card panel",
    )


def small_card(name: str) -> Any:
    """Give the card of any other metric."""
    explained = help_text(name)
    title = html.H3(label(name), title=name)
    head = [title, hint(explained)] if explained else [title]
    return html.Section(
        [html.Header(head, className="panel-head"), graph(name, label(name))],
        className="card small-panel",
        key=name,
    )


def tile_row(tiles: Sequence[Tile]) -> list[Any]:
    """Give one tile each; their places never change."""
    return [_tile(tile) for tile in tiles]


def state_badge(state: str) -> list[Any]:
    """Say a run's state by shape and word."""
    return [
        html.Span(STATE_SHAPE.get(state, "●"), className="shape", **{"aria-hidden": "true"}),
        state,
    ]


def incident_item(incident: Mapping[str, Any], newest: bool) -> Any:
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


def incident_list(incidents: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Give all incidents, open ones first; or say that there are none."""
    if not incidents:
        return [html.P("No incidents. Detectors watch every step.", className="muted")]
    ordered = sorted(incidents, key=lambda incident: incident["state"] != "open")
    return [incident_item(incident, index == 0) for index, incident in enumerate(ordered)]


def verdict(run: Mapping[str, Any]) -> list[Any]:
    """Say the run's verdict, led by the shape of its gravest open incident."""
    grave = [i["severity"] for i in run.get("open_incidents", ())]
    worst = next((s for s in ("critical", "warning", "info") if s in grave), None)
    shape = [html.Span(words.severity(worst), className=f"severity severity-{worst}")] if worst else []
    return [*shape, html.Span(run.get("verdict") or "Waiting for the first step.")]


def _tile(tile: Tile) -> Any:
    worse = tile.word.endswith("worse")
    mask = spark_image(tile.spark)
    return html.Div(
        [
            html.Div(tile.label, className="tile-label"),
            html.Div(tile.value, className="tile-value num"),
            html.Div(
                className="spark", style={"maskImage": mask, "visibility": "visible" if mask != "none" else "hidden"}
            ),
            html.Div(tile.word, className="tile-word worse" if worse else "tile-word"),
        ],
        className="tile",
        id=f"tile-{tile.key}",
        key=tile.key,
    )


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
    return html.Dl(pairs, className="evidence")


def _value(value: Any) -> str:
    return words.number(value) if isinstance(value, int | float) else str(value)


def _changes(changes: Sequence[Mapping[str, Any]]) -> Any:
    if len(changes) <= 1:
        return None
    return html.Ol(
        [
            html.Li(f"{c['action']} at step {c['step']}: {c['text']}" if c.get("text") else
                    f"{c['action']} at step {c['step']}")
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
            "Acknowledge", id={"type": "acknowledge", "incident": incident["id"]}, className="button"
        )
    )
    if onset is None:
        return [acknowledge]
    ends = f"{onset}:{max(last or onset, onset)}"
    show = html.Button(
        "Show in charts", id={"type": "zoom", "range": f"{incident['id']}:{ends}"}, className="button"
    )
    return [acknowledge, show]
