"""Take in what a training job sends: the endpoint, up to the one transaction a batch."""

from __future__ import annotations

from typing import cast
from uuid import UUID

import msgspec
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from rlvitals.records import StepAnswer
from rlvitals_service import wire_schema
from rlvitals_service.auth import Ingester, Principal, bearer_token, check_scope, identify
from rlvitals_service.batch import JSON, MEDIA_TYPES, Batch, decode
from rlvitals_service.body import expand, media_type
from rlvitals_service.database import database_of
from rlvitals_service.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnsupportedMedia,
    responses,
)
from rlvitals_service.run_memory import Memories
from rlvitals_service.settings import Settings
from rlvitals_service.writing import write_batch

router = APIRouter(tags=["ingest"])

_json = msgspec.json.Encoder()


def install(app: FastAPI) -> None:
    """Give the app what it remembers of runs between batches, and the short way to ingest.

    The framework spends as long on matching routes and solving dependencies as a small batch takes
    to store. So this plain route, which comes first, serves the path; the one below it describes
    it, and serves what is no run id.
    """
    app.state.memories = Memories()
    app.add_route(
        "/api/v1/runs/{run_id:uuid}/steps", _steps, methods=["POST"], include_in_schema=False
    )


async def _steps(request: Request) -> Response:
    request.scope["route"] = router.routes[0]  # what the request log calls it
    principal = await identify(request, bearer_token(request.headers.get("authorization", "")))
    check_scope(principal, "ingest")
    return await post_steps(request.path_params["run_id"], request, principal)


@router.post(
    "/runs/{run_id}/steps",
    summary="Take a batch of step records",
    response_class=Response,
    responses=responses(
        BadRequest,
        Unauthenticated,
        Forbidden,
        NotFound,
        TooLarge,
        UnsupportedMedia,
        Invalid,
        Unavailable,
    ),
    openapi_extra=wire_schema.operation(MEDIA_TYPES),
)
async def post_steps(run_id: UUID, request: Request, principal: Ingester) -> Response:
    """Store records, judge the run, and answer with the directive in force.

    A record's key is (run, attempt, phase, step, generation, source, stage); sending a key again
    replaces what the record carries, and the very same record again changes nothing. A bad record
    is rejected with its index and reason and spoils no other. Bare `NaN` and `Infinity` are taken
    in JSON, and so are their names as texts.
    """
    body = await request.body()
    answer = await run_in_threadpool(_take, request, principal, run_id, body)
    return Response(_json.encode(answer), media_type=JSON)


def _take(request: Request, principal: Principal, run_id: UUID, body: bytes) -> StepAnswer:
    batch = _read(request, body)
    memories = cast("Memories", request.app.state.memories)
    return write_batch(database_of(request), memories, principal, run_id, batch)


def _read(request: Request, body: bytes) -> Batch:
    settings: Settings = request.app.state.settings
    kind = media_type(request.headers.get("content-type", JSON))
    if kind not in MEDIA_TYPES:
        msg = f"Content-Type '{kind}' is not read here; send {JSON} or application/msgpack."
        raise UnsupportedMedia(msg)
    encoding = request.headers.get("content-encoding", "")
    batch = decode(
        expand(body, encoding, settings.max_decompressed_bytes), packed="msgpack" in kind
    )
    count = len(batch.records) + len(batch.rejected)
    if count > settings.max_batch_records:
        msg = f"records: {count} in one batch; at most {settings.max_batch_records}."
        raise TooLarge(msg, field="records")
    return batch
