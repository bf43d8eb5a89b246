"""Runs: introduced by trainers, listed for people, ended or given up."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import select

from rlvitals.records import Directive
from rlvitals_service.auth import Controller, Ingester, Reader
from rlvitals_service.database import Transaction
from rlvitals_service.directive_rows import read_newest
from rlvitals_service.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Unauthenticated,
    Unavailable,
    responses,
)
from rlvitals_service.lookup import find_run
from rlvitals_service.registration import register
from rlvitals_service.run_list import Wanted, list_runs, read_run, run_url
from rlvitals_service.run_memory import Memories
from rlvitals_service.run_schemas import (
    Finish,
    Finished,
    Heartbeat,
    RunCreate,
    RunCreated,
    RunDetail,
    RunPage,
    RunPatch,
    State,
    Told,
)
from rlvitals_service.run_state import beat, change_run, finish
from rlvitals_service.tables import project, run

router = APIRouter(tags=["runs"])


def _for_trainer(directive: Directive | None) -> dict[str, Any] | None:
    return None if directive is None else msgspec.structs.asdict(directive)


def _dashboard(request: Request) -> str | None:
    return cast("str | None", request.app.state.settings.dashboard_url)


@router.post(
    "/runs",
    summary="Introduce a process of a training job",
    responses={
        201: {"model": RunCreated, "description": "The run is new."},
        **responses(Unauthenticated, Forbidden, NotFound, Conflict, Invalid, Unavailable),
    },
)
def create_run(
    body: RunCreate,
    principal: Ingester,
    connection: Transaction,
    request: Request,
    response: Response,
) -> RunCreated:
    """Answer which run and attempt the process is.

    Sending the same (project, key, attempt_key) again, from any rank, gives the same answer. A
    new attempt_key of a known key opens the next attempt, whose steps may go back.
    """
    found = register(connection, principal, body)
    if found.created:
        response.status_code = 201
    query = select(run.c.name, run.c.last_step, project.c.name.label("project"))
    query = query.join(project, project.c.id == run.c.project_id).where(run.c.id == found.run_id)
    row = connection.execute(query).one()
    return RunCreated.model_validate(
        {
            "id": found.run_id,
            "project": row.project,
            "name": row.name,
            "attempt": found.attempt,
            "resumed": found.attempt > 1,
            "last_step": row.last_step,
            "directive": _for_trainer(read_newest(connection, found.run_id)),
            "dashboard_url": run_url(_dashboard(request), found.run_id),
        }
    )


@router.get(
    "/runs",
    summary="List runs",
    responses=responses(Unauthenticated, Forbidden, Invalid),
)
def get_runs(
    principal: Reader,
    connection: Transaction,
    request: Request,
    project: Annotated[str | None, Query(description="Name of a project.")] = None,
    state: Annotated[list[State] | None, Query(description="May be given several times.")] = None,
    search: Annotated[
        str | None, Query(max_length=200, description="Part of name, project, group, tag or notes.")
    ] = None,
    tag: Annotated[str | None, Query(description="A tag the run must have.")] = None,
    archived: Annotated[bool, Query(description="Archived runs instead of the others.")] = False,
    sort: Annotated[
        str,
        Query(
            description="last_seen_at, started_at, name, step, acr or incidents; - turns it round."
        ),
    ] = "-last_seen_at",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
) -> RunPage:
    """List runs, newest sign of life first unless sorted otherwise."""
    wanted = Wanted(
        project=_plain(project),
        states=tuple(state or ()),
        search=_plain(search),
        tag=_plain(tag),
        archived=archived,
        sort=sort,
        limit=limit,
        cursor=cursor,
    )
    runs, next_cursor = list_runs(connection, principal, wanted, _dashboard(request))
    return RunPage.model_validate({"runs": runs, "next_cursor": next_cursor})


def _plain(text: str | None) -> str | None:
    # PostgreSQL refuses NUL, and nothing stored holds one.
    return None if text is None else text.replace("\x00", "\ufffd")


@router.get(
    "/runs/{run_id}",
    summary="Read a run in full",
    responses=responses(Unauthenticated, Forbidden, NotFound),
)
def get_run(
    run_id: UUID, principal: Reader, connection: Transaction, request: Request
) -> RunDetail:
    """Give a run with its configuration, its attempts and the names that have data."""
    find_run(connection, principal, run_id)
    return RunDetail.model_validate(read_run(connection, run_id, _dashboard(request)))


@router.patch(
    "/runs/{run_id}",
    summary="Rename, tag, annotate or archive a run",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid),
)
def patch_run(
    run_id: UUID, body: RunPatch, principal: Controller, connection: Transaction, request: Request
) -> RunDetail:
    """Change what is given; null is the same as left out."""
    change_run(connection, principal, run_id, body.model_dump(exclude_none=True))
    return RunDetail.model_validate(read_run(connection, run_id, _dashboard(request)))


@router.post(
    "/runs/{run_id}/heartbeat",
    summary="Say that a process is alive",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid, Unavailable),
)
def post_heartbeat(
    run_id: UUID,
    body: Heartbeat,  # noqa: ARG001 - any rank of any attempt is a sign of life
    principal: Ingester,
    connection: Transaction,
) -> Told:
    """Keep a run that logs nothing from becoming stale, and answer with the directive in force."""
    directive = beat(connection, principal, run_id)
    return Told.model_validate({"directive": _for_trainer(directive)})


@router.post(
    "/runs/{run_id}/finish",
    summary="End a source of an attempt, or all of it",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid, Unavailable),
)
def post_finish(
    run_id: UUID, body: Finish, principal: Ingester, connection: Transaction, request: Request
) -> Finished:
    """Sum up the run and note how it ended; records that arrive later are still taken.

    The run is finished once every source is that was introduced or sent records; the first one
    that failed or crashed ends it at once.
    """
    memories = cast("Memories", request.app.state.memories)
    state = finish(connection, memories, principal, run_id, body)
    return Finished(state=cast("Literal['running']", state))
