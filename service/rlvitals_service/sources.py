"""The sources (ranks) of an attempt, and how each of them ended."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from rlvitals_service.tables import attempt

Ends = dict[str, str | None]  # by source; None for one that has not ended


def read_ends(connection: Connection, run_id: UUID, number: int) -> Ends:
    """Read how the sources of an attempt ended, as far as they did."""
    query = select(attempt.c.sources).where(attempt.c.run_id == run_id, attempt.c.attempt == number)
    ends: Ends = connection.execute(query).scalar_one()
    return ends


def note_source(
    connection: Connection, run_id: UUID, number: int, source: str, end: str | None = None
) -> None:
    """Note a source of an attempt, or how it ended."""
    statement = (
        update(attempt)
        .where(attempt.c.run_id == run_id, attempt.c.attempt == number)
        .values(sources=attempt.c.sources.op("||")(literal({source: end}, JSONB)))
    )
    connection.execute(statement)
