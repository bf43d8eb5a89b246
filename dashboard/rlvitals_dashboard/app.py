"""Put the dashboard together: shell, pages, theme, and what guards it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dash
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from rlvitals_dashboard import serving
from rlvitals_dashboard.pages import run, runs
from rlvitals_dashboard.parts import aria
from rlvitals_dashboard.theme import THEMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlvitals.api import Api

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")

# The theme is chosen before anything is drawn, so that no page flashes white at night.
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<link rel="icon" type="image/svg+xml" href="/assets/favicon.svg">
<meta name="color-scheme" content="light dark">
<title>{%title%}</title>
<script>
(function () {
  var asked = new URLSearchParams(location.search).get("theme");
  var kept = null;
  try { kept = localStorage.getItem("rlvitals-theme"); } catch (e) { kept = null; }
  var dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme =
    ["light", "dark"].find(function (t) { return t === asked; }) || kept ||
    (dark ? "dark" : "light");
})();
</script>
{%css%}
</head>
<body>
{%app_entry%}
<footer>
{%config%}
{%scripts%}
{%renderer%}
</footer>
</body>
</html>"""


def create_dashboard(api: Api, hosts: Iterable[str] | None = None) -> Dash:
    """Build the dashboard over a client of the service.

    It answers only to ``hosts`` (by default the names of this machine for itself and
    those in RLVITALS_DASHBOARD_ALLOWED_HOSTS, comma-separated): a foreign page that makes its own
    name point here is turned away. ``*`` lets every name in.
    """
    app = Dash(
        "rlvitals_dashboard",
        assets_folder=str(Path(__file__).parent / "assets"),
        use_pages=True,
        pages_folder="",
        index_string=INDEX,
        title="rlvitals",
        update_title="",
        add_log_handler=False,
        enable_mcp=False,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )
    dash.register_page("runs", path="/", title="Runs · rlvitals", layout=runs.layout)
    dash.register_page(
        "run", path_template="/runs/<run_id>", title="Run · rlvitals", layout=run.layout
    )
    app.layout = _shell()
    _register_theme(app)
    runs.register(app, api)
    run.register(app, api)
    serving.guard(app.server, allowed_hosts() if hosts is None else hosts)
    serving.compress(app.server)
    return app


def allowed_hosts() -> tuple[str, ...]:
    """Give the names that are this machine's own, and those the environment adds."""
    more = os.environ.get("RLVITALS_DASHBOARD_ALLOWED_HOSTS", "")
    return (*LOCAL_HOSTS, *(name.strip() for name in more.split(",") if name.strip()))


def _shell() -> Any:
    return html.Div(
        [
            html.A("Skip to content", href="#content", className="skip"),
            html.Header(
                [
                    dcc.Link(
                        [html.Span(className="pulse-mark"), "rlvitals"], href="/", className="brand"
                    ),
                    html.Nav([dcc.Link("Runs", href="/")]),
                    html.Button(
                        "◐",
                        id="theme-toggle",
                        className="button quiet",
                        title="Switch between light and dark",
                        **aria(label="Switch between light and dark"),
                    ),
                ],
                className="top",
            ),
            html.Div(dash.page_container, id="content"),
            dcc.Store(id="theme"),
            dcc.Store(id="themes", data=THEMES),
        ],
        className="shell",
    )


def _register_theme(app: Dash) -> None:
    app.clientside_callback(
        ClientsideFunction("rlvitals", "theme"),
        Output("theme", "data"),
        Input("theme-toggle", "n_clicks"),
        State("theme", "data"),
    )
