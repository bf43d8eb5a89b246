"""Let a person put a directive in force for a run, and see what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Input, Output, State, ctx, dcc, html, no_update

from rlvitals.api import ApiError
from rlvitals_dashboard import trouble, wishes, words
from rlvitals_dashboard.parts import aria

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.api import Api

GAMMAS = (0.5, 1.0, 2.0)


def card() -> Any:
    """Lay out the control card."""
    return html.Section(
        [
            html.H2("Remedies"),
            html.P(" ", id="control-state", className="control-state", **aria(live="polite")),
            html.Div(
                [
                    _switch("control-focal", "Focal weighting", "Weighs easy prompts less."),
                    dcc.RadioItems(
                        [{"label": f"γ {gamma:g}", "value": gamma} for gamma in GAMMAS],
                        GAMMAS[0],
                        id="control-gamma",
                        className="segments",
                        inline=True,
                    ),
                    _switch("control-avspo", "AVSPO", "Gives collapsed groups a signal."),
                    html.Label(
                        [
                            html.Span("End after"),
                            dcc.Input(
                                id="control-expiry", type="number", min=1, step=1, placeholder="∞"
                            ),
                            html.Span("steps"),
                        ],
                        className="field",
                    ),
                    dcc.Input(
                        id="control-reason",
                        type="text",
                        placeholder="Why? (kept in the log)",
                        maxLength=500,
                        className="wide",
                    ),
                ],
                id="control-form",
            ),
            html.P(" ", id="control-plan", className="muted plan"),
            html.Div(
                [
                    html.Button(
                        "Apply", id="control-apply", className="button primary", disabled=True
                    ),
                    html.Button(
                        "Withdraw", id="control-withdraw", className="button", disabled=True
                    ),
                ],
                className="row",
            ),
            html.P(id="control-answer", className="control-answer", role="status"),
            html.Details(
                [html.Summary("Log of directives"), html.Ol(id="control-log", className="log")],
                className="log-box",
            ),
            dcc.Store(id="control-wish", data={"focal": False, "avspo": False}),
            dcc.Store(id="control-seen", data={"version": 0, "blocked": "", "step": None}),
        ],
        id="control",
        className="card",
    )


def log(directives: Sequence[Mapping[str, Any]]) -> list[Any]:
    """List directives, newest first, with who wanted them and why."""
    if not directives:
        return [html.Li("None so far.", className="muted")]
    return [
        html.Li(
            [
                html.B(f"v{d['version']} "),
                words.directive_state(d),
                html.Span(
                    " ".join(
                        filter(
                            None, [f"by {d['issued_by']}" if d["issued_by"] else "", d["reason"]]
                        )
                    ),
                    className="muted block",
                ),
            ],
            key=str(d["version"]),
        )
        for d in directives
    ]


def register(app: Any, api: Api) -> None:
    """Wire the control card."""
    app.clientside_callback(
        ClientsideFunction("rlvitals", "wish"),
        Output("control-wish", "data"),
        Output("control-gamma", "value"),
        Input("control-focal", "n_clicks"),
        Input("control-avspo", "n_clicks"),
        Input("control-seen", "data"),
        State("control-wish", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("rlvitals", "showWish"),
        Output("control-focal", "aria-checked"),
        Output("control-avspo", "aria-checked"),
        Output("control-focal", "disabled"),
        Output("control-avspo", "disabled"),
        Output("control-apply", "disabled"),
        Output("control-withdraw", "disabled"),
        Input("control-wish", "data"),
        Input("control-seen", "data"),
    )

    @app.callback(
        Output("control-plan", "children"),
        Input("control-wish", "data"),
        Input("control-gamma", "value"),
        Input("control-expiry", "value"),
        Input("control-seen", "data"),
    )
    def show_plan(wish: Any, gamma: float, ends: Any, known: Any) -> str:
        return wishes.plan(known, wish, gamma, ends)

    @app.callback(
        Output("control-answer", "children"),
        Output("run-nudge", "data", allow_duplicate=True),
        Input("control-apply", "n_clicks"),
        Input("control-withdraw", "n_clicks"),
        State("run-id", "data"),
        State("control-seen", "data"),
        State("control-wish", "data"),
        State("control-gamma", "value"),
        State("control-expiry", "value"),
        State("control-reason", "value"),
        prevent_initial_call=True,
    )
    def send(
        applied: int | None,
        withdrawn: int | None,
        run_id: str,
        known: Any,
        wish: Any,
        gamma: float,
        ends: Any,
        reason: str | None,
    ) -> tuple[Any, Any]:
        if not applied and not withdrawn:
            return no_update, no_update
        off = {"mode": "off", "expected_version": known["version"], "reason": reason or ""}
        withdraw = ctx.triggered_id == "control-withdraw"
        asked = off if withdraw else wishes.wanted(known, wish, gamma, ends, reason)
        try:
            api.set_directive(run_id, asked)
        except ApiError as error:
            return trouble.directive_message(error), [applied, withdrawn]
        done = "Withdrawn" if withdraw else "Sent"
        return f"✓ {done}. The trainer takes it up at its next step.", [applied, withdrawn]


def _switch(name: str, label: str, explained: str) -> Any:
    return html.Button(
        [
            html.Span(className="knob", **aria(hidden="true")),
            html.Span([html.B(label), html.Span(explained, className="muted block")]),
        ],
        id=name,
        role="switch",
        disabled=True,
        className="switch",
        **aria(checked="false", label=label),
    )
