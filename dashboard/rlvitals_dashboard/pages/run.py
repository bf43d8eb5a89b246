"""Show one run live: its verdict, tiles, panels on one time axis, incidents and remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import ALL, ClientsideFunction, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals.api import ApiError
from rlvitals_dashboard import (
    control,
    groups,
    incidents,
    live,
    parts,
    run_layout,
    tiles,
    trouble,
    wishes,
    words,
)
from rlvitals_dashboard.panels import PANELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlvitals.api import Api
    from rlvitals_dashboard.live import View

MORE = 24
HEAD = ("name", "state", "project", "tags", "step", "seen", "verdict", "trouble")


def layout(run_id: str = "", **_query: str) -> Any:
    """Lay out the page of a run; data follows at the first tick."""
    return run_layout.page(run_id)


def register(app: Any, api: Api) -> None:
    """Wire the page: the gate of ticks, the live callback, drawing, zoom and incidents."""
    _register_gate(app)
    _register_live(app, api)
    _register_drawing(app)
    _register_incidents(app, api)
    control.register(app, api)
    groups.register(app, api)


def parse_view(view: Any) -> View:
    """Read a range of steps as the browser holds it."""
    if not view:
        return None
    return int(view[0]), int(view[1])


def update(
    api: Api, run_id: str, view: View, small: int, known: Mapping[str, str]
) -> dict[str, Any]:
    """Give what changed on the page since the cursor ``known``; nothing when nothing did."""
    run = api.run(run_id)
    head, data = live.cursor(run, view, small), live.data_cursor(run, view, small)
    if head == known["head"] and not known.get("down"):
        return {}
    changed: dict[str, Any] = {"head": _head_values(run)}
    names = known["small"]
    if data != known["data"]:
        snap = live.snapshot(api, run, view, small)
        names = live.digest([snap.small, small])
        changed |= _body(snap, view, small)
        if names != known["small"]:
            changed["more"] = [parts.small_card(name) for name in snap.small[:small]]
            changed["more_hidden"] = len(snap.small) <= small
    changed["cursor"] = {"head": head, "data": data, "small": names}
    return changed


def news(api: Api, run_id: str, view: View, small: int, known: Mapping[str, str]) -> str | None:
    """Give the cursor of what the page would show now; None when it shows just that."""
    try:
        found = live.cursor(api.run(run_id), view, small)
    except ApiError as error:
        told = trouble.message(error)
        return None if known.get("down") == told else told
    return None if found == known["head"] and not known.get("down") else found


def _body(snap: live.Snapshot, view: View, small: int) -> dict[str, Any]:
    return {
        "tiles": parts.tile_row(tiles.tiles(snap.columns, snap.total_steps)),
        "answers": list(live.answers(snap).values()),
        "figures": {"view": view, "figures": live.figures(snap, view, small)},
        "incidents": incidents.listed(snap.incidents),
        "control": words.directive_state(snap.directives[0] if snap.directives else None),
        "seen": wishes.seen(snap.run, snap.directives),
        "log": control.log(snap.directives),
    }


def _head_values(run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": run["name"],
        "state": parts.state_badge(run["state"]),
        "project": run["project"],
        "tags": [html.Span(tag, className="tag") for tag in run["tags"]],
        "step": "–" if run["step"] is None else f"{run['step']:,}",
        "seen": html.Time(
            words.ago(run["last_seen_at"]), dateTime=run["last_seen_at"] or "", className="ago"
        ),
        "verdict": parts.verdict(run),
        "trouble": "",
    }


def _register_gate(app: Any) -> None:
    app.clientside_callback(
        ClientsideFunction("rlvitals", "gate"),
        Output("run-pulse", "data"),
        Input("run-tick", "n_intervals"),
        Input("run-view", "data"),
        Input("run-nudge", "data"),
        Input("more-button", "n_clicks"),
        State("run-busy", "data"),
    )


def _small(more: int | None) -> int:
    return live.FIRST_SMALL + MORE * (more or 0)


def _register_live(app: Any, api: Api) -> None:
    outputs = {
        "head": {name: Output(f"run-{name}", "children") for name in HEAD},
        "answers": [Output(f"answer-{panel.id}", "children") for panel in PANELS],
        "tiles": Output("run-tiles", "children"),
        "figures": Output("run-figures", "data"),
        "incidents": Output("incident-list", "children"),
        "control": Output("control-state", "children"),
        "seen": Output("control-seen", "data"),
        "log": Output("control-log", "children"),
        "more": Output("run-more", "children"),
        "more_hidden": Output("more-button", "hidden"),
        "cursor": Output("run-cursor", "data"),
    }

    state = {
        "run_id": State("run-id", "data"),
        "view": State("run-view", "data"),
        "more": State("more-button", "n_clicks"),
        "known": State("run-cursor", "data"),
    }

    # A callback names its outputs in each question, so the many of the page wait for news.
    @app.callback(
        output=Output("run-news", "data"),
        inputs={"pulse": Input("run-pulse", "data")},
        state=dict(state),  # Dash adds the inputs to what it is given
        prevent_initial_call=True,
    )
    def look(pulse: Any, run_id: str, view: Any, more: int | None, known: Any) -> Any:
        found = news(api, run_id, parse_view(view), _small(more), known)
        if found is None:
            raise PreventUpdate
        return [found, pulse]  # never twice the same, so that lost news are news again

    @app.callback(
        output=outputs,
        inputs={"_news": Input("run-news", "data")},
        state=dict(state),
        running=[(Output("run-busy", "data"), True, False)],
        prevent_initial_call=True,
    )
    def refresh(_news: Any, run_id: str, view: Any, more: int | None, known: Any) -> Any:
        try:
            changed = update(api, run_id, parse_view(view), _small(more), known)
        except ApiError as error:
            told = trouble.message(error)
            if known.get("down") == told:
                raise PreventUpdate from error
            changed = {"head": {"trouble": told}, "cursor": {**known, "down": told}}
        if not changed:
            raise PreventUpdate
        blank: dict[str, Any] = dict.fromkeys(outputs, no_update)
        blank["answers"] = [no_update] * len(PANELS)
        head = dict.fromkeys(HEAD, no_update) | changed.pop("head")
        return blank | changed | {"head": head}


def _register_drawing(app: Any) -> None:
    app.clientside_callback(
        ClientsideFunction("rlvitals", "draw"),
        Output({"type": "graph", "panel": ALL}, "figure"),
        Input("run-figures", "data"),
        Input("run-view", "data"),
        Input("theme", "data"),
        Input("run-more", "children"),
        State("themes", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("rlvitals", "view"),
        Output("run-view", "data"),
        Output("range-from", "value"),
        Output("range-to", "value"),
        Input({"type": "graph", "panel": ALL}, "relayoutData"),
        Input("range-from", "value"),
        Input("range-to", "value"),
        Input("range-reset", "n_clicks"),
        Input({"type": "zoom", "range": ALL}, "n_clicks"),
        State("run-view", "data"),
        State("control-seen", "data"),
    )


def _register_incidents(app: Any, api: Api) -> None:
    @app.callback(
        Output("run-nudge", "data"),
        Output("run-trouble", "children", allow_duplicate=True),
        Input({"type": "acknowledge", "incident": ALL}, "n_clicks"),
        State("run-id", "data"),
        prevent_initial_call=True,
    )
    def acknowledge(clicks: list[int | None], run_id: str) -> tuple[Any, Any]:
        chosen = ctx.triggered_id
        if not any(clicks) or not chosen or not ctx.triggered[0]["value"]:
            raise PreventUpdate
        try:
            api.acknowledge(run_id, chosen["incident"])
        except ApiError as error:
            return no_update, trouble.message(error)
        return chosen["incident"], no_update
