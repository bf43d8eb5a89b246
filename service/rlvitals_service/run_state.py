"""Signs of life, the end of an attempt, and what people change about a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, update

from rlvitals.records import Directive
from rlvitals_service.auth import Principal
from rlvitals_service.database import driver
from rlvitals_service.errors import NotFound
from rlvitals_service.incident_rows import Where, store_changes
from rlvitals_service.run_memory import Memories, judged_attempt, read_memory
from rlvitals_service.run_rows import LockedRun, lock_run, notify
from rlvitals_service.run_schemas import Finish
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
    """End an attempt; give the run's state. An attempt that was left behind ends nothing."""
    found = lock_visible(connection, principal, run_id)
    if end.attempt != found.last_attempt or found.state in ENDED:
        return found.state
    where = Where(run_id, found.last_attempt, found.revision + 1)
    memory = memories.take(run_id, found.steps_revision)
    memory = memory or read_memory(connection, run_id, found.steps_revision)
    judge = judged_attempt(connection, run_id, memory, end.attempt).judge
    kinds = {"run"}
    if store_changes(connection, where, judge.finish()):
        kinds.add("incident")
    if found.state == "stale" and revive(connection, where, found.last_step):
        kinds.add("incident")
    values = {
        "state": end.state,
        "exit_code": end.exit_code,
        "summary": end.summary,
        "finished_at": func.now(),
        "last_seen_at": func.now(),
        "verdict": judge.verdict(),
    }
    _change(connection, found, values, kinds)
    memories.keep(run_id, memory)
    return end.state


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
