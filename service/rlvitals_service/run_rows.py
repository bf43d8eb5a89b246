"""The row of a run while a batch is written: locked first, updated last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import msgspec
from psycopg.rows import dict_row

from rlvitals.records import Directive
from rlvitals_service.database import CHANNEL
from rlvitals_service.directive_rows import on_the_wire
from rlvitals_service.run_memory import RunMemory, Span, sparkline_of
from rlvitals_service.step_rows import DriverConnection

_json = msgspec.json.Encoder()

LOCK = """
SELECT run.project_id, run.state, run.revision, run.steps_revision, run.last_attempt,
       run.last_step, run.verdict, extract(epoch FROM now())::float8 AS now,
       newest.version, newest.mode, newest.focal, newest.avspo, newest.expires_at_step,
       newest.reason, newest.issued_by, newest.issued_at
FROM run LEFT JOIN LATERAL (
    SELECT * FROM directive WHERE directive.run_id = run.id ORDER BY version DESC LIMIT 1
) AS newest ON true
WHERE run.id = %b
FOR UPDATE OF run
"""
UPDATE = """
UPDATE run SET last_seen_at = now(), state = %b, revision = %b, steps_revision = %b,
    last_step = %b, last_attempt = %b, verdict = %b,
    latest = coalesce(%b::text::jsonb, latest),
    latest_eval = coalesce(%b::text::jsonb, latest_eval),
    sparkline = coalesce(%b::text::jsonb, sparkline),
    lost = lost || coalesce(%b::text::jsonb, '{}'),
    clock_skew_seconds = greatest(clock_skew_seconds, %b::float8)
WHERE id = %b
"""
SPANS = """
INSERT INTO attempt (run_id, attempt, key, first_step, last_step)
SELECT %b, given.* FROM unnest(%b::smallint[], %b::text[], %b::bigint[], %b::bigint[]) AS given
ON CONFLICT (run_id, attempt) DO UPDATE
SET first_step = excluded.first_step, last_step = excluded.last_step
"""


@dataclass(frozen=True, slots=True)
class LockedRun:
    """Hold a run's row as it was when this transaction locked it; `now` is the server's clock."""

    id: UUID
    project_id: UUID
    state: str
    revision: int
    steps_revision: int
    last_attempt: int
    last_step: int | None
    verdict: str
    now: float
    directive: Directive | None


@dataclass(slots=True)
class RunUpdate:
    """Hold what a batch changes in its run's row; None leaves a column as it is."""

    state: str
    revision: int
    steps_revision: int
    last_step: int | None
    last_attempt: int
    verdict: str
    lost: dict[str, dict[str, int]] | None = None
    clock_skew: float | None = None


def lock_run(connection: DriverConnection, run_id: UUID) -> LockedRun | None:
    """Lock a run until the transaction ends; None when there is none."""
    with connection.cursor(binary=True, row_factory=dict_row) as cursor:
        row = cursor.execute(LOCK, (run_id,)).fetchone()
    if row is None:
        return None
    own = {name: row[name] for name in LockedRun.__slots__ if name not in {"id", "directive"}}
    directive = None if row["version"] is None else on_the_wire(row)
    return LockedRun(id=run_id, directive=directive, **own)


def update_run(
    connection: DriverConnection, run_id: UUID, update: RunUpdate, memory: RunMemory | None
) -> None:
    """Write a run's row; with a memory, also the summary that lists of runs show."""
    summary: list[str | None] = [None, None, None]
    if memory is not None:
        drawn = sparkline_of(memory.sparkline)
        parts = (memory.latest["train"], memory.latest["eval"], drawn)
        summary = [_json.encode(part).decode() for part in parts]
    with connection.cursor(binary=True) as cursor:
        cursor.execute(
            UPDATE,
            (
                update.state,
                update.revision,
                update.steps_revision,
                update.last_step,
                update.last_attempt,
                update.verdict,
                *summary,
                None if update.lost is None else _json.encode(update.lost).decode(),
                update.clock_skew,
                run_id,
            ),
        )


def write_spans(connection: DriverConnection, run_id: UUID, spans: dict[int, Span]) -> None:
    """Write the steps that attempts cover; one that nobody announced is written down too."""
    keys = [f"#{attempt}" for attempt in spans]
    first = [span.first for span in spans.values()]
    last = [span.last for span in spans.values()]
    with connection.cursor(binary=True) as cursor:
        cursor.execute(SPANS, (run_id, list(spans), keys, first, last))


def notify(connection: DriverConnection, run_id: UUID, revision: int, kinds: Iterable[str]) -> None:
    """Tell listeners, once the transaction commits."""
    with connection.cursor(binary=True) as cursor:
        for kind in sorted(kinds):
            payload = f'{{"run_id":"{run_id}","revision":{revision},"kind":"{kind}"}}'
            cursor.execute("SELECT pg_notify(%b, %b)", (CHANNEL, payload))
