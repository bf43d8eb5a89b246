"""What a trainer said about the directives of its run, stored."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects import postgresql

from rlvitals.records import Acknowledgement, Directive
from rlvitals_service.cleaning import clean_text
from rlvitals_service.directives import Ack, Issued, standing
from rlvitals_service.tables import directive, directive_ack
from rlvitals_service.vitals import StepVitals

logger = logging.getLogger(__name__)


def read_newest(connection: Connection, run_id: UUID) -> Directive | None:
    """Read the newest directive of a run as the trainer wants it; None when there never was one."""
    query = (
        select(directive)
        .where(directive.c.run_id == run_id)
        .order_by(directive.c.version.desc())
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else on_the_wire(row)


def on_the_wire(row: Mapping[Any, Any]) -> Directive:
    """Give a directive's row as it travels to the trainer."""
    return Directive(
        version=row["version"],
        mode=row["mode"],
        focal=row["focal"],
        avspo=row["avspo"],
        expires_at_step=row["expires_at_step"],
        reason=row["reason"],
        issued_by=row["issued_by"],
        issued_at=row["issued_at"].isoformat(),
    )


def store_acknowledgements(
    connection: Connection,
    run_id: UUID,
    acknowledgements: Sequence[Acknowledgement],
    last_step: int | None,
) -> bool:
    """Store what was not said before; tell whether anything was new."""
    versions = _known(connection, run_id, {ack.version for ack in acknowledgements})
    new = False
    for ack in acknowledgements:
        if ack.version not in versions:
            logger.warning("run %s: acknowledged unknown directive %d", run_id, ack.version)
            continue
        values = {
            "run_id": run_id,
            "version": ack.version,
            "source": clean_text(ack.source),
            "status": ack.status,
            "step": ack.step,
            "reason": clean_text(ack.reason),
        }
        statement = postgresql.insert(directive_ack).values(values).on_conflict_do_nothing()
        returned = connection.execute(statement.returning(directive_ack.c.version))
        new = returned.first() is not None or new
    if new:
        _restate(connection, run_id, versions, last_step)
    return new


def mark_effective(
    connection: Connection, run_id: UUID, steps: Iterable[StepVitals], last_step: int | None
) -> bool:
    """Note the first step whose groups were weighed under a directive; tell whether it is new."""
    first: dict[int, int] = {}
    for step in steps:
        seen = step.tally is not None or step.tally_trained is not None
        if step.applied is not None and step.phase == "train" and seen:
            first[step.applied] = min(step.step, first.get(step.applied, step.step))
    new = False
    for version, number in first.items():
        statement = (
            update(directive)
            .where(
                directive.c.run_id == run_id,
                directive.c.version == version,
                directive.c.effective_step.is_(None),
            )
            .values(effective_step=number)
        )
        new = connection.execute(statement).rowcount > 0 or new
    if new:
        _restate(connection, run_id, set(first), last_step)
    return new


def _known(connection: Connection, run_id: UUID, versions: set[int]) -> set[int]:
    if not versions:
        return set()
    query = select(directive.c.version).where(
        directive.c.run_id == run_id, directive.c.version.in_(versions)
    )
    return set(connection.execute(query).scalars())


def _restate(
    connection: Connection, run_id: UUID, versions: set[int], last_step: int | None
) -> None:
    """Write down where the directives stand now."""
    query = select(func.max(directive.c.version)).where(directive.c.run_id == run_id)
    newest = connection.execute(query).scalar_one()
    for version in versions:
        this = (directive.c.run_id == run_id) & (directive.c.version == version)
        row = connection.execute(select(directive).where(this)).mappings().one_or_none()
        if row is None:
            continue
        said = select(directive_ack).where(
            directive_ack.c.run_id == run_id, directive_ack.c.version == version
        )
        acks = [
            Ack(one.source, one.step, one.status, one.reason) for one in connection.execute(said)
        ]
        now = standing(
            Issued(
                mode=row["mode"],
                newest=version == newest,
                expires_at_step=row["expires_at_step"],
                effective_step=row["effective_step"],
                last_step=last_step,
            ),
            acks,
        )
        values = {
            "state": now.state,
            "acknowledged_step": now.acknowledged_step,
            "refusal": now.refusal,
        }
        connection.execute(update(directive).where(this).values(values))
