"""What changed in a run since a revision, as events in the order in which it happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection, select

from rlvitals.records import decode_scalar, encode_scalar
from rlvitals_service.control import newest_directive
from rlvitals_service.database import Database
from rlvitals_service.tables import STEP_METRICS, incident, run, step

Kind = Literal["step", "incident", "directive", "run"]

PAGE_STEPS = 500
INCIDENT = (
    *("id", "kind", "severity", "state", "onset_step", "last_step", "closed_step", "opened_at"),
    *("closed_at", "acknowledged_by", "acknowledged_at", "title", "text", "causes", "evidence"),
    *("advice", "reference"),
)


@dataclass(frozen=True, slots=True)
class Event:
    """Hold one change; whoever comes back with its cursor misses nothing after it."""

    kind: Kind
    cursor: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Changes:
    """Hold a page of events, the cursor after it, and whether there is more at once."""

    events: list[Event]
    cursor: int
    more: bool
    directive: dict[str, Any] | None


def read_changes(
    database: Database, run_id: UUID, since: int, directive: dict[str, Any] | None
) -> Changes:
    """Read the changes after revision ``since``; a directive only if it differs from the given.

    A run's revisions are handed out under a lock on its row, so they become visible in order.
    """
    with database.transaction() as connection:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = connection.execute(select(run).where(run.c.id == run_id)).mappings().one()
        upto = _page_end(connection, run_id, since, row["revision"])
        if upto <= since:
            return Changes([], since, more=False, directive=directive)
        found = _steps(connection, run_id, since, upto)
        found += _incidents(connection, run_id, since, upto)
        newest = newest_directive(connection, run_id)
    found.sort(key=lambda change: change[1]["revision"])
    if newest is not None and newest != directive:
        found.append(("directive", {"revision": upto, "directive": newest}))
    found.append(("run", _run(row, upto)))
    return Changes(_with_cursors(found), upto, more=upto < row["revision"], directive=newest)


def _with_cursors(found: Sequence[tuple[Kind, dict[str, Any]]]) -> list[Event]:
    """Give each event a cursor that covers a revision only once all its events are out."""
    revisions = [data["revision"] for _, data in found]
    last = [later != own for own, later in zip(revisions, [*revisions[1:], None], strict=True)]
    return [
        Event(kind, data["revision"] if complete else data["revision"] - 1, data)
        for (kind, data), complete in zip(found, last, strict=True)
    ]


def _page_end(connection: Connection, run_id: UUID, since: int, newest: int) -> int:
    """Give the revision up to which to read, so that a page never splits a revision."""
    query = (
        select(step.c.revision)
        .where(step.c.run_id == run_id, step.c.revision > since)
        .order_by(step.c.revision)
        .offset(PAGE_STEPS)
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none() or newest


def _steps(
    connection: Connection, run_id: UUID, since: int, upto: int
) -> list[tuple[Kind, dict[str, Any]]]:
    columns = ("revision", "attempt", "phase", "step", "applied", "client_time", "extra")
    query = (
        select(*(step.c[name] for name in (*columns, *STEP_METRICS)))
        .where(step.c.run_id == run_id, step.c.revision > since, step.c.revision <= upto)
        .order_by(step.c.revision, step.c.phase, step.c.attempt, step.c.step)
    )
    return [("step", _step(row)) for row in connection.execute(query).mappings()]


def _step(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Give one step with every metric it has; a non-finite one is null and named apart."""
    values = {name: row[name] for name in STEP_METRICS if row[name] is not None}
    values |= row["extra"] or {}
    return {
        "revision": row["revision"],
        "step": row["step"],
        "phase": row["phase"],
        "attempt": row["attempt"],
        "time": row["client_time"],
        "applied": row["applied"],
        **strict(values),
    }


def strict(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Split numbers into `metrics` (null where not finite) and `nonfinite` (their names)."""
    wire = {name: encode_scalar(value) for name, value in _floats(values)}
    nonfinite = {name: value for name, value in wire.items() if isinstance(value, str)}
    metrics = {name: None if name in nonfinite else value for name, value in wire.items()}
    return {"metrics": metrics, "nonfinite": nonfinite}


def _floats(values: Mapping[str, Any]) -> list[tuple[str, float]]:
    decoded = ((name, decode_scalar(value)) for name, value in values.items())
    return [(name, value) for name, value in decoded if value is not None]


def _incidents(
    connection: Connection, run_id: UUID, since: int, upto: int
) -> list[tuple[Kind, dict[str, Any]]]:
    query = select(*(incident.c[name] for name in (*INCIDENT, "revision"))).where(
        incident.c.run_id == run_id, incident.c.revision > since, incident.c.revision <= upto
    )
    return [("incident", dict(row)) for row in connection.execute(query).mappings()]


def _run(row: Mapping[Any, Any], upto: int) -> dict[str, Any]:
    names = ("name", "state", "verdict", "last_seen_at", "finished_at", "notes", "tags")
    return {
        "revision": upto,
        "step": row["last_step"],
        "attempt": row["last_attempt"],
        **{name: row[name] for name in names},
        **strict(row["latest"]),
    }
