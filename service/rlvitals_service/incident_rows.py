"""Store how incidents change; a change that names an old state of its incident changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.dialects import postgresql

from rlvitals.judgement import Change, OpenIncident
from rlvitals_service.cleaning import clean_json, clean_text
from rlvitals_service.identifiers import uuid7
from rlvitals_service.judging import ALERT, reopened
from rlvitals_service.tables import incident, incident_change


@dataclass(frozen=True, slots=True)
class Where:
    """Say which run and attempt changed, and the revision that the change belongs to."""

    run_id: UUID
    attempt: int
    revision: int


def read_open(connection: Connection, run_id: UUID, attempt: int) -> list[OpenIncident]:
    """Read the open incidents of an attempt, as a Judge made anew wants them."""
    query = select(incident).where(
        incident.c.run_id == run_id,
        incident.c.attempt == attempt,
        incident.c.state == "open",
        incident.c.kind != ALERT,
    )
    return [reopened(row) for row in connection.execute(query).mappings()]


def store_changes(connection: Connection, where: Where, changes: Iterable[Change]) -> int:
    """Store changes in order; give the number that took effect."""
    return sum(_store(connection, where, change) for change in changes)


def _store(connection: Connection, where: Where, change: Change) -> bool:
    if change.action == "opened":
        return _open(connection, where, change)
    return _amend(connection, where, change)


def _open(connection: Connection, where: Where, change: Change) -> bool:
    values = {
        "run_id": where.run_id,
        "id": uuid7(),
        "attempt": where.attempt,
        "kind": change.kind,
        "onset_step": change.onset_step,
        "changes": 1,
        "revision": where.revision,
        **_words(change),
    }
    # The partial unique index keeps it at one open incident of a kind.
    statement = postgresql.insert(incident).values(values).on_conflict_do_nothing()
    if connection.execute(statement.returning(incident.c.id)).first() is None:
        return False
    _log(connection, where.run_id, values["id"], 1, change)
    return True


def _amend(connection: Connection, where: Where, change: Change) -> bool:
    query = select(incident.c.id, incident.c.changes).where(
        incident.c.run_id == where.run_id,
        incident.c.attempt == where.attempt,
        incident.c.kind == change.kind,
        incident.c.state == "open",
    )
    found = connection.execute(query).first()
    if found is None:
        return False
    values = {"changes": found.changes + 1, "revision": where.revision, **_words(change)}
    if change.action == "closed":
        values |= {"state": "closed", "closed_step": change.step, "closed_at": func.now()}
        # What it was stays readable; the change says how it ended.
        for name in ("title", "text", "severity", "advice", "causes", "evidence"):
            values.pop(name)
    if not _swap(connection, where.run_id, found.id, found.changes, values):
        return False
    _log(connection, where.run_id, found.id, found.changes + 1, change)
    return True


def _swap(
    connection: Connection, run_id: UUID, incident_id: UUID, known: int, values: Mapping[str, Any]
) -> bool:
    """Update an incident unless it changed since it was read."""
    statement = (
        update(incident)
        .where(
            incident.c.run_id == run_id,
            incident.c.id == incident_id,
            incident.c.changes == known,
        )
        .values(dict(values))
    )
    return connection.execute(statement).rowcount == 1


def _words(change: Change) -> dict[str, Any]:
    return {
        "severity": change.severity,
        "last_step": change.step,
        "title": clean_text(change.title),
        "text": clean_text(change.text),
        "causes": clean_json([asdict(cause) for cause in change.causes]),
        "evidence": clean_json(dict(change.evidence)),
        "advice": clean_text(change.advice),
        "reference": change.reference,
    }


def _log(
    connection: Connection, run_id: UUID, incident_id: UUID, number: int, change: Change
) -> None:
    connection.execute(
        insert(incident_change).values(
            run_id=run_id,
            incident_id=incident_id,
            number=number,
            action=change.action,
            severity=change.severity,
            step=change.step,
            text=clean_text(change.text),
        )
    )


def close_all(connection: Connection, where: Where, text: str) -> int:
    """Close what is open in other attempts of a run, alerts aside; give the number closed."""
    query = select(incident).where(
        incident.c.run_id == where.run_id,
        incident.c.attempt != where.attempt,
        incident.c.state == "open",
        incident.c.kind != ALERT,
    )
    rows: Sequence[Any] = connection.execute(query).mappings().all()
    return sum(
        _store(
            connection,
            Where(where.run_id, row["attempt"], where.revision),
            _closing(row, text),
        )
        for row in rows
    )


def _closing(row: Mapping[str, Any], text: str) -> Change:
    return Change(
        kind=row["kind"],
        action="closed",
        severity=row["severity"],
        onset_step=row["onset_step"] or 0,
        step=row["last_step"] or 0,
        title=row["title"],
        text=text,
        causes=(),
        evidence={},
        advice="",
        reference=row["reference"],
    )
