"""Bearer tokens: who is calling, what they may do, and which runs they may see."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast
from uuid import UUID

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Connection, func, insert, select, update
from starlette.concurrency import run_in_threadpool

from rlvitals_service.database import Database, database_of
from rlvitals_service.errors import Forbidden, Unauthenticated
from rlvitals_service.identifiers import uuid7
from rlvitals_service.tables import token

if TYPE_CHECKING:
    from rlvitals_service.settings import Settings

Scope = Literal["ingest", "read", "control", "admin"]
SCOPES: tuple[Scope, ...] = ("ingest", "read", "control", "admin")
PREFIX = "rlv_"
# A token revoked through another process keeps working here for at most this long.
REMEMBER_SECONDS = 10.0
REMEMBER_TOKENS = 10_000
LAST_USED_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a token stands for."""

    token_id: UUID
    name: str
    scopes: frozenset[str]
    project_id: UUID | None

    def may(self, scope: Scope) -> bool:
        """Tell whether the scope is granted; admin grants all."""
        return scope in self.scopes or "admin" in self.scopes

    def sees(self, project_id: UUID) -> bool:
        """Tell whether the token is free, or bound to this very project."""
        return self.project_id is None or self.project_id == project_id


@dataclass(slots=True)
class TokenCache:
    """Remember checked tokens for a few seconds, so that ingest asks the database once."""

    entries: dict[bytes, tuple[float, Principal]] = field(default_factory=dict)
    revoked: set[UUID] = field(default_factory=set)

    def get(self, digest: bytes) -> Principal | None:
        """Give the principal of a token checked within the last seconds."""
        entry = self.entries.get(digest)
        return entry[1] if entry and time.monotonic() - entry[0] < REMEMBER_SECONDS else None

    def put(self, digest: bytes, principal: Principal) -> None:
        """Remember a checked token; forget everything when the table is full."""
        # A revocation that is not committed yet is not seen by a look-up.
        if principal.token_id in self.revoked:
            return
        if len(self.entries) >= REMEMBER_TOKENS:
            self.entries.clear()
        self.entries[digest] = (time.monotonic(), principal)

    def revoke(self, token_id: UUID) -> None:
        """Forget a token, and never remember it again."""
        self.revoked.add(token_id)
        self.entries.clear()


def make_secret() -> str:
    """Make a new token: the prefix and 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> bytes:
    """Hash a token for storage and look-up."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def store_token(
    connection: Connection,
    secret: str,
    *,
    name: str,
    scopes: list[str],
    project_id: UUID | None = None,
) -> UUID:
    """Store the hash of a new token; give its id."""
    token_id = uuid7()
    values = {
        "id": token_id,
        "name": name,
        "hash": digest_of(secret),
        "hint": secret[-4:],
        "scopes": scopes,
        "project_id": project_id,
    }
    connection.execute(insert(token).values(values))
    return token_id


def find_token(connection: Connection, digest: bytes) -> Principal | None:
    """Look a token up by its hash and note that it was used; None when unknown or revoked."""
    query = select(token).where(token.c.hash == digest, token.c.revoked_at.is_(None))
    row = connection.execute(query).one_or_none()
    if row is None or not hmac.compare_digest(bytes(row.hash), digest):
        return None
    stale = func.coalesce(func.extract("epoch", func.now() - token.c.last_used_at), 1e9)
    connection.execute(
        update(token)
        .where(token.c.id == row.id, stale > LAST_USED_SECONDS)
        .values(last_used_at=func.now())
    )
    return Principal(row.id, row.name, frozenset(row.scopes), row.project_id)


def ensure_bootstrap(database: Database, settings: Settings) -> None:
    """Make sure the operator's first token exists and lies in the file that the settings name."""
    path = settings.bootstrap_token_file
    secret = settings.bootstrap_token.get_secret_value() if settings.bootstrap_token else None
    if secret is None and path is None:
        return
    known_by_file = path.read_text(encoding="utf-8").strip() if path and path.is_file() else None
    secret = secret or known_by_file or make_secret()
    with database.transaction() as connection:
        known = select(token.c.id).where(token.c.hash == digest_of(secret))
        if connection.execute(known).first() is None:
            store_token(connection, secret, name="bootstrap", scopes=list(SCOPES))
    # A file that says so already may be a container's secret, mounted read-only.
    if path is not None and secret != known_by_file:
        write_secret(path, secret)


def write_secret(path: Path, secret: str) -> None:
    """Write a token to a file that only its owner can read, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(secret + "\n")
    fresh.replace(path)


bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token made by `rlvitals token create`; it begins with `rlv_`.",
)
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


def _look_up(database: Database, digest: bytes) -> Principal | None:
    with database.transaction() as connection:
        return find_token(connection, digest)


async def authenticate(request: Request, credentials: Credentials) -> Principal:
    """Say who is calling, or answer 401."""
    return await identify(request, credentials.credentials if credentials else "")


async def identify(request: Request, secret: str) -> Principal:
    """Find whom a token stands for; Unauthenticated when it is missing, unknown or revoked."""
    if not secret:
        msg = "Send the header 'Authorization: Bearer <token>'."
        raise Unauthenticated(msg)
    digest = digest_of(secret)
    cache = cast("TokenCache", request.app.state.tokens)
    principal = cache.get(digest)
    if principal is None:
        # Only a miss goes to a thread: the hot path stays on the event loop.
        principal = await run_in_threadpool(_look_up, database_of(request), digest)
        if principal is None:
            msg = "The token is unknown or was revoked; make one with `rlvitals token create`."
            raise Unauthenticated(msg)
        cache.put(digest, principal)
    request.state.principal = principal  # for the request log
    return principal


def bearer_token(authorization: str) -> str:
    """Read the token out of an Authorization header; empty when there is none."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def check_scope(principal: Principal, scope: Scope) -> None:
    """Answer 403 unless the token has the scope."""
    if not principal.may(scope):
        msg = f"The token '{principal.name}' lacks the scope '{scope}'."
        raise Forbidden(msg)


def require(scope: Scope) -> Callable[..., Awaitable[Principal]]:
    """Make the dependency that answers 403 unless the token has the scope."""

    async def allowed(principal: Annotated[Principal, Depends(authenticate)]) -> Principal:
        check_scope(principal, scope)
        return principal

    return allowed


Ingester = Annotated[Principal, Depends(require("ingest"))]
Reader = Annotated[Principal, Depends(require("read"))]
Controller = Annotated[Principal, Depends(require("control"))]
Admin = Annotated[Principal, Depends(require("admin"))]
