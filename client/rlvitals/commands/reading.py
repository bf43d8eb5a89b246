"""List runs and incidents, print and export histories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rlvitals.api import Api, ApiError
from rlvitals.commands.table import table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

DEFAULT_METRICS = "acr,reward_mean,success_rate,grad_norm"
NOT_FOUND = 404


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the reading commands."""
    runs = commands.add_parser("runs", parents=[shared], help="list runs")
    runs.add_argument("--project", help="only of this project")
    runs.add_argument("--state", help="running, stale, finished, failed or crashed")
    runs.add_argument("--search", help="only runs whose name holds this text")
    runs.add_argument("--limit", type=int, default=50, metavar="N", help="at most (default 50)")
    runs.set_defaults(work=list_runs)

    history = commands.add_parser("history", parents=[shared], help="print series of a run")
    history.add_argument("run", help="id or name of the run")
    history.add_argument(
        "--metrics", default=DEFAULT_METRICS, help=f"comma-separated (default {DEFAULT_METRICS})"
    )
    history.add_argument("--from-step", type=int, metavar="STEP", help="first step to print")
    history.add_argument("--to-step", type=int, metavar="STEP", help="last step to print")
    history.add_argument(
        "--max-points", type=int, metavar="N", help="thin to so many points a metric"
    )
    _add_which(history)
    history.add_argument("--csv", action="store_true", help="comma-separated instead of a table")
    history.set_defaults(work=print_history)

    export = commands.add_parser("export", parents=[shared], help="write a whole history to a file")
    export.add_argument("run", help="id or name of the run")
    export.add_argument(
        "--format", choices=("csv", "parquet", "json"), default="csv", help="default: csv"
    )
    export.add_argument("--metrics", help="comma-separated (default: all)")
    _add_which(export)
    export.add_argument(
        "-o", "--output", metavar="FILE", help="file to write (default: standard output)"
    )
    export.set_defaults(work=export_history)

    incidents = commands.add_parser("incidents", parents=[shared], help="list incidents")
    incidents.add_argument("run", nargs="?", help="only of this run, by id or name")
    incidents.add_argument("--project", help="only of this project")
    incidents.add_argument("--state", choices=("open", "closed"), help="only open or closed ones")
    incidents.set_defaults(work=list_incidents)


def _add_which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--attempt", metavar="N", help="a number, or all (default: newest of each step)"
    )
    parser.add_argument(
        "--phase", choices=("train", "eval"), default="train", help="default: train"
    )


def list_runs(options: argparse.Namespace) -> int:
    """Print runs as a table."""
    found = connect(options).runs(
        options.project, state=options.state, search=options.search, limit=options.limit
    )
    headings = ("ID", "PROJECT", "NAME", "STATE", "STEP", "ACR", "REWARD", "INCIDENTS")
    print(table(headings, (_run_row(run) for run in found)))
    return 0


def print_history(options: argparse.Namespace) -> int:
    """Print series side by side, one line a step."""
    api = connect(options)
    names = [name.strip() for name in options.metrics.split(",") if name.strip()]
    history = api.history(
        find_run(api, options.run),
        names,
        options.from_step,
        options.to_step,
        options.max_points,
        attempt=options.attempt,
        phase=options.phase,
    )
    missing = [name for name in names if not history.metrics.get(name, {}).get("step")]
    if missing:
        print(f"rlvitals: no data for {', '.join(missing)}", file=sys.stderr)
    if options.csv:
        print(history.to_csv(), end="")
    else:
        rows = list(history.rows())
        first = ["step", "attempt"] if rows and "attempt" in rows[0] else ["step"]
        headings = [*first, *history.metrics]
        print(table(headings, ([row.get(name) for name in headings] for row in rows)))
    return 0


def export_history(options: argparse.Namespace) -> int:
    """Write a whole history; a file is complete or absent."""
    api = connect(options)
    pieces = api.export_pieces(
        find_run(api, options.run),
        options.format,
        options.metrics,
        attempt=options.attempt,
        phase=options.phase,
    )
    if not options.output or options.output == "-":
        if options.format == "parquet" and sys.stdout.isatty():
            print("rlvitals: parquet is no text; give -o FILE", file=sys.stderr)
            return 2
        _copy(pieces, sys.stdout.buffer)
        return 0
    unfinished = Path(options.output + ".part")
    try:
        with unfinished.open("wb") as file:
            _copy(pieces, file)
        unfinished.replace(options.output)
    finally:
        unfinished.unlink(missing_ok=True)
    print(f"wrote {options.output}", file=sys.stderr)
    return 0


def list_incidents(options: argparse.Namespace) -> int:
    """Print incidents as a table."""
    api = connect(options)
    filters = {"project": options.project, "state": options.state}
    run_id = find_run(api, options.run) if options.run else None
    found = api.incidents(run_id, **filters)
    headings = ("RUN", "SEVERITY", "STATE", "KIND", "STEPS", "TITLE")
    print(table(headings, (_incident_row(incident) for incident in found)))
    return 0


def connect(options: argparse.Namespace) -> Api:
    """Reach the service that options, environment or `rlvitals up` name."""
    return Api(options.url, options.token)


def find_run(api: Api, wanted: str) -> str:
    """Give the id of a run named by id, by a unique beginning of it, or by a unique name."""
    try:
        return str(api.run(wanted)["id"])
    except ApiError as error:
        if error.status not in (NOT_FOUND, 422):
            raise
    known = list(api.all_runs(limit=200))
    for same in (
        [run for run in known if run["name"] == wanted],
        [run for run in known if str(run["id"]).startswith(wanted)],
    ):
        if len(same) == 1:
            return str(same[0]["id"])
        if same:
            ids = ", ".join(str(run["id"]) for run in same)
            message = f"{wanted!r} fits {len(same)} runs: {ids}"
            raise ApiError(NOT_FOUND, "ambiguous", message, "run")
    message = f"no run has the id or name {wanted!r}; `rlvitals runs` lists them"
    raise ApiError(NOT_FOUND, "not_found", message, "run")


def _run_row(run: dict[str, Any]) -> list[Any]:
    latest = run.get("latest") or {}
    incidents = run.get("open_incidents") or []
    worst = ", ".join(f"{one['severity']} {one['kind']}" for one in incidents)
    return [
        run["id"],
        run["project"],
        run["name"],
        run["state"],
        run.get("step"),
        latest.get("acr"),
        latest.get("reward_mean"),
        worst,
    ]


def _incident_row(incident: dict[str, Any]) -> list[Any]:
    steps = f"{incident['onset_step']}-{incident.get('last_step') or ''}"
    return [
        incident.get("run_name") or incident.get("run_id"),
        incident["severity"],
        incident["state"],
        incident["kind"],
        steps,
        incident["title"],
    ]


def _copy(pieces: Iterable[bytes], file: BinaryIO) -> None:
    file.writelines(pieces)
    file.flush()
