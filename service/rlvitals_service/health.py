"""Whether the process is up, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel

from rlvitals_service import migrate
from rlvitals_service.database import database_of
from rlvitals_service.errors import Unavailable, responses

root_router = APIRouter(tags=["health"])


class Health(BaseModel):
    """Answer a probe."""

    status: str


@root_router.get("/healthz", summary="Tell whether the process answers")
async def healthz() -> Health:
    """Answer without touching the database."""
    return Health(status="ok")


@root_router.get(
    "/readyz",
    summary="Tell whether the database answers at the right revision",
    responses=responses(Unavailable),
)
def readyz(request: Request) -> Health:
    """Answer 503 until the database is reachable and migrated."""
    with database_of(request).transaction() as connection:
        trouble = migrate.behind(connection)
    if trouble:
        raise Unavailable(trouble)
    return Health(status="ok")
