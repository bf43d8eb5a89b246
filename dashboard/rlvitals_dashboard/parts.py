"""Lay out the pieces of the pages: cards, tiles, incidents, banners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import dcc, html

from rlvitals_dashboard import words
from rlvitals_dashboard.panels import Panel, help_text, label
from rlvitals_dashboard.theme import STATE_SHAPE
from rlvitals_dashboard.tiles import Tile, spark_image

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GRAPH_CONFIG: Any = {"displayModeBar": False, "doubleClick": "reset", "responsive": True}


def aria(**attributes: str) -> dict[str, Any]:
    """Give attributes for assistive technology: ``label`` becomes ``aria-label``."""
    return {f"aria-{name}": value for name, value in attributes.items()}


def graph(name: str, title: str) -> Any:
    """Give an empty chart that the live callback fills; ``title`` speaks to screen readers."""
    return html.Div(
        dcc.Graph(
            id={"type": "graph", "panel": name},
            config=GRAPH_CONFIG,
            style={"height": "100%"},
            responsive=True,
            figure={
                "data": [],
                "layout": {"xaxis": {"visible": False}, "yaxis": {"visible": False}},
            },
        ),
        role="img",
        className="plot-box",
        **aria(label=title),
    )


def hint(text: str) -> Any:
    """Give a question mark that explains on hover and on focus."""
    return html.Span(
        ["?", html.Span(text, className="hint-text", role="tooltip")],
        className="hint",
        tabIndex=0,
        role="note",
        **aria(label=text),
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


def state_badge(state: str) -> Any:
    """Say a run's state by shape and word."""
    shape = html.Span(STATE_SHAPE.get(state, "●"), className="shape", **aria(hidden="true"))
    return html.Span([shape, state], className=f"state state-{state}")


def verdict(run: Mapping[str, Any]) -> list[Any]:
    """Say the run's verdict, led by the shape of its gravest open incident."""
    grave = [i["severity"] for i in run.get("open_incidents", ())]
    worst = next((s for s in ("critical", "warning", "info") if s in grave), None)
    shape = (
        [html.Span(words.severity(worst), className=f"severity severity-{worst}")] if worst else []
    )
    return [*shape, html.Span(run.get("verdict") or "Waiting for the first step.")]


def _tile(tile: Tile) -> Any:
    worse = tile.word.endswith("worse")
    mask = spark_image(tile.spark)
    return html.Div(
        [
            html.Div(tile.label, className="tile-label"),
            html.Div(tile.value, className="tile-value num"),
            html.Div(
                className="spark",
                style={"maskImage": mask, "visibility": "visible" if mask != "none" else "hidden"},
            ),
            html.Div(tile.word, className="tile-word worse" if worse else "tile-word"),
        ],
        className="tile",
        id=f"tile-{tile.key}",
        key=tile.key,
    )
