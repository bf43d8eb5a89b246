"""Projects: what runs and tokens belong to."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from rlvitals_service.auth import Admin, Principal, Reader
from rlvitals_service.database import Transaction
from rlvitals_service.errors import Forbidden, Invalid, NotFound, Unauthenticated, responses
from rlvitals_service.identifiers import uuid7
from rlvitals_service.run_schemas import Name, Request
from rlvitals_service.tables import project, run

router = APIRouter(tags=["projects"])


class ProjectCreate(Request):
    """Name a project."""

    name: Name


class Project(BaseModel):
    """A project, and the number of its runs."""

    id: UUID
    name: str
    created_at: datetime
    runs: int


class Projects(BaseModel):
    """Every project that the token sees."""

    projects: list[Project]


@router.get("/projects", summary="List projects", responses=responses(Unauthenticated, Forbidden))
def list_projects(principal: Reader, connection: Transaction) -> Projects:
    """List the projects that the token sees, by name."""
    return Projects(projects=_read(connection, principal))


@router.post(
    "/projects",
    status_code=201,
    summary="Make a project",
    responses=responses(Unauthenticated, Forbidden, Invalid),
)
def create_project(body: ProjectCreate, principal: Admin, connection: Transaction) -> Project:
    """Make a project; one that exists is given back as it is."""
    ensure_project(connection, principal, body.name)
    return next(one for one in _read(connection, principal) if one.name == body.name)


def ensure_project(connection: Connection, principal: Principal, name: str) -> UUID:
    """Give the project's id, making it if need be; NotFound for one that the token does not see."""
    if principal.project_id is None:
        connection.execute(insert(project).values(id=uuid7(), name=name).on_conflict_do_nothing())
    query = select(project.c.id).where(project.c.name == name)
    project_id: UUID | None = connection.execute(query).scalar_one_or_none()
    if project_id is None or not principal.sees(project_id):
        msg = f"There is no project '{name}' for the token '{principal.name}'."
        raise NotFound(msg, field="project")
    return project_id


def _read(connection: Connection, principal: Principal) -> list[Project]:
    query = (
        select(project, func.count(run.c.id).label("runs"))
        .outerjoin(run, run.c.project_id == project.c.id)
        .group_by(project.c.id)
        .order_by(project.c.name)
    )
    if principal.project_id is not None:
        query = query.where(project.c.id == principal.project_id)
    return [Project.model_validate(dict(row)) for row in connection.execute(query).mappings()]
