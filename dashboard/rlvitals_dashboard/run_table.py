"""Lay out the table of runs, and say in each row how much attention a run needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dash_ag_grid as dag

from rlvitals_dashboard import words
from rlvitals_dashboard.groups import GRID_THEME
from rlvitals_dashboard.theme import RANK, STATE_SHAPE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ATTENTION = {"critical": 100, "warning": 10, "info": 1}


def grid(search: str = "") -> Any:
    """Give the empty table; rows are sorted by attention, then newest first.

    Only rows that hold ``search`` in any cell are shown.
    """
    percent = {"function": "params.value == null ? '–' : d3.format('.0%')(params.value)"}
    whole = {"function": "params.value == null ? '–' : d3.format(',')(params.value)"}
    columns: list[dict[str, Any]] = [
        {"field": "state", "headerName": "State", "cellRenderer": "RunState", "width": 116},
        {
            "field": "name",
            "headerName": "Name",
            "cellRenderer": "RunName",
            "flex": 3,
            "minWidth": 110,
        },
        {"field": "project", "headerName": "Project", "width": 110, "colId": "project"},
        {
            "field": "step",
            "headerName": "Step",
            "width": 92,
            "valueFormatter": whole,
            "filter": "agNumberColumnFilter",
            "type": "rightAligned",
        },
        {
            "field": "spark",
            "headerName": "ACR trend",
            "cellRenderer": "Sparkline",
            "cellDataType": False,
            "width": 122,
            "sortable": False,
            "filter": False,
        },
        {
            "field": "acr",
            "headerName": "ACR",
            "width": 80,
            "valueFormatter": percent,
            "filter": "agNumberColumnFilter",
            "type": "rightAligned",
        },
        {
            "field": "success",
            "headerName": "Success",
            "width": 100,
            "valueFormatter": percent,
            "filter": "agNumberColumnFilter",
            "type": "rightAligned",
        },
        {
            "field": "attention",
            "headerName": "Open incidents",
            "cellRenderer": "Incidents",
            "flex": 3,
            "minWidth": 105,
            "sort": "desc",
            "filter": "agNumberColumnFilter",
        },
        {"field": "tags", "headerName": "Tags", "flex": 1, "minWidth": 90},
        {
            "field": "seen",
            "headerName": "Last seen",
            "cellRenderer": "Ago",
            "width": 118,
            "filter": False,
        },
    ]
    return dag.AgGrid(
        id="runs-grid",
        columnDefs=columns,
        rowData=[],
        getRowId="params.data.id",
        defaultColDef={
            "sortable": True,
            "filter": True,
            "resizable": True,
            "suppressHeaderMenuButton": False,
        },
        dashGridOptions={
            "quickFilterText": search,
            "theme": GRID_THEME,
            "rowHeight": 40,
            "headerHeight": 38,
            "animateRows": False,
            "rowSelection": {
                "mode": "singleRow",
                "checkboxes": False,
                "enableClickSelection": True,
            },
            "localeText": {"noRowsToShow": "No run matches", "noMatchingRows": "No run matches"},
            "ensureDomOrder": True,
            "tooltipShowDelay": 300,
        },
        className="",
        style={"height": "100%"},
    )


def rows(summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the table's rows: what a cell shows, and the attention each run needs as a number."""
    newest_first = sorted(summaries, key=lambda run: run["started_at"] or "", reverse=True)
    return [_row(run) for run in newest_first]


def counted(summaries: Sequence[Mapping[str, Any]], *, more: bool = False) -> str:
    """Count the runs by what matters about them."""
    running = sum(run["state"] == "running" for run in summaries)
    troubled = sum(bool(run["open_incidents"]) for run in summaries)
    needs = f", {troubled} with open incidents" if troubled else ", none with open incidents"
    whole = "seen last, more by search" if more else "in all"
    return f"{len(summaries):,} {whole}, {running:,} running{needs}"


def _row(run: Mapping[str, Any]) -> dict[str, Any]:
    latest = run["latest"]
    incidents = sorted(run["open_incidents"], key=lambda i: RANK.get(i["severity"], len(RANK)))
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
