"""Step data in and out of PostgreSQL, past SQLAlchemy: this is the hot path.

Writes are one statement a table whatever the number of rows: each column travels as one array.
A column without any value travels as NULL, which `unnest` pads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from rlvitals.metrics.groups import Groups
from rlvitals.records import NONFINITE, encode_scalar
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
from rlvitals_service.tables import PART_KEY, STEP_KEY, STEP_METRICS
from rlvitals_service.vitals import StepVitals

DriverConnection = psycopg.Connection[Any]
Values = tuple[str, str, list[Any] | None]  # column, its type, one entry a row

POOLED = ("acr_pooled", "acr_pooled_low", "acr_pooled_high")
KEY_TYPES = {
    "attempt": "smallint",
    "phase": "text",
    "step": "bigint",
    "generation": "integer",
    "source": "text",
    "stage": "text",
}
COLUMNS = frozenset(STEP_METRICS)

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


def _by_phase(keys: Iterable[StepKey]) -> dict[tuple[int, str], list[int]]:
    grouped: dict[tuple[int, str], list[int]] = {}
    for attempt, phase, step in keys:
        grouped.setdefault((attempt, phase), []).append(step)
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


def write_parts(connection: DriverConnection, run_id: UUID, parts: Sequence[Part]) -> None:
    """Insert or replace parts, and the packed groups of those that carry new ones."""
    values: list[Values] = [
        *_key_arrays([part.key for part in parts], PART_KEY),
        ("scalars", "bytea", _filled([pack_scalars(part.scalars) for part in parts])),
        ("tally", "bytea", _filled([pack_tally(part.tally) for part in parts])),
        ("groups_hash", "bytea", _filled([part.groups_hash for part in parts])),
        ("identified", "boolean", [part.identified for part in parts]),
        *((name, "bigint", [getattr(part, name) for part in parts]) for name in COUNTERS),
        ("carried", "boolean", [part.carried for part in parts]),
        ("applied", "integer", _filled([part.applied for part in parts])),
        ("client_time", "float8", _filled([part.client_time for part in parts])),
    ]
    _upsert(connection, "step_part", run_id, values)
    _write_groups(connection, run_id, [part for part in parts if part.packed is not None])


def _write_groups(connection: DriverConnection, run_id: UUID, parts: Sequence[Part]) -> None:
    if parts:
        values: list[Values] = [
            *_key_arrays([part.key for part in parts], PART_KEY),
            ("codec", "smallint", [packing.CODEC] * len(parts)),
            ("payload", "bytea", [packing.compress(part.packed or b"") for part in parts]),
        ]
        _upsert(connection, "step_groups", run_id, values)


def delete_groups(connection: DriverConnection, run_id: UUID, key: PartKey) -> None:
    """Delete the groups of a part that was replaced by counts."""
    connection.execute(
        "DELETE FROM step_groups WHERE run_id = %s AND attempt = %s AND phase = %s AND step = %s "
        "AND generation = %s AND source = %s AND stage = %s",
        (run_id, *key),
    )


def write_steps(
    connection: DriverConnection, run_id: UUID, steps: Sequence[StepVitals], revision: int
) -> None:
    """Insert or replace the derived rows of steps."""
    rows = [step.values for step in steps]
    values: list[Values] = [
        *_key_arrays([step.key for step in steps], STEP_KEY),
        *((name, "float8", _filled([row.get(name) for row in rows])) for name in STEP_METRICS),
        ("extra", "jsonb", _filled([_extra(row) for row in rows])),
        ("tally", "bytea", _filled([pack_tally(step.tally) for step in steps])),
        ("tally_trained", "bytea", _filled([pack_tally(step.tally_trained) for step in steps])),
        ("applied", "integer", _filled([step.applied for step in steps])),
        ("revision", "bigint", [revision] * len(steps)),
        ("client_time", "float8", _filled([step.client_time for step in steps])),
    ]
    _upsert(connection, "step", run_id, values)


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


def _extra(values: Mapping[str, float]) -> str | None:
    """Write the metrics without a column as JSON, a non-finite number as its name."""
    others = {name: encode_scalar(values[name]) for name in values.keys() - COLUMNS}
    return _json.encode(others).decode() if others else None


def _key_arrays(keys: Sequence[tuple[Any, ...]], names: Sequence[str]) -> list[Values]:
    columns = zip(*keys, strict=True)
    return [
        (name, KEY_TYPES[name], list(column))
        for name, column in zip(names[1:], columns, strict=True)
    ]


def _filled(column: list[Any]) -> list[Any] | None:
    """Give None for a column without any value."""
    return None if column.count(None) == len(column) else column


def _upsert(
    connection: DriverConnection, table: str, run_id: UUID, values: Sequence[Values]
) -> None:
    statement = _statement(table, tuple((name, kind) for name, kind, _ in values))
    with connection.cursor(binary=True) as cursor:
        cursor.execute(statement, (run_id, *(column for _, _, column in values)))


@cache
def _statement(table: str, columns: tuple[tuple[str, str], ...]) -> sql.Composed:
    """Build the upsert of a table from one array a column."""
    key = PART_KEY if table != "step" else STEP_KEY
    names = [name for name, _ in columns]
    updates: list[sql.Composable] = [_update(table, name) for name in names if name not in key]
    if table != "step_groups":
        updates.append(sql.SQL("received_at = now()"))
    return sql.SQL(
        "INSERT INTO {table} (run_id, {names}) SELECT %b, given.* FROM unnest({arrays}) AS given "
        "ON CONFLICT ({key}) DO UPDATE SET {updates}"
    ).format(
        table=sql.Identifier(table),
        names=_listed(map(sql.Identifier, names)),
        arrays=_listed(map(_array, (kind for _, kind in columns))),
        key=_listed(map(sql.Identifier, key)),
        updates=_listed(updates),
    )


def _array(kind: str) -> sql.SQL:
    # jsonb has no binary form worth building: it travels as text.
    casts = {"jsonb": "%b::text[]::jsonb[]"}
    return sql.SQL(casts.get(kind, f"%b::{kind}[]"))


def _update(table: str, name: str) -> sql.Composed:
    # A step that is derived again behind the newest keeps the pooled figures it was given then.
    template = "{0} = coalesce(excluded.{0}, {1}.{0})" if name in POOLED else "{0} = excluded.{0}"
    return sql.SQL(template).format(sql.Identifier(name), sql.Identifier(table))


def _listed(items: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(items)
