"""Mark runs from which nothing comes any more, and take that back when something does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Connection, func, select, update
from starlette.concurrency import run_in_threadpool

from rlvitals.judgement import stale_change
from rlvitals_service.database import Database, driver
from rlvitals_service.incident_rows import Where, store_changes
from rlvitals_service.run_rows import notify
from rlvitals_service.settings import Settings
from rlvitals_service.tables import run

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 100


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[None]:
    """Look for silent runs for as long as the service runs."""
    task = asyncio.create_task(_watch(app.state.database, app.state.settings))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _watch(database: Database, settings: Settings) -> None:
    while True:
        await asyncio.sleep(settings.stale_check_every.total_seconds())
        try:
            await run_in_threadpool(mark_stale, database, settings.stale_after)
        except Exception:  # whatever it is, the next look comes
            logger.exception("could not look for stale runs")


def mark_stale(database: Database, limit: timedelta) -> int:
    """Mark every running run that was silent for longer than the limit; give their number."""
    with database.transaction() as connection:
        # A run that is being written to right now is not silent: skip it.
        silent = (
            select(run.c.id)
            .where(run.c.state == "running", run.c.last_seen_at < func.now() - limit)
            .order_by(run.c.last_seen_at)
            .limit(MOST_AT_ONCE)
            .with_for_update(skip_locked=True)
        )
        marked = connection.execute(
            update(run)
            .where(run.c.id.in_(silent.scalar_subquery()), run.c.state == "running")
            .values(state="stale", revision=run.c.revision + 1)
            .returning(
                run.c.id,
                run.c.revision,
                run.c.last_attempt,
                run.c.last_step,
                func.extract("epoch", func.now() - run.c.last_seen_at).label("silent"),
            )
        ).all()
        for row in marked:
            _report(connection, row, limit)
    return len(marked)


def _report(connection: Connection, row: Any, limit: timedelta) -> None:
    seconds = limit.total_seconds()
    change = stale_change(0.0, float(row.silent), seconds, open=False, last_step=row.last_step or 0)
    where = Where(row.id, row.last_attempt, row.revision)
    if change is not None:
        store_changes(connection, where, [change])
    notify(driver(connection), row.id, row.revision, {"run", "incident"})


def revive(connection: Connection, where: Where, last_step: int | None) -> bool:
    """Close the incident of a stale run that was heard from; tell whether there was one."""
    change = stale_change(0.0, 0.0, 1.0, open=True, last_step=last_step or 0)
    return change is not None and store_changes(connection, where, [change]) > 0
