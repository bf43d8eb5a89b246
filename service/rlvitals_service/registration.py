"""Which run and attempt a starting process is: one run a key, one attempt a start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.dialects import postgresql

from rlvitals_service.attempts import began, read_order
from rlvitals_service.auth import Principal
from rlvitals_service.database import driver
from rlvitals_service.errors import Conflict, NotFound
from rlvitals_service.identifiers import uuid7
from rlvitals_service.incident_rows import Where, close_all
from rlvitals_service.projects import ensure_project
from rlvitals_service.run_rows import notify
from rlvitals_service.run_schemas import RunCreate
from rlvitals_service.sources import note_source, read_ends
from rlvitals_service.tables import attempt, run, run_key

LARGEST_ATTEMPT = 2**15 - 1
RUNNING: Mapping[str, Any] = {
    "state": "running",
    "last_seen_at": func.now(),
    "finished_at": None,
    "exit_code": None,
}
INTRODUCED = (
    *("config", "tags", "group", "notes", "success_threshold", "failure_threshold"),
    *("abilities", "rlvitals_version"),
)


@dataclass(frozen=True, slots=True)
class Registered:
    """Hold which run and attempt a process is."""

    run_id: UUID
    attempt: int
    created: bool


def register(connection: Connection, principal: Principal, wanted: RunCreate) -> Registered:
    """Find or make the run and the attempt; the same introduction again changes nothing.

    The unique key of `run_key` decides between processes that start together: the second waits
    for the first, then finds its run.
    """
    project_id = ensure_project(connection, principal, wanted.project)
    run_id = uuid7()
    claim = postgresql.insert(run_key).values(project_id=project_id, key=wanted.key, run_id=run_id)
    claimed = claim.on_conflict_do_nothing().returning(run_key.c.run_id)
    if connection.execute(claimed).first() is None:
        return _join(connection, _known_run(connection, project_id, wanted.key), wanted)
    if wanted.resume == "must":
        msg = f"resume is 'must' and project '{wanted.project}' has no run '{wanted.key}'."
        raise NotFound(msg, field="resume")
    connection.execute(insert(run).values(id=run_id, project_id=project_id, **_columns(wanted)))
    _open_attempt(connection, run_id, 1, wanted)
    return Registered(run_id, 1, created=True)


def _known_run(connection: Connection, project_id: UUID, key: str) -> UUID:
    query = select(run_key.c.run_id).where(run_key.c.project_id == project_id, run_key.c.key == key)
    found: UUID = connection.execute(query).scalar_one()
    return found


def _join(connection: Connection, run_id: UUID, wanted: RunCreate) -> Registered:
    """Find the attempt of this start, or open the next one."""
    columns = (run.c.last_attempt, run.c.revision, run.c.config, run.c.state)
    locked = select(*columns).where(run.c.id == run_id)
    row = connection.execute(locked.with_for_update()).one()
    known = select(attempt.c.attempt).where(
        attempt.c.run_id == run_id, attempt.c.key == wanted.attempt_key
    )
    number = connection.execute(known).scalar_one_or_none()
    if number is not None:
        _greet(connection, run_id, row, number, wanted.source)
        return Registered(run_id, number, created=False)
    if wanted.resume == "never":
        msg = f"resume is 'never' and project '{wanted.project}' has a run '{wanted.key}' already."
        raise Conflict(msg, field="resume")
    number = max(read_order(connection, run_id)) + 1
    if number > LARGEST_ATTEMPT:
        msg = f"the run '{wanted.key}' has {LARGEST_ATTEMPT} attempts; start a new run."
        raise Conflict(msg, field="attempt_key")
    _open_attempt(connection, run_id, number, wanted)
    if read_order(connection, run_id)[-1] == number:
        _resume(connection, run_id, row, number, wanted)
    else:
        _note_earlier(connection, run_id, row)
    return Registered(run_id, number, created=False)


def _greet(connection: Connection, run_id: UUID, row: Any, number: int, source: str) -> None:
    """Note a source of a known attempt; a run that others finished before it came goes on."""
    if source in read_ends(connection, run_id, number):
        return
    note_source(connection, run_id, number, source)
    if number != row.last_attempt or row.state != "finished":
        return
    connection.execute(
        update(run).where(run.c.id == run_id).values(revision=row.revision + 1, **RUNNING)
    )
    notify(driver(connection), run_id, row.revision + 1, {"run"})


def _note_earlier(connection: Connection, run_id: UUID, row: Any) -> None:
    """Tell readers of an attempt that had begun before the newest; it changes nothing else."""
    revision = row.revision + 1
    connection.execute(update(run).where(run.c.id == run_id).values(revision=revision))
    notify(driver(connection), run_id, revision, {"run"})


def _resume(connection: Connection, run_id: UUID, row: Any, number: int, wanted: RunCreate) -> None:
    """Go on with the newest attempt, and close what is open in the others."""
    revision = row.revision + 1
    given = _columns(wanted, only_given=True)
    if "config" in given:
        given["config"] = {**row.config, **given["config"]}
    connection.execute(
        update(run)
        .where(run.c.id == run_id)
        .values(
            last_attempt=number,
            revision=revision,
            **RUNNING,
            **given,
        )
    )
    where = Where(run_id, number, revision)
    kinds = {"run"}
    if close_all(connection, where, f"Attempt {number} began."):
        kinds.add("incident")
    notify(driver(connection), run_id, revision, kinds)


def _open_attempt(connection: Connection, run_id: UUID, number: int, wanted: RunCreate) -> None:
    values = {
        "run_id": run_id,
        "attempt": number,
        "key": wanted.attempt_key,
        "started_at": began(wanted.started_at, wanted.sent_at),
        "client_started_at": wanted.started_at,
        "sources": {wanted.source: None},
    }
    connection.execute(insert(attempt).values(values))


def _columns(wanted: RunCreate, *, only_given: bool = False) -> dict[str, Any]:
    """Give the columns of `run` that an introduction fills."""
    columns: Mapping[str, Any] = {name: getattr(wanted, name) for name in INTRODUCED}
    if only_given:
        columns = {name: columns[name] for name in INTRODUCED if name in wanted.model_fields_set}
        return {**columns, **({"name": wanted.name} if wanted.name else {})}
    return {**columns, "name": wanted.name or wanted.key}
