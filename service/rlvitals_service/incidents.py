"""Incidents: what was judged, how it changed, and who has seen it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from sqlalchemy import Connection, Select, func, select, tuple_, update

from rlvitals_service.auth import Controller, Principal, Reader
from rlvitals_service.database import Transaction, driver
from rlvitals_service.errors import Forbidden, Invalid, NotFound, Unauthenticated, responses
from rlvitals_service.judging import ALERT
from rlvitals_service.lookup import find_run
from rlvitals_service.run_cursor import read_cursor, write_cursor
from rlvitals_service.run_rows import notify
from rlvitals_service.run_schemas import Request
from rlvitals_service.tables import incident, incident_change, project, run

router = APIRouter(tags=["incidents"])

Severity = Literal["info", "warning", "critical"]
State = Literal["open", "closed"]
SORT = "started_at"


class CauseAnswer(BaseModel):
    """A reason for an incident, and the share (0..1) of what it explains."""

    name: str
    share: float
    text: str


class ChangeAnswer(BaseModel):
    """One entry of an incident's log."""

    action: Literal["opened", "escalated", "updated", "closed"]
    severity: Severity
    step: int | None
    at: datetime
    text: str


class IncidentAnswer(BaseModel):
    """One episode of one condition of one run."""

    id: UUID
    run_id: UUID
    run_name: str
    project: str
    attempt: int
    kind: str
    severity: Severity
    state: State
    onset_step: int | None
    last_step: int | None
    closed_step: int | None
    opened_at: datetime
    closed_at: datetime | None
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    acknowledged_note: str
    title: str
    text: str
    causes: list[CauseAnswer]
    evidence: dict[str, float | int | str]
    advice: str
    reference: str
    changes: list[ChangeAnswer]


class IncidentPage(BaseModel):
    """Incidents, newest first; ask with `next_cursor` for the next page, null at the end."""

    incidents: list[IncidentAnswer]
    next_cursor: str | None


class Acknowledge(Request):
    """Say that somebody has seen the incident."""

    note: Annotated[str, Field(max_length=2000)] = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Say which incidents a list asks for."""

    run_id: UUID | None = None
    project: str | None = None
    state: str | None = None
    severity: str | None = None
    kind: str | None = None
    limit: int = 50
    cursor: str | None = None


Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]


@router.get(
    "/incidents",
    summary="List incidents of all runs",
    responses=responses(Unauthenticated, Forbidden, Invalid),
)
def get_incidents(
    principal: Reader,
    connection: Transaction,
    project: Annotated[str | None, Query(description="Name of a project.")] = None,
    state: State | None = None,
    severity: Severity | None = None,
    kind: Annotated[str | None, Query(description="For example advantage_collapse.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> IncidentPage:
    """List incidents, newest first."""
    wanted = Wanted(None, _plain(project), state, severity, _plain(kind), limit, cursor)
    return _page(connection, principal, wanted)


@router.get(
    "/runs/{run_id}/incidents",
    summary="List incidents of a run",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid),
)
def get_run_incidents(
    run_id: UUID,
    principal: Reader,
    connection: Transaction,
    state: State | None = None,
    severity: Severity | None = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> IncidentPage:
    """List a run's incidents, newest first."""
    find_run(connection, principal, run_id)
    wanted = Wanted(run_id, state=state, severity=severity, limit=limit, cursor=cursor)
    return _page(connection, principal, wanted)


@router.post(
    "/incidents/{incident_id}/acknowledge",
    summary="Acknowledge an incident",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid),
)
def acknowledge(
    incident_id: UUID,
    principal: Controller,
    connection: Transaction,
    body: Acknowledge | None = None,
) -> IncidentAnswer:
    """Note who has seen the incident; the first to say so stays on record."""
    query = select(incident.c.run_id).where(incident.c.id == incident_id)
    run_id = connection.execute(query).scalar_one_or_none()
    if run_id is None:
        raise _missing(incident_id)
    return _acknowledge(connection, principal, run_id, incident_id, body)


@router.post(
    "/runs/{run_id}/incidents/{incident_id}/acknowledge",
    summary="Acknowledge an incident of a run",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid),
)
def acknowledge_of_run(
    run_id: UUID,
    incident_id: UUID,
    principal: Controller,
    connection: Transaction,
    body: Acknowledge | None = None,
) -> IncidentAnswer:
    """Note who has seen the incident; the first to say so stays on record."""
    return _acknowledge(connection, principal, run_id, incident_id, body)


def _acknowledge(
    connection: Connection,
    principal: Principal,
    run_id: UUID,
    incident_id: UUID,
    body: Acknowledge | None,
) -> IncidentAnswer:
    found = find_run(connection, principal, run_id, lock=True)
    revision = found.revision + 1
    this = (incident.c.run_id == run_id) & (incident.c.id == incident_id)
    seen = {
        "acknowledged_by": principal.name,
        "acknowledged_at": func.now(),
        "acknowledged_note": body.note if body else "",
        "revision": revision,
    }
    fresh = update(incident).where(this, incident.c.acknowledged_at.is_(None)).values(seen)
    if connection.execute(fresh).rowcount:
        # Nothing but a person ends an alert.
        ended = {"state": "closed", "closed_at": func.now(), "closed_step": incident.c.last_step}
        connection.execute(update(incident).where(this, incident.c.kind == ALERT).values(ended))
        connection.execute(update(run).where(run.c.id == run_id).values(revision=revision))
        notify(driver(connection), run_id, revision, {"incident"})
    rows = connection.execute(_QUERY.where(this)).mappings().all()
    if not rows:
        raise _missing(incident_id)
    return _answers(connection, rows)[0]


def _missing(incident_id: UUID) -> NotFound:
    return NotFound(f"There is no incident {incident_id}.", field="incident_id")


_QUERY = (
    select(incident, run.c.name.label("run_name"), project.c.name.label("project"))
    .join(run, run.c.id == incident.c.run_id)
    .join(project, project.c.id == run.c.project_id)
)


def _page(connection: Connection, principal: Principal, wanted: Wanted) -> IncidentPage:
    query = _filtered(_QUERY, principal, wanted)
    place = tuple_(incident.c.opened_at, incident.c.id)
    if wanted.cursor:
        query = query.where(place < tuple_(*read_cursor(wanted.cursor, SORT)))
    query = query.order_by(incident.c.opened_at.desc(), incident.c.id.desc())
    rows = connection.execute(query.limit(wanted.limit + 1)).mappings().all()
    page = rows[: wanted.limit]
    more = len(rows) > wanted.limit
    cursor = write_cursor(SORT, page[-1]["opened_at"], page[-1]["id"]) if more else None
    return IncidentPage(incidents=_answers(connection, page), next_cursor=cursor)


def _filtered(query: Select[Any], principal: Principal, wanted: Wanted) -> Select[Any]:
    wishes = (
        (incident.c.run_id, wanted.run_id),
        (incident.c.state, wanted.state),
        (incident.c.severity, wanted.severity),
        (incident.c.kind, wanted.kind),
        (project.c.name, wanted.project),
        (project.c.id, principal.project_id),
    )
    return query.where(*(column == value for column, value in wishes if value is not None))


def _answers(connection: Connection, rows: Sequence[Mapping[Any, Any]]) -> list[IncidentAnswer]:
    keys = [(row["run_id"], row["id"]) for row in rows]
    names = ("run_id", "incident_id", *ChangeAnswer.model_fields)
    query = (
        select(*(incident_change.c[name] for name in names))
        .where(tuple_(incident_change.c.run_id, incident_change.c.incident_id).in_(keys))
        .order_by(incident_change.c.number)
    )
    logs: dict[UUID, list[dict[str, Any]]] = {}
    for change in connection.execute(query).mappings():
        logs.setdefault(change["incident_id"], []).append(dict(change))
    return [
        IncidentAnswer.model_validate({**row, "changes": logs.get(row["id"], [])}) for row in rows
    ]


def _plain(text: str | None) -> str | None:
    # PostgreSQL refuses NUL, and nothing stored holds one.
    return None if text is None else text.replace("\x00", "\ufffd")
