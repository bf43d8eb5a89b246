"""Find the run a request names, as far as its token sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from rlvitals_service.auth import Principal
from rlvitals_service.errors import NotFound
from rlvitals_service.tables import run


@dataclass(frozen=True, slots=True)
class FoundRun:
    """Hold what readers need of a run before they read its steps."""

    id: UUID
    revision: int
    last_step: int | None
    abilities: list[str]
    latest: dict[str, Any]
    latest_eval: dict[str, Any]

    def metric_names(self, phase: str) -> list[str]:
        """Name the metrics that have data in a phase, sorted."""
        return sorted(self.latest_eval if phase == "eval" else self.latest)


def find_run(
    connection: Connection, principal: Principal, run_id: UUID, *, lock: bool = False
) -> FoundRun:
    """Give the run, locked until the transaction ends if asked; NotFound unless it is visible."""
    query = select(
        run.c.id,
        run.c.revision,
        run.c.last_step,
        run.c.abilities,
        run.c.latest,
        run.c.latest_eval,
        run.c.project_id,
    ).where(run.c.id == run_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None or not principal.sees(row.project_id):
        raise NotFound(f"There is no run {run_id}.", field="run_id")
    *known, _ = row
    return FoundRun(*known)
