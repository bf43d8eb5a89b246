"""List the runs, the one that needs attention first, and keep the list live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals.api import ApiError
from rlvitals_dashboard import live, run_table, trouble

if TYPE_CHECKING:
    from rlvitals.api import Api

TICK_MILLISECONDS = 2000
MOST_RUNS = 500
FIRST_STEPS = """pip install rlvitals

import rlvitals
run = rlvitals.init(project="math", success_threshold=1.0)
run.log_groups(rewards, step=step)        # (prompts, rollouts)
run.log({"grad_norm": grad_norm}, step=step)

# or watch a small job first:
rlvitals demo"""


def layout(q: str = "", project: str = "", **_query: str) -> Any:
    """Lay out the list of runs as its address says; rows follow at the first tick."""
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
                                value=q or None,
                                type="search",
                                placeholder="Search name, project, tag …",
                                className="search",
                                debounce=False,
                            ),
                            dcc.Dropdown(
                                id="runs-project",
                                options=[project] if project else [],
                                value=project or None,
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
            html.Div(run_table.grid(q), id="runs-box", className="runs-box card", hidden=True),
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
        Input("runs-grid", "rowData"),
        State("runs-grid", "dashGridOptions"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("rlvitals", "fitRuns"),
        Output("runs-box", "className"),
        Input("runs-grid", "rowData"),
        prevent_initial_call=True,
    )
    _register_live(app, api)


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
        State("runs-search", "value"),
        State("runs-project", "value"),
        State("runs-cursor", "data"),
        running=[(Output("runs-busy", "data"), True, False)],
        prevent_initial_call=True,
    )
    def refresh(_pulse: Any, search: str | None, project: str | None, known: str) -> Any:
        try:
            summaries = api.runs(search=search or None, limit=MOST_RUNS)
        except ApiError as error:
            told = trouble.message(error)
            if known == told:
                raise PreventUpdate from error
            return (*(no_update,) * 5, told, told)
        shown = run_table.rows(summaries)
        if (cursor := live.digest([shown, search])) == known:
            raise PreventUpdate
        projects = sorted({run["project"] for run in summaries} | ({project} if project else set()))
        nothing = not shown and not search
        counted = run_table.counted(summaries, more=bool(summaries.next_cursor))
        return shown, counted, projects, nothing, not nothing, "", cursor


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
