"""Columns come out of PostgreSQL bit by bit as they went in."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_service.columns import Column, Steps, decode_floats, decode_integers

# The bit patterns that look like a NULL's length or a number's, in either half of a float8.
TRAPS = [
    struct.unpack(">d", bytes.fromhex(pattern))[0]
    for pattern in ("3fefffffffffffff", "bfefffffffffffff", "0000000800000008", "00000000ffffffff")
]
numbers = st.one_of(st.none(), st.sampled_from(TRAPS), st.floats(allow_nan=True))


@pytest.fixture(scope="module")
def session(postgres: str) -> Any:
    """Give a bare driver connection."""
    with psycopg.connect(postgres.replace("+psycopg", "")) as connection:
        yield connection


def as_sent(session: Any, values: list[float | None], kind: str) -> bytes | None:
    """Let PostgreSQL gather values into an array and send it in binary."""
    with session.cursor(binary=True) as cursor:
        query = f"SELECT array_agg(v ORDER BY n) FROM unnest(%s::{kind}[]) WITH ORDINALITY t(v, n)"
        cursor.execute(query, [values])
        return cursor.pgresult.get_value(0, 0)


def test_floats_survive_the_way_through_postgresql(session: Any) -> None:
    """NULL, NaN, both infinities, -0.0, denormals and awkward bit patterns keep their class."""
    values = [None, 1.5, float("nan"), None, float("inf"), -0.0, 5e-324, *TRAPS, None, -1e308, None]
    present, decoded = decode_floats(as_sent(session, values, "float8") or b"")
    assert present.tolist() == [value is not None for value in values]
    sent = np.array([value for value in values if value is not None])
    assert decoded[present].tobytes() == sent.tobytes()


def test_integers_of_both_widths(session: Any) -> None:
    """Steps are 8 bytes wide and attempts 2."""
    steps = [0, 1, 2**53 - 1]
    assert decode_integers(as_sent(session, steps, "bigint"), 8).tolist() == steps
    assert decode_integers(as_sent(session, [1, 32767], "smallint"), 2).tolist() == [1, 32767]
    assert decode_integers(None, 8).tolist() == []


@given(st.lists(numbers, min_size=1, max_size=60))
def test_floats_decode_for_any_values(values: list[float | None]) -> None:
    """Whatever the numbers, the decoder undoes the encoding of the protocol's description."""
    elements = [
        struct.pack(">i", -1) if value is None else struct.pack(">id", 8, value) for value in values
    ]
    header = struct.pack(">iiiii", 1, None in values, 701, len(values), 1)
    present, decoded = decode_floats(header + b"".join(elements))
    assert present.tolist() == [value is not None for value in values]
    sent = np.array([value for value in values if value is not None])
    assert decoded[present].tobytes() == sent.tobytes()


def steps_of(*rows: tuple[int, int, float]) -> Steps:
    """Build steps from (step, attempt, value)."""
    step, attempt, value = (np.array(column) for column in zip(*rows, strict=True))
    metric = Column(value.astype(float), np.ones(len(rows), dtype=bool))
    return Steps(step, attempt, np.full(len(rows), np.nan), {"acr": metric})


def test_newest_attempt_wins_step_by_step() -> None:
    """A resumed run overwrites the steps it repeats, and the tail it has not reached stays."""
    rows = steps_of((7, 1, 0.7), (5, 2, 5.2), (5, 1, 0.5), (6, 1, 0.6), (6, 2, 6.2)).newest()
    assert rows.step.tolist() == [5, 6, 7]
    assert rows.attempt.tolist() == [2, 2, 1]
    assert rows.metrics["acr"].value.tolist() == [5.2, 6.2, 0.7]


def test_orders() -> None:
    """Charts want one curve an attempt, files one block a step."""
    rows = steps_of((6, 1, 0.0), (5, 2, 1.0), (5, 1, 2.0))
    assert rows.by_attempt().metrics["acr"].value.tolist() == [2.0, 0.0, 1.0]
    assert rows.by_step().metrics["acr"].value.tolist() == [2.0, 1.0, 0.0]
