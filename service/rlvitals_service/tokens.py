"""Tokens: made, listed and revoked by administrators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection, func, select, update

from rlvitals_service.auth import Admin, Principal, Scope, TokenCache, make_secret, store_token
from rlvitals_service.database import Transaction
from rlvitals_service.errors import Forbidden, Invalid, NotFound, Unauthenticated, responses
from rlvitals_service.projects import ensure_project
from rlvitals_service.run_schemas import Name
from rlvitals_service.run_schemas import Request as Body
from rlvitals_service.tables import project, token

router = APIRouter(tags=["tokens"])


class TokenCreate(Body):
    """Say what a new token may do, and in which project; in all when that is left out."""

    name: Name
    project: Name | None = None
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]


class Token(BaseModel):
    """A token without its secret; `hint` is how the secret ends."""

    id: UUID
    name: str
    hint: str
    scopes: list[Scope]
    project: str | None
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewToken(Token):
    """A token with its secret, which is shown this once."""

    token: str


class Tokens(BaseModel):
    """Every token that the administrator sees."""

    tokens: list[Token]


@router.post(
    "/tokens",
    status_code=201,
    summary="Make a token",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid),
)
def create_token(body: TokenCreate, principal: Admin, connection: Transaction) -> NewToken:
    """Make a token; only its hash is kept, so this answer is the one chance to see it."""
    project_id = principal.project_id
    if body.project is not None:
        project_id = ensure_project(connection, principal, body.project)
    secret = make_secret()
    scopes = [str(scope) for scope in dict.fromkeys(body.scopes)]
    token_id = store_token(connection, secret, name=body.name, scopes=scopes, project_id=project_id)
    made = _read(connection, principal, token_id)[0]
    return NewToken(token=secret, **made.model_dump())


@router.get("/tokens", summary="List tokens", responses=responses(Unauthenticated, Forbidden))
def list_tokens(principal: Admin, connection: Transaction) -> Tokens:
    """List the tokens that the administrator sees, revoked ones included, newest first."""
    return Tokens(tokens=_read(connection, principal))


@router.delete(
    "/tokens/{token_id}",
    summary="Revoke a token",
    responses=responses(Unauthenticated, Forbidden, NotFound),
)
def revoke_token(
    token_id: UUID, principal: Admin, connection: Transaction, request: Request
) -> Token:
    """Revoke a token at once; other processes of the service follow within ten seconds."""
    if not _read(connection, principal, token_id):
        msg = f"There is no token {token_id}."
        raise NotFound(msg, field="token_id")
    connection.execute(
        update(token)
        .where(token.c.id == token_id, token.c.revoked_at.is_(None))
        .values(revoked_at=func.now())
    )
    cast("TokenCache", request.app.state.tokens).revoke(token_id)
    return _read(connection, principal, token_id)[0]


def _read(
    connection: Connection, principal: Principal, token_id: UUID | None = None
) -> list[Token]:
    query: Any = (
        select(token, project.c.name.label("project"))
        .outerjoin(project, project.c.id == token.c.project_id)
        .order_by(token.c.created_at.desc(), token.c.id.desc())
    )
    if token_id is not None:
        query = query.where(token.c.id == token_id)
    if principal.project_id is not None:
        query = query.where(token.c.project_id == principal.project_id)
    return [Token.model_validate(dict(row)) for row in connection.execute(query).mappings()]
