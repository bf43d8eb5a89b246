"""When the attempts of a run began: the newest is the one that began last, not that came last.

An attempt's number is the key of its data and only says in which order attempts were introduced.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select

from rlvitals_service.tables import attempt


def began(started_at: float | None, sent_at: float | None) -> Any:
    """Give the SQL for when an attempt began, by the service's clock, from its client's Unix times.

    With ``sent_at`` the difference tells how long ago it began, whatever the client's clock says.
    Without it ``started_at`` counts as it is, and without that the introduction is the beginning.
    Nothing begins after it was introduced.
    """
    now = func.clock_timestamp()  # under the run's lock, so later ones are later
    if started_at is None:
        return now
    latest = time.time()
    if sent_at is not None:
        return now - timedelta(seconds=min(max(sent_at - started_at, 0.0), latest))
    return func.least(now, func.to_timestamp(min(max(started_at, 0.0), 2 * latest)))


def read_order(connection: Connection, run_id: UUID) -> list[int]:
    """Read the attempts of a run, oldest first; of two that began at once the lower number is."""
    query = select(attempt.c.attempt).where(attempt.c.run_id == run_id)
    query = query.order_by(attempt.c.started_at, attempt.c.attempt)
    return list(connection.execute(query).scalars())
