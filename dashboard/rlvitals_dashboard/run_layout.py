"""Lay out the page of one run; the live callback fills it."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from rlvitals_dashboard import control, groups, parts, tiles
from rlvitals_dashboard.panels import PANELS
from rlvitals_dashboard.parts import aria

TICK_MILLISECONDS = 2000
SKELETON = tiles.tiles({}, 0)


def page(run_id: str) -> Any:
    """Give the whole page, empty, for the run of an id."""
    return html.Main(
        [
            html.P(id="run-trouble", className="banner", role="alert"),
            _head(),
            html.Div(parts.tile_row(SKELETON), id="run-tiles", className="tiles"),
            _range_row(),
            html.Div(
                [
                    html.Div(
                        [
                            *[parts.panel_card(panel) for panel in PANELS],
                        ],
                        className="panels",
                    ),
                    html.Aside(
                        [
                            html.Section(
                                [html.H2("Incidents"), html.Div(id="incident-list")],
                                className="card incidents",
                            ),
                            control.card(),
                        ],
                        className="side",
                    ),
                ],
                className="run-body",
            ),
            html.Div(
                [
                    html.H2("Everything else", className="section-title"),
                    html.Div([], id="run-more", className="small-panels"),
                    html.Button("Show more", id="more-button", className="button", hidden=True),
                    groups.card(),
                ],
                className="below",
            ),
            dcc.Store(id="run-id", data=run_id),
            dcc.Store(id="run-cursor", data={"head": "", "data": "", "small": ""}),
            dcc.Store(id="run-figures"),
            dcc.Store(id="run-view"),
            dcc.Store(id="run-busy", data=False),
            dcc.Store(id="run-pulse"),
            dcc.Store(id="run-news"),
            dcc.Store(id="run-nudge"),
            dcc.Store(id="run-acknowledged"),
            dcc.Interval(id="run-tick", interval=TICK_MILLISECONDS),
        ],
        className="page run-page",
    )


def _head() -> Any:
    return html.Header(
        [
            html.Div(
                [
                    html.H1(" ", id="run-name"),
                    html.Span(id="run-state"),
                    html.Span(id="run-project", className="muted"),
                    html.Span(id="run-tags", className="tags"),
                ],
                className="run-title",
            ),
            html.Div(
                [
                    html.Span(["step ", html.B("–", id="run-step", className="num")]),
                    html.Span(["seen ", html.Span(id="run-seen", className="num")]),
                ],
                className="run-facts muted",
            ),
            html.P(" ", id="run-verdict", className="verdict", **aria(live="polite")),
        ],
        className="run-head",
    )


def _range_row() -> Any:
    ends: dict[str, Any] = {"type": "text", "inputMode": "numeric", "debounce": True}
    return html.Div(
        [
            html.Span("Steps", id="range-label"),
            dcc.Input(id="range-from", placeholder="first", **ends),
            html.Span("to"),
            dcc.Input(id="range-to", placeholder="newest", **ends),
            html.Button("Whole run", id="range-reset", className="button"),
            html.Span(
                "Drag in a chart to zoom all of them; double click to go back.",
                className="muted wide-only",
            ),
        ],
        className="range-row row",
        role="group",
        **aria(labelledby="range-label"),
    )
