"""The row of a run while a batch is written: locked first, updated last."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import dict_row
from psycopg.types.numeric import Int2, Int8

from rlvitals.records import Directive
from rlvitals_service.database import CHANNEL
from rlvitals_service.directive_rows import on_the_wire
from rlvitals_service.parts import Part
from rlvitals_service.run_memory import RunMemory, Span
from rlvitals_service.step_rows import (
    UPSERT_PARTS,
    UPSERT_STEPS,
    DriverConnection,
    parts_document,
    steps_document,
)
from rlvitals_service.vitals import StepVitals

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
# Everything a batch writes besides packed groups, in one statement: a round trip and its parameters
# cost more than the rows of a small batch.
_WRITE = f"""
WITH parts AS ({UPSERT_PARTS}), steps AS ({UPSERT_STEPS}), spans AS (
    INSERT INTO attempt (run_id, attempt, key, started_at, first_step, last_step, sources)
    SELECT %b, number, '#' || number, clock_timestamp(), first, last, coalesce(sources, '{{}}')
    FROM json_to_recordset(%b::text::json)
        AS given (number smallint, first bigint, last bigint, sources jsonb)
    ON CONFLICT (run_id, attempt) DO UPDATE
    SET first_step = excluded.first_step, last_step = excluded.last_step,
        sources = CASE WHEN excluded.sources = '{{}}' THEN attempt.sources
                       ELSE excluded.sources || attempt.sources END
)
UPDATE run SET last_seen_at = CASE WHEN %b::boolean THEN now() ELSE last_seen_at END,
    state = %b, revision = %b, steps_revision = %b,
    last_step = %b, last_attempt = %b, verdict = %b,
    latest = coalesce(%b::text::jsonb, latest),
    latest_eval = coalesce(%b::text::jsonb, latest_eval),
    sparkline = coalesce(%b::text::jsonb, sparkline),
    lost = CASE WHEN %b::boolean THEN lost || coalesce(%b::text::jsonb, '{{}}')
                ELSE coalesce(%b::text::jsonb, '{{}}') || lost END,
    clock_skew_seconds = greatest(clock_skew_seconds, %b::float8)
WHERE id = %b
RETURNING (SELECT count(pg_notify(%b, notice)) FROM string_to_table(%b::text, ';') AS notice)
"""  # noqa: S608 - put together from the schema, not from input
# psycopg splits a statement of this length at its placeholders again each time, unless they have
# PostgreSQL's own form.
_NUMBERS = itertools.count(1)
WRITE = re.sub("%b", lambda _: f"${next(_NUMBERS)}", _WRITE).encode()


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

    alive: bool  # the newest attempt was heard from
    state: str
    revision: int
    steps_revision: int
    last_step: int | None
    last_attempt: int
    verdict: str
    spans: Mapping[int, Span]
    sources: Mapping[int, dict[str, None]]
    kinds: AbstractSet[str]
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


def write_run(
    connection: DriverConnection,
    run_id: UUID,
    update: RunUpdate,
    parts: Iterable[Part],
    steps: Sequence[StepVitals],
    memory: RunMemory,
) -> None:
    """Write parts, steps, spans and the run's row, and tell listeners once this commits."""
    spans = [
        {
            "number": number,
            "first": span.first,
            "last": span.last,
            "sources": update.sources.get(number),
        }
        for number, span in update.spans.items()
    ]
    summary: list[str | None] = [None, None, None]
    if steps:
        drawn = memory.sparkline.to_json()
        summary = [_text(part) for part in (memory.latest["train"], memory.latest["eval"], drawn)]
    lost = None if update.lost is None else _text(update.lost)
    parameters = (
        *(run_id, parts_document(parts)),
        *(run_id, steps_document(steps, update.revision)),
        *(run_id, _text(spans)),
        *(update.alive, update.state, Int8(update.revision), Int8(update.steps_revision)),
        None if update.last_step is None else Int8(update.last_step),
        *(Int2(update.last_attempt), update.verdict),
        *summary,
        *(update.alive, lost, lost),
        *(update.clock_skew, run_id, CHANNEL),
        ";".join(_notice(run_id, update.revision, kind) for kind in sorted(update.kinds)),
    )
    psycopg.RawCursor(connection).execute(WRITE, parameters)


def _text(value: object) -> str:
    return _json.encode(value).decode()


def _notice(run_id: UUID, revision: int, kind: str) -> str:
    return f'{{"run_id":"{run_id}","revision":{revision},"kind":"{kind}"}}'


def notify(connection: DriverConnection, run_id: UUID, revision: int, kinds: Iterable[str]) -> None:
    """Tell listeners, once the transaction commits."""
    for kind in sorted(kinds):
        notice = _notice(run_id, revision, kind)
        connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, notice))
