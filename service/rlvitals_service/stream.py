"""GET /runs/{id}/stream: a run's changes as server-sent events, from wherever a reader left off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from rlvitals_service.auth import Principal, Reader
from rlvitals_service.changes import Event, read_changes
from rlvitals_service.database import Database, database_of
from rlvitals_service.errors import Forbidden, NotFound, Unauthenticated, responses
from rlvitals_service.listen import Hub, hub_of
from rlvitals_service.lookup import find_run

router = APIRouter(tags=["stream"])

KEEP_ALIVE_SECONDS = 15.0
# A stream ends now and then and its reader comes back with the cursor: a revoked token is noticed.
LONGEST_SECONDS = 900.0
LARGEST_REVISION = 2**63 - 1
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@router.get(
    "/runs/{run_id}/stream",
    summary="Follow a run",
    response_class=StreamingResponse,
    responses={
        **responses(Unauthenticated, Forbidden, NotFound),
        200: {
            "description": "Events `step`, `incident`, `directive` and `run`; `id` is the cursor",
            "content": {"text/event-stream": {}},
        },
    },
)
async def follow(
    run_id: UUID,
    principal: Reader,
    request: Request,
    since: Annotated[int | None, Query(ge=0, le=LARGEST_REVISION)] = None,
    metrics: Annotated[str | None, Query(description="Only these, separated by commas.")] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Send what was missed since the revision, then each change as it is committed.

    Without `since` (or `Last-Event-ID`, which wins) the stream begins now. An event may come
    twice after a reconnect, never not at all.
    """
    database = database_of(request)
    revision = await run_in_threadpool(_revision, database, principal, run_id)
    resumed = last_event_id is not None and last_event_id.isdigit()
    cursor = int(str(last_event_id)) if resumed else revision if since is None else since
    names = None if metrics is None else frozenset(metrics.split(","))
    events = _events(hub_of(request), database, run_id, cursor, names)
    return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)


def _revision(database: Database, principal: Principal, run_id: UUID) -> int:
    with database.transaction() as connection:
        return find_run(connection, principal, run_id).revision


async def _events(
    hub: Hub, database: Database, run_id: UUID, cursor: int, names: frozenset[str] | None
) -> AsyncIterator[bytes]:
    """Read, send and wait in turn, for as long as one stream may last."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LONGEST_SECONDS
    directive: dict[str, Any] | None = None
    yield b"retry: 1000\n\n"
    with hub.watch(run_id) as watch:
        while not hub.closing and loop.time() < end:
            changes = await run_in_threadpool(read_changes, database, run_id, cursor, directive)
            for event in changes.events:
                yield encode(event, names)
            cursor, directive = changes.cursor, changes.directive
            if not changes.more and not await watch.wait(KEEP_ALIVE_SECONDS):
                yield b": still here\n\n"


def encode(event: Event, names: frozenset[str] | None = None) -> bytes:
    """Write one event in the text/event-stream format, with only the named metrics if any."""
    data = event.data
    if names is not None and "metrics" in data:
        kept = {key: {k: v for k, v in data[key].items() if k in names} for key in NUMBERS}
        data = {**data, **kept}
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event.cursor,
        event.kind.encode(),
        msgspec.json.encode(data),
    )


NUMBERS = ("metrics", "nonfinite")
