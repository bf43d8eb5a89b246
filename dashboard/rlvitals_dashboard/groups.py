"""Show the groups of one step: which prompts taught something, and which did not."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import dash_ag_grid as dag
from dash import ClientsideFunction, Input, Output, State, dcc, html, no_update

from rlvitals.api import ApiError
from rlvitals_dashboard import trouble

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.api import Api

STATE_WORDS = {
    "live": "live",
    "all_fail": "all fail",
    "all_pass": "all pass",
    "constant": "constant",
    "shaping_only": "shaping only",
    "singleton": "group of one",
    "dropped": "dropped",
}
# The grid takes its colours from the page's, so that both themes are one stylesheet.
GRID_THEME = {
    "function": "themeQuartz.withParams({backgroundColor: 'var(--surface)', "
    "foregroundColor: 'var(--ink)', headerBackgroundColor: 'var(--surface)', "
    "headerTextColor: 'var(--muted)', borderColor: 'var(--line)', accentColor: 'var(--accent)', "
    "browserColorScheme: 'inherit', fontFamily: 'inherit', fontSize: 13, headerFontSize: 12, "
    "wrapperBorder: false, columnBorder: false, wrapperBorderRadius: 0, "
    "selectedRowBackgroundColor: 'var(--selected)', rowHoverColor: 'var(--hover)'})"
}


def card() -> Any:
    """Lay out the group table and the choice of its step."""
    number = {"function": "params.value == null ? '–' : d3.format('.3~f')(params.value)"}
    columns: list[dict[str, Any]] = [
        {"field": "prompt", "headerName": "Prompt", "flex": 2, "minWidth": 110},
        {"field": "state", "headerName": "State", "cellRenderer": "GroupState", "width": 130},
        {"field": "size", "headerName": "n", "flex": 1, "minWidth": 68},
        {"field": "n_correct", "headerName": "Correct", "flex": 1, "minWidth": 68},
        {
            "field": "reward_mean",
            "headerName": "Mean",
            "flex": 1,
            "minWidth": 68,
            "valueFormatter": number,
        },
        {
            "field": "reward_std",
            "headerName": "Std",
            "flex": 1,
            "minWidth": 68,
            "valueFormatter": number,
        },
        {
            "field": "reward_min",
            "headerName": "Min",
            "flex": 1,
            "minWidth": 68,
            "valueFormatter": number,
        },
        {
            "field": "reward_max",
            "headerName": "Max",
            "flex": 1,
            "minWidth": 68,
            "valueFormatter": number,
        },
    ]
    return html.Section(
        [
            html.Header(
                [
                    html.H2("Which prompts taught something at a step?"),
                    html.Div(
                        [
                            html.Label(
                                [
                                    html.Span("Step"),
                                    dcc.Input(
                                        id="groups-step",
                                        type="number",
                                        min=0,
                                        step=1,
                                        debounce=True,
                                        placeholder="newest",
                                    ),
                                ],
                                className="field",
                            ),
                            html.Button("Newest", id="groups-newest", className="button"),
                        ],
                        className="row",
                    ),
                ],
                className="panel-head spread",
            ),
            html.P(
                "Click a point in a chart, or type a step.", id="groups-answer", className="answer"
            ),
            html.Div(
                dag.AgGrid(
                    id="groups-grid",
                    columnDefs=columns,
                    rowData=[],
                    defaultColDef={"sortable": True, "filter": True, "resizable": True},
                    dashGridOptions={
                        "theme": GRID_THEME,
                        "animateRows": False,
                        "rowHeight": 30,
                        "headerHeight": 34,
                        "localeText": {"noRowsToShow": "No groups"},
                    },
                    className="",
                    style={"height": "100%"},
                ),
                id="groups-box",
                className="groups-box",
                hidden=True,
            ),
        ],
        id="groups",
        className="card",
    )


def rows(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the table's rows; a prompt without an id goes by its group's."""
    kept = ("size", "n_correct", "reward_mean", "reward_std", "reward_min", "reward_max", "state")
    return [
        {"prompt": group.get("prompt_id") or group.get("group_id") or f"#{index}"}
        | {name: group.get(name) for name in kept}
        for index, group in enumerate(groups)
    ]


def summary(step: int, groups: Sequence[Mapping[str, Any]]) -> str:
    """Count the groups of a step by state."""
    counts = {name: sum(g["state"] == name for g in groups) for name in STATE_WORDS}
    told = ", ".join(f"{count} {STATE_WORDS[name]}" for name, count in counts.items() if count)
    return (
        f"Step {step:,}: {len(groups)} groups: {told}." if groups else f"Step {step:,}: no groups."
    )


def register(app: Any, api: Api) -> None:
    """Wire the group table."""
    app.clientside_callback(
        ClientsideFunction("rlvitals", "chooseStep"),
        Output("groups-step", "value"),
        Input({"type": "graph", "panel": "acr"}, "clickData"),
        Input({"type": "graph", "panel": "gradient"}, "clickData"),
        Input({"type": "graph", "panel": "reward"}, "clickData"),
        Input({"type": "graph", "panel": "passk"}, "clickData"),
        Input({"type": "graph", "panel": "tail"}, "clickData"),
        Input("groups-newest", "n_clicks"),
        Input("control-seen", "data"),
        State("groups-step", "value"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("groups-grid", "rowData"),
        Output("groups-answer", "children"),
        Output("groups-box", "hidden"),
        Input("groups-step", "value"),
        State("run-id", "data"),
        prevent_initial_call=True,
    )
    def show(step: int | None, run_id: str | None) -> tuple[Any, Any, Any]:
        if step is None or not run_id:
            return no_update, no_update, no_update
        try:
            found = api.groups(run_id, step=int(step))["groups"]
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return [], f"Step {int(step):,}: no groups were logged.", True
            return no_update, trouble.message(error), no_update
        return rows(found), summary(int(step), found), not found
