"""Tell waiting readers that a run changed: one LISTEN connection a process, fan-out in memory."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import cast
from uuid import UUID

import msgspec
import psycopg
from fastapi import FastAPI, Request
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from rlvitals_service.database import CHANNEL, Database
from rlvitals_service.tables import run

logger = logging.getLogger(__name__)

# A notification sent while the connection was down is lost; the sweep finds what it meant.
SWEEP_SECONDS = 3.0
FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0


class Notice(msgspec.Struct):
    """Hold a notification's payload: which run changed, and to which revision."""

    run_id: UUID
    revision: int
    kind: str = ""


class Watch:
    """Wait for changes of one run, from one reader's side."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.changed = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Wait for a change since the last wait; False when the time is over first."""
        try:
            await asyncio.wait_for(self.changed.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            self.changed.clear()
        return True


class Hub:
    """Keep who waits for which run; everything here runs on the event loop."""

    def __init__(self) -> None:
        self.closing = False
        self._watches: defaultdict[UUID, set[Watch]] = defaultdict(set)
        self._revisions: dict[UUID, int] = {}

    @contextmanager
    def watch(self, run_id: UUID) -> Iterator[Watch]:
        """Watch a run. Begin before reading its state: what comes after the read is not missed."""
        watch = Watch(self)
        self._watches[run_id].add(watch)
        try:
            yield watch
        finally:
            self._watches[run_id].discard(watch)
            if not self._watches[run_id]:
                del self._watches[run_id]
                self._revisions.pop(run_id, None)

    def watched(self) -> list[UUID]:
        """Name the runs that somebody waits for."""
        return list(self._watches)

    def announce(self, run_id: UUID, revision: int) -> None:
        """Wake those who wait for the run, unless this revision was announced before."""
        if run_id not in self._watches or revision <= self._revisions.get(run_id, -1):
            return
        self._revisions[run_id] = revision
        for watch in self._watches[run_id]:
            watch.changed.set()

    def close(self) -> None:
        """Wake everybody for good: the service is about to stop. Calling it again does nothing."""
        self.closing = True
        for watches in self._watches.values():
            for watch in watches:
                watch.changed.set()


def hub_of(request: Request) -> Hub:
    """Find the hub of the app that serves this request."""
    return cast("Hub", request.app.state.hub)


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[None]:
    """Listen and sweep for as long as the service runs."""
    hub, database = app.state.hub, app.state.database
    tasks = [asyncio.create_task(worker(hub, database)) for worker in (_listen, _sweep)]
    try:
        yield
    finally:
        hub.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def install(app: FastAPI) -> None:
    """Give the app its hub."""
    app.state.hub = Hub()


async def _listen(hub: Hub, database: Database) -> None:
    """Keep one connection listening; come back after each loss, later and later."""
    delay = FIRST_DELAY
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                **database.driver_parameters(), autocommit=True, application_name="rlvitals listen"
            ) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                delay = FIRST_DELAY
                async for notification in connection.notifies():
                    _hear(hub, notification.payload)
        except psycopg.Error as error:
            logger.warning("not listening for changes, readers wait for the sweep: %s", error)
        await asyncio.sleep(delay)
        delay = min(2 * delay, LONGEST_DELAY)


def _hear(hub: Hub, payload: str) -> None:
    try:
        notice = msgspec.json.decode(payload, type=Notice)
    except msgspec.MsgspecError:
        logger.warning("a notification on %s is none of ours: %.100s", CHANNEL, payload)
        return
    hub.announce(notice.run_id, notice.revision)


async def _sweep(hub: Hub, database: Database) -> None:
    """Ask for the revisions of all watched runs at once, in case a notification was lost."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        watched = hub.watched()
        if not watched:
            continue
        try:
            found = await run_in_threadpool(_revisions, database, watched)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next sweep comes
            logger.warning("could not ask for changes: %s", error)
            continue
        for run_id, revision in found:
            hub.announce(run_id, revision)


def _revisions(database: Database, run_ids: list[UUID]) -> list[tuple[UUID, int]]:
    with database.transaction() as connection:
        query = select(run.c.id, run.c.revision).where(run.c.id.in_(run_ids))
        return [(row.id, row.revision) for row in connection.execute(query)]
