"""Step data in and out of PostgreSQL, past SQLAlchemy: this is the hot path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import dict_row
from sqlalchemy import Table
from sqlalchemy.dialects.postgresql import dialect

from rlvitals.metrics.groups import Groups
from rlvitals.records import NONFINITE
from rlvitals_service import packing
from rlvitals_service.parts import (
    COUNTERS,
    Part,
    PartKey,
    StepKey,
    pack_scalars,
    pack_tally,
    unpack_scalars,
    unpack_tally,
)
from rlvitals_service.tables import PART_KEY, STEP_KEY, STEP_METRICS, step, step_part
from rlvitals_service.vitals import StepVitals

DriverConnection = psycopg.Connection[Any]

POOLED = ("acr_pooled", "acr_pooled_low", "acr_pooled_high")
COLUMNS = frozenset(STEP_METRICS)
POSTGRESQL = dialect()  # type: ignore[no-untyped-call]
PART_FLAGS = ("identified", *COUNTERS, "carried", "applied", "client_time")

WRITE_GROUPS = """
INSERT INTO step_groups (run_id, codec, attempt, phase, step, generation, source, stage, payload)
SELECT %b, %b::smallint, given.* FROM unnest(
    %b::smallint[], %b::text[], %b::bigint[], %b::integer[], %b::text[], %b::text[], %b::bytea[]
) AS given
ON CONFLICT (run_id, attempt, phase, step, generation, source, stage)
DO UPDATE SET codec = excluded.codec, payload = excluded.payload
"""

_json = msgspec.json.Encoder()


def read_parts(
    connection: DriverConnection, run_id: UUID, keys: Iterable[StepKey]
) -> dict[PartKey, Part]:
    """Read every stored part of the given steps."""
    found: dict[PartKey, Part] = {}
    with connection.cursor(binary=True, row_factory=dict_row) as cursor:
        for (attempt, phase), steps in _by_phase(keys).items():
            cursor.execute(
                "SELECT * FROM step_part WHERE run_id = %b AND attempt = %b AND phase = %b "
                "AND step = ANY(%b::bigint[])",
                (run_id, attempt, phase, steps),
            )
            for row in cursor:
                part = _part(row)
                found[part.key] = part
    return found


def read_rates(
    connection: DriverConnection, run_id: UUID, keys: Iterable[StepKey]
) -> dict[StepKey, float]:
    """Read the ACR of the given steps, where they are stored and have one."""
    found: dict[StepKey, float] = {}
    with connection.cursor(binary=True) as cursor:
        for (attempt, phase), steps in _by_phase(keys).items():
            cursor.execute(
                "SELECT step, acr FROM step WHERE run_id = %b AND attempt = %b AND phase = %b "
                "AND step = ANY(%b::bigint[]) AND acr IS NOT NULL",
                (run_id, attempt, phase, steps),
            )
            found |= {(attempt, phase, step): rate for step, rate in cursor}
    return found


def _by_phase(keys: Iterable[StepKey]) -> dict[tuple[int, str], list[int]]:
    grouped: dict[tuple[int, str], list[int]] = {}
    for attempt, phase, number in keys:
        grouped.setdefault((attempt, phase), []).append(number)
    return grouped


def _part(row: Mapping[str, Any]) -> Part:
    return Part(
        key=tuple(row[name] for name in PART_KEY[1:]),
        scalars=unpack_scalars(row["scalars"]),
        tally=unpack_tally(row["tally"]),
        groups_hash=row["groups_hash"],
        identified=row["identified"],
        **{name: row[name] for name in COUNTERS},
        carried=row["carried"],
        applied=row["applied"],
        client_time=row["client_time"],
    )


def read_groups(connection: DriverConnection, run_id: UUID, part: Part) -> Groups:
    """Read the groups of one part; LookupError when there are none."""
    with connection.cursor(binary=True) as cursor:
        cursor.execute(
            "SELECT codec, payload FROM step_groups WHERE run_id = %b AND attempt = %b AND "
            "phase = %b AND step = %b AND generation = %b AND source = %b AND stage = %b",
            (run_id, *part.key),
        )
        row = cursor.fetchone()
    if row is None:
        msg = f"no groups stored for {part.key}"
        raise LookupError(msg)
    return packing.unpack(*row)


def write_groups(connection: DriverConnection, run_id: UUID, parts: Sequence[Part]) -> None:
    """Insert or replace the packed groups of parts that carry new ones."""
    fresh = [part for part in parts if part.packed is not None]
    if not fresh:
        return
    columns = [list(column) for column in zip(*(part.key for part in fresh), strict=True)]
    payloads = [packing.compress(part.packed or b"") for part in fresh]
    connection.execute(WRITE_GROUPS, (run_id, packing.CODEC, *columns, payloads), binary=True)


def delete_groups(connection: DriverConnection, run_id: UUID, key: PartKey) -> None:
    """Delete the groups of a part that was replaced by counts."""
    connection.execute(
        "DELETE FROM step_groups WHERE run_id = %s AND attempt = %s AND phase = %s AND step = %s "
        "AND generation = %s AND source = %s AND stage = %s",
        (run_id, *key),
    )


def parts_document(parts: Iterable[Part]) -> str:
    """Write parts as the JSON document that `UPSERT_PARTS` reads."""
    return _json.encode([_part_row(part) for part in parts]).decode()


def _part_row(part: Part) -> dict[str, Any]:
    row: dict[str, Any] = dict(zip(PART_KEY[1:], part.key, strict=True))
    row["scalars"] = _hex(pack_scalars(part.scalars))
    row["tally"] = _hex(pack_tally(part.tally))
    row["groups_hash"] = _hex(part.groups_hash)
    for name in PART_FLAGS:
        row[name] = getattr(part, name)
    return row


def steps_document(steps: Iterable[StepVitals], revision: int) -> str:
    """Write derived steps as the JSON document that `UPSERT_STEPS` reads."""
    return _json.encode([_step_row(step, revision) for step in steps]).decode()


def _step_row(step: StepVitals, revision: int) -> dict[str, Any]:
    row: dict[str, Any] = {"attempt": step.attempt, "phase": step.phase, "step": step.step}
    extra: dict[str, Any] = {}
    for name, value in step.encoded().items():
        (row if name in COLUMNS else extra)[name] = value
    row["extra"] = extra or None
    row["tally"] = _hex(pack_tally(step.tally))
    row["tally_trained"] = _hex(pack_tally(step.tally_trained))
    row["applied"] = step.applied
    row["revision"] = revision
    row["client_time"] = step.client_time
    return row


def _hex(payload: bytes | None) -> str | None:
    """Write bytes as PostgreSQL reads them from text."""
    return None if payload is None else "\\x" + payload.hex()


def read_newest_steps(
    connection: DriverConnection, run_id: UUID, attempt: int, limit: int
) -> list[StepVitals]:
    """Read the newest train steps of an attempt, ascending."""
    with connection.cursor(binary=True, row_factory=dict_row) as cursor:
        cursor.execute(
            "SELECT * FROM step WHERE run_id = %b AND attempt = %b AND phase = 'train' "
            "ORDER BY step DESC LIMIT %b",
            (run_id, attempt, limit),
        )
        return [_step(row) for row in cursor.fetchall()][::-1]


def _step(row: Mapping[str, Any]) -> StepVitals:
    values = {name: row[name] for name in STEP_METRICS if row[name] is not None}
    for name, value in (row["extra"] or {}).items():
        values[name] = NONFINITE[value] if isinstance(value, str) else float(value)
    return StepVitals(
        key=(row["attempt"], row["phase"], row["step"]),
        values=values,
        tally=unpack_tally(row["tally"]),
        tally_trained=unpack_tally(row["tally_trained"]),
        applied=row["applied"],
        client_time=row["client_time"],
    )


def _upsert(table: Table, key: Sequence[str]) -> str:
    """Write the upsert of a table from one JSON document, in which absent is NULL.

    A single parameter whatever the number of rows and columns: with one array a column, half the
    time of a small batch went into packing parameters.
    """
    columns = [column for column in table.columns if column.name not in {"run_id", "received_at"}]
    names = ", ".join(column.name for column in columns)
    kinds = ", ".join(f"{column.name} {column.type.compile(POSTGRESQL)}" for column in columns)
    updates = [_update(table.name, column.name) for column in columns if column.name not in key]
    return (
        f"INSERT INTO {table.name} (run_id, {names}) "  # noqa: S608 - names of the schema
        f"SELECT %b, {names} FROM json_to_recordset(%b::text::json) AS given ({kinds}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE "
        f"SET {', '.join(updates)}, received_at = now()"
    )


def _update(table: str, name: str) -> str:
    # A step that is derived again behind the newest keeps the pooled figures it was given then.
    if name in POOLED:
        return f"{name} = coalesce(excluded.{name}, {table}.{name})"
    return f"{name} = excluded.{name}"


UPSERT_PARTS = _upsert(step_part, PART_KEY)
UPSERT_STEPS = _upsert(step, STEP_KEY)
