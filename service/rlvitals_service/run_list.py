"""Read runs, for lists and in full; never a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Double,
    Select,
    Text,
    and_,
    any_,
    func,
    literal,
    or_,
    select,
    tuple_,
)
from sqlalchemy.sql import ColumnElement

from rlvitals_service.auth import Principal
from rlvitals_service.changes import strict
from rlvitals_service.errors import Invalid
from rlvitals_service.run_cursor import read_cursor, write_cursor
from rlvitals_service.sparkline import points
from rlvitals_service.tables import attempt, incident, project, run

_OPEN = and_(incident.c.run_id == run.c.id, incident.c.state == "open")
_OPEN_COUNT = select(func.count()).select_from(incident).where(_OPEN).scalar_subquery()

# How each sort order is computed, and its type; a run without the number is below all others.
SORTS: Mapping[str, tuple[ColumnElement[Any], Any]] = {
    "last_seen_at": (run.c.last_seen_at, DateTime(timezone=True)),
    "started_at": (run.c.started_at, DateTime(timezone=True)),
    "name": (func.lower(run.c.name), Text()),
    "step": (func.coalesce(run.c.last_step, -1), BigInteger()),
    "acr": (func.coalesce(run.c.latest["acr"].astext.cast(Double), -1.0), Double()),
    "incidents": (func.coalesce(_OPEN_COUNT, 0), BigInteger()),
}
_RUN = select(run, project.c.name.label("project")).join(project, project.c.id == run.c.project_id)
SUMMARY = (
    *("id", "project", "name", "group", "tags", "state", "archived", "started_at"),
    *("last_seen_at", "finished_at", "revision", "verdict"),
)
DETAILS = (
    *("config", "notes", "abilities", "success_threshold", "failure_threshold", "exit_code"),
    *("summary", "clock_skew_seconds", "lost", "rlvitals_version"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Say which runs a list asks for, in which order."""

    project: str | None = None
    states: tuple[str, ...] = ()
    search: str | None = None
    tag: str | None = None
    archived: bool = False
    sort: str = "-last_seen_at"
    limit: int = 50
    cursor: str | None = None


def list_runs(
    connection: Connection, principal: Principal, wanted: Wanted, base_url: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    """Read a page of runs, and the cursor of the next one."""
    value, kind = _order(wanted.sort)
    query = _filtered(_RUN.add_columns(value.label("value")), principal, wanted)
    descending = wanted.sort.startswith("-")
    if wanted.cursor:
        last, run_id = read_cursor(wanted.cursor, wanted.sort)
        here, place = tuple_(value, run.c.id), tuple_(literal(last, kind), literal(run_id))
        query = query.where(here < place if descending else here > place)
    order = [one.desc() if descending else one.asc() for one in (value, run.c.id)]
    query = query.order_by(*order).limit(wanted.limit + 1)
    rows = connection.execute(query).mappings().all()
    page = rows[: wanted.limit]
    incidents = open_incidents(connection, [row["id"] for row in page])
    runs = [summary(row, incidents.get(row["id"], []), base_url) for row in page]
    if len(rows) <= wanted.limit:
        return runs, None
    return runs, write_cursor(wanted.sort, page[-1]["value"], page[-1]["id"])


def _order(sort: str) -> tuple[ColumnElement[Any], Any]:
    found = SORTS.get(sort.removeprefix("-"))
    if found is None:
        msg = f"sort: want one of {', '.join(SORTS)}, with - before it to turn it round."
        raise Invalid(msg, field="sort")
    return found


def _filtered(query: Select[Any], principal: Principal, wanted: Wanted) -> Select[Any]:
    query = query.where(run.c.archived == wanted.archived)
    if principal.project_id is not None:
        query = query.where(run.c.project_id == principal.project_id)
    if wanted.project is not None:
        query = query.where(project.c.name == wanted.project)
    if wanted.states:
        query = query.where(run.c.state.in_(wanted.states))
    if wanted.tag is not None:
        query = query.where(literal(wanted.tag) == any_(run.c.tags))
    if wanted.search:
        words = func.array_to_string(run.c.tags, " ")
        texts = (run.c.name, project.c.name, run.c.group, words, run.c.notes)
        found = [text.icontains(wanted.search, autoescape=True) for text in texts]
        query = query.where(or_(*found))
    return query


def read_run(connection: Connection, run_id: UUID, base_url: str | None) -> dict[str, Any]:
    """Read one run in full."""
    row = connection.execute(_RUN.where(run.c.id == run_id)).mappings().one()
    found = open_incidents(connection, [run_id]).get(run_id, [])
    attempts = select(attempt).where(attempt.c.run_id == run_id)
    attempts = attempts.order_by(attempt.c.started_at, attempt.c.attempt)
    return {
        **summary(row, found, base_url),
        **{name: row[name] for name in DETAILS},
        "latest_eval": strict(row["latest_eval"])["metrics"],
        "metrics": sorted(row["latest"].keys() | row["latest_eval"].keys()),
        "attempts": [dict(one) for one in connection.execute(attempts).mappings()],
    }


def summary(
    row: Mapping[Any, Any], incidents: list[dict[str, Any]], base_url: str | None
) -> dict[str, Any]:
    """Lay a run's row out as a list shows it."""
    latest = strict(row["latest"])
    return {
        **{name: row[name] for name in SUMMARY},
        "step": row["last_step"],
        "attempt": row["last_attempt"],
        "latest": latest["metrics"],
        "nonfinite": latest["nonfinite"],
        "sparkline": points(row["sparkline"] or {}),
        "open_incidents": incidents,
        "url": run_url(base_url, row["id"]),
    }


def open_incidents(
    connection: Connection, run_ids: Iterable[UUID]
) -> dict[UUID, list[dict[str, Any]]]:
    """Read the open incidents of some runs, newest first."""
    names = ("run_id", "id", "kind", "severity", "title")
    query = (
        select(*(incident.c[name] for name in names))
        .where(incident.c.run_id.in_(list(run_ids)), incident.c.state == "open")
        .order_by(incident.c.opened_at.desc(), incident.c.id.desc())
    )
    found: dict[UUID, list[dict[str, Any]]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["run_id"], []).append(dict(row))
    return found


def run_url(base_url: str | None, run_id: UUID) -> str | None:
    """Give the address of a run's page; None when no dashboard is known."""
    return f"{base_url.rstrip('/')}/runs/{run_id}" if base_url else None
