"""Signs of life, the end of an attempt, and what people change about a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, literal, update
from sqlalchemy.dialects.postgresql import JSONB

from rlvitals.records import Directive
from rlvitals_service.auth import Principal
from rlvitals_service.database import driver
from rlvitals_service.errors import NotFound
from rlvitals_service.incident_rows import Where, store_changes
from rlvitals_service.run_memory import Memories, judged_attempt, read_memory
from rlvitals_service.run_rows import LockedRun, lock_run, notify
from rlvitals_service.run_schemas import Finish
from rlvitals_service.sources import Ends, note_source, read_ends
from rlvitals_service.staleness import revive
from rlvitals_service.tables import run

ENDED = ("finished", "failed", "crashed")


def lock_visible(connection: Connection, principal: Principal, run_id: UUID) -> LockedRun:
    """Lock a run until the transaction ends; NotFound unless the token sees it."""
    found = lock_run(driver(connection), run_id)
    if found is None or not principal.sees(found.project_id):
        msg = f"There is no run {run_id}."
        raise NotFound(msg, field="run_id")
    return found


def beat(connection: Connection, principal: Principal, run_id: UUID) -> Directive | None:
    """Note that a run is alive; a stale one runs again. Give the directive in force."""
    found = lock_visible(connection, principal, run_id)
    values: dict[str, Any] = {"last_seen_at": func.now()}
    if found.state == "stale":
        where = Where(run_id, found.last_attempt, found.revision + 1)
        revive(connection, where, found.last_step)
        values |= {"state": "running"}
        _change(connection, found, values, {"run", "incident"})
    else:
        connection.execute(update(run).where(run.c.id == run_id).values(values))
    return found.directive


def finish(
    connection: Connection, memories: Memories, principal: Principal, run_id: UUID, end: Finish
) -> str:
    """End a source of an attempt, or all of it; give the run's state.

    An attempt that was left behind ends nothing, and neither does one of several sources that
    finished: the last one does. One that failed or crashed ends the run at once.
    """
    found = lock_visible(connection, principal, run_id)
    if end.attempt != found.last_attempt or found.state in ENDED:
        return found.state
    ends = read_ends(connection, run_id, end.attempt)
    if end.source is not None and ends.get(end.source) is not None:
        return found.state
    where = Where(run_id, found.last_attempt, found.revision + 1)
    kinds = {"run"}
    if found.state == "stale" and revive(connection, where, found.last_step):
        kinds.add("incident")
    values = {"last_seen_at": func.now(), "summary": _summary(ends, end)}
    if end.source is not None:
        note_source(connection, run_id, end.attempt, end.source, end.state)
    if _others_go_on(ends, end):
        _change(connection, found, {**values, "state": "running"}, kinds)
        return "running"
    memory = memories.take(run_id, found.steps_revision)
    memory = memory or read_memory(connection, run_id, found.steps_revision)
    judge = judged_attempt(connection, run_id, memory, end.attempt).judge
    if store_changes(connection, where, judge.finish()):
        kinds.add("incident")
    values |= {
        "state": end.state,
        "exit_code": end.exit_code,
        "finished_at": func.now(),
        "verdict": judge.verdict(),
    }
    _change(connection, found, values, kinds)
    memories.keep(run_id, memory)
    return end.state


def _others_go_on(ends: Ends, end: Finish) -> bool:
    if end.source is None or end.state != "finished":
        return False
    return any(how is None for source, how in ends.items() if source != end.source)


def _summary(ends: Ends, end: Finish) -> Any:
    """Add to what other sources of this attempt summed up; the first one replaces the old."""
    first = all(how is None for how in ends.values())
    return end.summary if first else run.c.summary.op("||")(literal(end.summary, JSONB))


def change_run(
    connection: Connection, principal: Principal, run_id: UUID, values: Mapping[str, Any]
) -> None:
    """Change what people say about a run."""
    found = lock_visible(connection, principal, run_id)
    if values:
        _change(connection, found, values, {"run"})


def _change(
    connection: Connection, found: LockedRun, values: Mapping[str, Any], kinds: set[str]
) -> None:
    revision = found.revision + 1
    connection.execute(update(run).where(run.c.id == found.id).values(revision=revision, **values))
    notify(driver(connection), found.id, revision, kinds)
