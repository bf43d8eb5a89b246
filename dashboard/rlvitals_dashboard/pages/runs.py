"""List the runs, the one that needs attention first, and keep the list live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dash_ag_grid as dag
from dash import ClientsideFunction, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals_dashboard import live, trouble, words
from rlvitals_dashboard.groups import GRID_THEME
from rlvitals_dashboard.live import Api
from rlvitals_dashboard.theme import STATE_SHAPE

TICK_MILLISECONDS = 2000
MOST_RUNS = 1000
ATTENTION = {"critical": 100, "warning": 10, "info": 1}
FIRST_STEPS = """pip install rlvitals

import rlvitals
run = rlvitals.init(project="math", success_threshold=1.0)
run.log_groups(rewards, step=step)        # (prompts, rollouts)
run.log({"grad_norm": grad_norm}, step=step)

# or watch a small job first:
rlvitals demo"""


def layout(**_query: str) -> Any:
    """Lay out the list of runs; rows follow at the first tick."""
    return html.Main(
        [
            html.P(id="runs-trouble", className="banner", role="alert"),
            html.Div(
                [
                    html.H1("Runs"),
                    html.Span(" ", id="runs-count", className="muted num"),
                    html.Div(
                        [
                            dcc.Input(
                                id="runs-search",
                                type="search",
                                placeholder="Search name, project, tag …",
                                className="search",
                                debounce=False,
                            ),
                            dcc.Dropdown(
                                id="runs-project",
                                placeholder="All projects",
                                className="project-filter",
                                clearable=True,
                            ),
                        ],
                        className="row",
                    ),
                ],
                className="runs-head",
            ),
            _empty(),
            html.Div(_grid(), id="runs-box", className="runs-box card", hidden=True),
            dcc.Store(id="runs-cursor", data=""),
            dcc.Store(id="runs-busy", data=False),
            dcc.Store(id="runs-pulse"),
            dcc.Interval(id="runs-tick", interval=TICK_MILLISECONDS),
        ],
        className="page runs-page",
    )


def register(app: Any, api: Api) -> None:
    """Wire the list: the gate of ticks, the live callback, search and project filter."""
    app.clientside_callback(
        ClientsideFunction("rlvitals", "gateRuns"),
        Output("runs-pulse", "data"),
        Input("runs-tick", "n_intervals"),
        State("runs-busy", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("rlvitals", "filterRuns"),
        Output("runs-grid", "filterModel"),
        Output("runs-grid", "dashGridOptions"),
        Input("runs-search", "value"),
        Input("runs-project", "value"),
        State("runs-grid", "filterModel"),
        State("runs-grid", "dashGridOptions"),
        prevent_initial_call=True,
    )
    _register_live(app, api)


def rows(summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the table's rows: what a cell shows, and the attention each run needs as a number."""
    newest_first = sorted(summaries, key=lambda run: run["started_at"] or "", reverse=True)
    return [_row(run) for run in newest_first]


def counted(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Count the runs by what matters about them."""
    running = sum(run["state"] == "running" for run in summaries)
    troubled = sum(bool(run["open_incidents"]) for run in summaries)
    needs = f", {troubled} with open incidents" if troubled else ", none with open incidents"
    return f"{len(summaries):,} in all, {running:,} running{needs}"


def _row(run: Mapping[str, Any]) -> dict[str, Any]:
    latest = run["latest"]
    incidents = run["open_incidents"]
    return {
        "id": run["id"],
        "name": run["name"],
        "href": f"/runs/{run['id']}",
        "state": run["state"],
        "shape": STATE_SHAPE.get(run["state"], "●"),
        "project": run["project"],
        "step": run["step"],
        "spark": [None if v is None else round(v, 3) for v in run["sparkline"].get("acr", [])],
        "acr": latest.get("acr"),
        "success": latest.get("success_rate"),
        "attention": sum(ATTENTION.get(i["severity"], 1) for i in incidents),
        "incidents": [
            [i["severity"], words.severity(i["severity"]), words.kind(i["kind"]), i["title"]]
            for i in incidents
        ],
        "tags": ", ".join(run["tags"]),
        "seen": run["last_seen_at"],
        "verdict": run.get("verdict") or "",
    }


def _register_live(app: Any, api: Api) -> None:
    @app.callback(
        Output("runs-grid", "rowData"),
        Output("runs-count", "children"),
        Output("runs-project", "options"),
        Output("runs-box", "hidden"),
        Output("runs-empty", "hidden"),
        Output("runs-trouble", "children"),
        Output("runs-cursor", "data"),
        Input("runs-pulse", "data"),
        State("runs-cursor", "data"),
        running=[(Output("runs-busy", "data"), True, False)],
        prevent_initial_call=True,
    )
    def refresh(pulse: Any, known: str) -> Any:
        try:
            summaries = api.runs(limit=MOST_RUNS)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the page stays
            told = trouble.message(error)
            if known == told:
                raise PreventUpdate from error
            return (*(no_update,) * 5, told, told)
        shown = rows(summaries)
        if (cursor := live.digest(shown)) == known:
            raise PreventUpdate
        projects = sorted({run["project"] for run in summaries})
        return shown, counted(summaries), projects, not shown, bool(shown), "", cursor


def _grid() -> Any:
    percent = {"function": "params.value == null ? '–' : d3.format('.0%')(params.value)"}
    whole = {"function": "params.value == null ? '–' : d3.format(',')(params.value)"}
    columns: list[dict[str, Any]] = [
        {"field": "state", "headerName": "State", "cellRenderer": "RunState", "width": 118},
        {"field": "name", "headerName": "Name", "cellRenderer": "RunName", "flex": 2, "minWidth": 170},
        {"field": "project", "headerName": "Project", "width": 110, "colId": "project"},
        {"field": "step", "headerName": "Step", "width": 92, "valueFormatter": whole, "filter": "agNumberColumnFilter", "type": "rightAligned"},
        {"field": "spark", "headerName": "ACR trend", "cellRenderer": "Sparkline", "cellDataType": False, "width": 122, "sortable": False, "filter": False},
        {"field": "acr", "headerName": "ACR", "width": 86, "valueFormatter": percent, "filter": "agNumberColumnFilter", "type": "rightAligned"},
        {"field": "success", "headerName": "Success", "width": 100, "valueFormatter": percent, "filter": "agNumberColumnFilter", "type": "rightAligned"},
        {"field": "attention", "headerName": "Open incidents", "cellRenderer": "Incidents", "flex": 2, "minWidth": 170, "sort": "desc", "filter": "agNumberColumnFilter"},
        {"field": "tags", "headerName": "Tags", "flex": 1, "minWidth": 90},
        {"field": "seen", "headerName": "Last seen", "cellRenderer": "Ago", "width": 118, "filter": False},
    ]
    return dag.AgGrid(
        id="runs-grid",
        columnDefs=columns,
        rowData=[],
        getRowId="params.data.id",
        defaultColDef={"sortable": True, "filter": True, "resizable": True, "suppressHeaderMenuButton": False},
        dashGridOptions={
            "theme": GRID_THEME,
            "rowHeight": 40,
            "headerHeight": 38,
            "animateRows": False,
            "rowSelection": {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True},
            "localeText": {"noRowsToShow": "No run matches", "noMatchingRows": "No run matches"},
            "ensureDomOrder": True,
            "tooltipShowDelay": 300,
        },
        className="",
        style={"height": "100%"},
    )


def _empty() -> Any:
    return html.Section(
        [
            html.H2("No runs yet"),
            html.P("Add three lines to your trainer. The run appears here with its first step."),
            html.Div(
                [
                    html.Pre(html.Code(FIRST_STEPS, id="first-steps")),
                    dcc.Clipboard(target_id="first-steps", title="Copy", className="copy"),
                ],
                className="code",
            ),
        ],
        id="runs-empty",
        className="card empty",
        hidden=True,
    )
