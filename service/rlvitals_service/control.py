"""The control side: which remedies a run should have in force, and what became of each wish."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, and_, func, insert, select, update
from starlette.concurrency import run_in_threadpool

from rlvitals.remedies import Remedies
from rlvitals_service.auth import Controller, Principal, Reader, authenticate
from rlvitals_service.cleaning import CleanText
from rlvitals_service.database import Database, Transaction, database_of, driver
from rlvitals_service.directives import Ack, Issued, State, is_past, standing
from rlvitals_service.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Unauthenticated,
    responses,
)
from rlvitals_service.listen import hub_of
from rlvitals_service.lookup import FoundRun, find_run
from rlvitals_service.run_rows import notify
from rlvitals_service.run_schemas import DirectiveFields
from rlvitals_service.tables import directive, directive_ack, run

router = APIRouter(tags=["control"])

REMEDIES = ("focal", "avspo")
LONGEST_WAIT_SECONDS = 30
LAST_STEP = 2**53 - 1


class Acknowledged(BaseModel):
    """What one source (rank) said about a directive."""

    source: str
    step: int
    status: Literal["acknowledged", "refused", "expired"]
    reason: str
    at: datetime


class DirectiveAnswer(DirectiveFields):
    """A directive, and where it stands."""

    issued_at: datetime
    state: State
    acknowledged_step: int | None
    effective_step: int | None
    refusal: str | None
    acks: list[Acknowledged]


class CurrentDirective(BaseModel):
    """The newest directive of a run; null when there never was one."""

    directive: DirectiveAnswer | None


class DirectiveLog(BaseModel):
    """Every directive of a run, newest first."""

    directives: list[DirectiveAnswer]


class Wish(BaseModel):
    """Say which remedies should be in force from the trainer's next generation on."""

    model_config = ConfigDict(extra="forbid")

    mode: Literal["on", "off", "shadow"]
    focal: dict[str, Any] | None = Field(None, description="Focal weights: {gamma}.")
    avspo: dict[str, Any] | None = Field(None, description="Virtual samples: {alpha, …}.")
    sharpness: Any | None = Field(None, description="Reserved for a later version.")
    expires_at_step: int | None = Field(None, ge=1, le=LAST_STEP)
    reason: Annotated[CleanText, Field(max_length=2000)] = ""
    expected_version: int | None = Field(
        None, ge=0, description="The newest version you know of; 0 when there was none."
    )


async def _may_know(principal: Annotated[Principal, Depends(authenticate)]) -> Principal:
    """Let trainers (ingest) and people (read, control) ask for a directive."""
    if not any(principal.may(scope) for scope in ("ingest", "read", "control")):
        msg = f"The token '{principal.name}' lacks the scope 'read'."
        raise Forbidden(msg)
    return principal


@router.get(
    "/runs/{run_id}/directive",
    summary="Ask for the directive in force, or wait for the next",
    responses=responses(Unauthenticated, Forbidden, NotFound, Invalid),
)
async def read_directive(
    run_id: UUID,
    principal: Annotated[Principal, Depends(_may_know)],
    request: Request,
    since: Annotated[int | None, Query(ge=0, description="The version you have.")] = None,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_SECONDS, allow_inf_nan=False)] = 0.0,
) -> CurrentDirective:
    """Answer at once, or, with `since` and `wait`, as soon as there is a later version."""
    database = database_of(request)
    loop = asyncio.get_running_loop()
    end = loop.time() + wait
    with hub_of(request).watch(run_id) as watch:
        while True:
            newest = await run_in_threadpool(_visible_newest, database, principal, run_id)
            known = since is None or (newest is not None and newest["version"] > since)
            left = end - loop.time()
            if known or left <= 0 or watch.hub.closing:
                return CurrentDirective.model_validate({"directive": newest})
            await watch.wait(left)


@router.put(
    "/runs/{run_id}/directive",
    summary="Say which remedies should be in force",
    responses=responses(Unauthenticated, Forbidden, NotFound, Conflict, Invalid),
)
def put_directive(
    run_id: UUID, wish: Wish, principal: Controller, connection: Transaction
) -> DirectiveAnswer:
    """Issue the next version; mode `off` withdraws every remedy.

    Refused when the run's trainer did not declare the ability, when the remedies are not valid,
    or (409) when `expected_version` is no longer the newest.
    """
    found = find_run(connection, principal, run_id, lock=True)
    remedies = _checked(wish, found)
    version = _newest_version(connection, run_id)
    if wish.expected_version not in {None, version}:
        msg = f"The newest directive is version {version}, not {wish.expected_version}; look first."
        raise Conflict(msg, field="expected_version")
    values = {
        "run_id": run_id,
        "version": version + 1,
        "mode": wish.mode,
        "focal": remedies.get("focal"),
        "avspo": remedies.get("avspo"),
        "expires_at_step": wish.expires_at_step if wish.mode == "on" else None,
        "reason": wish.reason,
        "issued_by": principal.name,
    }
    _supersede(connection, run_id)
    connection.execute(insert(directive).values(values))
    _announce(connection, run_id)
    return DirectiveAnswer.model_validate(newest_directive(connection, run_id))


@router.get(
    "/runs/{run_id}/directives",
    summary="Read the log of directives",
    responses=responses(Unauthenticated, Forbidden, NotFound),
)
def list_directives(run_id: UUID, principal: Reader, connection: Transaction) -> DirectiveLog:
    """List every directive of a run with its acknowledgements, newest first."""
    find_run(connection, principal, run_id)
    return DirectiveLog.model_validate({"directives": _directives(connection, run_id)})


def newest_directive(connection: Connection, run_id: UUID) -> dict[str, Any] | None:
    """Give the newest directive of a run with where it stands; None when there never was one."""
    found = _directives(connection, run_id, limit=1)
    return found[0] if found else None


def _checked(wish: Wish, found: FoundRun) -> dict[str, Any]:
    """Give the wished remedies as they will be in force; Invalid or Conflict says why not."""
    if wish.mode == "shadow":
        raise Invalid("mode 'shadow' comes with a later version; use on or off.", field="mode")
    if wish.sharpness is not None:
        raise Invalid("sharpness comes with a later version; leave it out.", field="sharpness")
    if wish.mode == "off":
        return {}
    wished = {name: getattr(wish, name) for name in REMEDIES if getattr(wish, name) is not None}
    if not wished:
        raise Invalid("mode 'on' needs focal, avspo or both; 'off' withdraws.", field="focal")
    _check_abilities(wished, found.abilities)
    if is_past(wish.expires_at_step, found.last_step):
        msg = f"expires_at_step must be after the run's last step, {found.last_step}."
        raise Invalid(msg, field="expires_at_step")
    try:
        return Remedies.from_dict(wished).to_dict()
    except ValueError as error:
        raise Invalid(str(error), field=_field(str(error), wished)) from None


def _check_abilities(wished: Iterable[str], abilities: Sequence[str]) -> None:
    for name in wished:
        if name not in abilities:
            declared = ", ".join(abilities) or "no remedy"
            msg = f"This run's trainer cannot apply {name}: it declared {declared}."
            raise Conflict(msg, field=name)


def _field(message: str, wished: Mapping[str, Mapping[str, Any]]) -> str:
    """Find the dotted name of the field that a message is about."""
    first = message.split(maxsplit=1)[0].strip(":,'\"`")
    for name, parameters in wished.items():
        if first == name or first.startswith(f"{name}."):
            return first
        if first in parameters:
            return f"{name}.{first}"
    return next(iter(wished))


def _visible_newest(
    database: Database, principal: Principal, run_id: UUID
) -> dict[str, Any] | None:
    with database.transaction() as connection:
        find_run(connection, principal, run_id)
        return newest_directive(connection, run_id)


def _newest_version(connection: Connection, run_id: UUID) -> int:
    query = select(func.max(directive.c.version)).where(directive.c.run_id == run_id)
    return connection.execute(query).scalar_one() or 0


def _supersede(connection: Connection, run_id: UUID) -> None:
    open_states = ("pending", "acknowledged", "effective", "withdrawn")
    connection.execute(
        update(directive)
        .where(directive.c.run_id == run_id, directive.c.state.in_(open_states))
        .values(state="superseded")
    )


def _announce(connection: Connection, run_id: UUID) -> None:
    """Count the change in the run's revision and tell the waiting trainer at commit."""
    bump = update(run).where(run.c.id == run_id).values(revision=run.c.revision + 1)
    revision = connection.execute(bump.returning(run.c.revision)).scalar_one()
    notify(driver(connection), run_id, revision, ["directive"])


def _directives(
    connection: Connection, run_id: UUID, limit: int | None = None
) -> list[dict[str, Any]]:
    """Read directives with their acknowledgements and standing, newest first."""
    query = (
        select(directive, run.c.last_step)
        .join(run, run.c.id == directive.c.run_id)
        .where(directive.c.run_id == run_id)
        .order_by(directive.c.version.desc())
        .limit(limit)
    )
    rows = connection.execute(query).mappings().all()
    acks = _acks(connection, run_id, min((row["version"] for row in rows), default=0))
    newest = rows[0]["version"] if rows else 0
    return [
        _answer(row, acks.get(row["version"], []), newest=row["version"] == newest) for row in rows
    ]


def _acks(connection: Connection, run_id: UUID, oldest: int) -> dict[int, list[dict[str, Any]]]:
    """Read what was said about the versions from the oldest on, in the order it came."""
    query = (
        select(directive_ack)
        .where(and_(directive_ack.c.run_id == run_id, directive_ack.c.version >= oldest))
        .order_by(directive_ack.c.at, directive_ack.c.step)
    )
    said: dict[int, list[dict[str, Any]]] = {}
    for row in connection.execute(query).mappings():
        ack = {name: row[name] for name in Acknowledged.model_fields}
        said.setdefault(row["version"], []).append(ack)
    return said


def _answer(row: Mapping[Any, Any], acks: list[dict[str, Any]], *, newest: bool) -> dict[str, Any]:
    issued = Issued(
        mode=row["mode"],
        newest=newest,
        expires_at_step=row["expires_at_step"],
        effective_step=row["effective_step"],
        last_step=row["last_step"],
    )
    found = standing(issued, [Ack(a["source"], a["step"], a["status"], a["reason"]) for a in acks])
    kept = ("version", "mode", *REMEDIES, "expires_at_step", "reason", "issued_by", "issued_at")
    return {
        **{name: row[name] for name in kept},
        "state": found.state,
        "acknowledged_step": found.acknowledged_step,
        "effective_step": found.effective_step,
        "refusal": found.refusal,
        "acks": acks,
    }
