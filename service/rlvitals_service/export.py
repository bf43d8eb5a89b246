"""Write a run's whole history to a file: every row, nothing thinned."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from rlvitals_service.attempts import read_order
from rlvitals_service.columns import Range, Steps, read_steps
from rlvitals_service.database import Database

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["csv", "parquet"]
MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
CHUNK_STEPS = 20_000
BLOCK_BYTES = 256 * 1024
FIXED = ("step", "attempt", "phase", "time")


def export(
    database: Database, wanted: Range, names: Sequence[str], kind: Format, *, newest: bool
) -> IO[bytes]:
    """Write the rows to a temporary file, ascending by step, and give it rewound.

    The file is whole before its first byte is sent: a slow reader holds no connection, and a
    failure is an error instead of a short file. Memory holds one chunk of steps at a time.
    """
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    tables = (_table(rows, wanted.phase) for rows in _chunks(database, wanted, names, newest))
    if kind == "csv":
        _write_csv(file, tables)
    else:
        _write_parquet(file, tables)
    file.seek(0)
    return file


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Give the file's bytes, and close it at the end or when the reader goes away."""
    with file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _chunks(
    database: Database, wanted: Range, names: Sequence[str], newest: bool
) -> Iterator[Steps]:
    """Read chunk after chunk from one snapshot; at least one, if an empty one."""
    with database.transaction() as connection:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        order = read_order(connection, wanted.run_id)
        steps = np.unique(read_steps(connection, wanted, []).step)
        for start in range(0, max(len(steps), 1), CHUNK_STEPS):
            chunk = steps[start : start + CHUNK_STEPS].tolist() or [0]
            part = replace(wanted, from_step=chunk[0], to_step=chunk[-1])
            rows = read_steps(connection, part, names, time=True)
            yield rows.newest(order) if newest else rows.by_step()


def _table(rows: Steps, phase: str) -> pa.Table:
    """Build the Arrow table; a metric named like a fixed column gets a suffix."""
    import pyarrow as pa

    unknown_time = np.isnan(rows.time)
    columns: dict[str, Any] = {
        "step": pa.array(rows.step),
        "attempt": pa.array(rows.attempt.astype(np.int16)),
        "phase": pa.repeat(pa.scalar(phase), len(rows.step)),
        "time": pa.array(rows.time, mask=unknown_time),
    }
    for name, column in rows.metrics.items():
        label = f"{name} (metric)" if name in FIXED else name
        columns[label] = pa.array(column.value, mask=~column.present)
    return pa.table(columns)


def _write_csv(file: IO[bytes], tables: Iterator[pa.Table]) -> None:
    """Write CSV: nothing where a step lacks a metric; nan, inf and -inf as such."""
    from pyarrow import csv

    first = next(tables)
    with csv.CSVWriter(file, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _write_parquet(file: IO[bytes], tables: Iterator[pa.Table]) -> None:
    """Write Parquet with zstd: null where a step lacks a metric; NaN and infinities as such."""
    from pyarrow import parquet

    first = next(tables)
    with parquet.ParquetWriter(file, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
