"""What is answered from memory is what the database would have said."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from tests.serving import Api

from rlvitals_service import series_cache
from rlvitals_service.columns import Range, Steps, read_steps
from rlvitals_service.database import Database
from rlvitals_service.series_cache import SeriesCache


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Range, list[str]]]]:
    """Note each read of the database that a cache makes."""
    made: list[tuple[Range, list[str]]] = []

    def noted(connection: Any, wanted: Range, names: Sequence[str]) -> Steps:
        made.append((wanted, list(names)))
        return read_steps(connection, wanted, names)

    monkeypatch.setattr(series_cache, "read_steps", noted)
    return made


def ask(
    database: Database, cache: SeriesCache, run_id: str, names: Sequence[str], **limits: Any
) -> Steps:
    """Read through the cache as a request does."""
    wanted = Range(UUID(run_id), "train", **limits)
    with database.transaction() as connection:
        query = "SELECT revision FROM run WHERE id = %s"
        revision = connection.exec_driver_sql(query, (run_id,)).scalar_one()
        return cache.read(connection, wanted, names, revision)


def check(
    database: Database, cache: SeriesCache, run_id: str, names: Sequence[str], **limits: Any
) -> None:
    """Compare an answer of the cache with one of the database, bit by bit."""
    found = ask(database, cache, run_id, names, **limits).by_attempt()
    with database.transaction() as connection:
        wanted = Range(UUID(run_id), "train", **limits)
        truth = read_steps(connection, wanted, names).by_attempt()
    assert found.step.tolist() == truth.step.tolist()
    assert found.attempt.tolist() == truth.attempt.tolist()
    assert list(found.metrics) == list(truth.metrics)
    for name, column in truth.metrics.items():
        assert np.array_equal(found.metrics[name].present, column.present)
        assert np.array_equal(found.metrics[name].value, column.value, equal_nan=True)


def test_any_story_reads_as_from_the_database(api: Api, database: Database) -> None:
    """Appends, rewinds, resends, new attempts and new names in any order change nothing."""
    dice = random.Random(0)
    cache = SeriesCache(shortest_kept=1)
    run_id = api.new_run()
    values = [0.5, 1.5, "NaN", "Infinity", None]
    step = 0
    for _ in range(60):
        step = max(0, step + dice.choice([1, 1, 1, 2, -3]))
        scalars = {name: dice.choice(values) for name in dice.sample(["loss", "kl", "my/own"], 2)}
        attempt = dice.choice([1, 1, 2])
        api.send(run_id, {"step": step, "attempt": attempt, "scalars": scalars})
        if dice.random() < 0.5:
            names = dice.sample(["loss", "kl", "my/own", "nothing"], dice.randint(1, 3))
            check(database, cache, run_id, names)
            check(database, cache, run_id, names, from_step=3, to_step=9)
            check(database, cache, run_id, names, attempt=2)


def test_only_what_changed_is_read_again(
    api: Api, database: Database, reads: list[tuple[Range, list[str]]]
) -> None:
    """An unchanged run costs no read, a new step one of what is newer, a new name one column."""
    cache = SeriesCache(shortest_kept=1)
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "scalars": {"loss": 1.0, "kl": 2.0}})
    for _ in range(3):
        ask(database, cache, run_id, ["loss"])
    assert len(reads) == 1
    api.send(run_id, {"step": 2, "scalars": {"loss": 1.0}})
    ask(database, cache, run_id, ["loss"])
    assert reads[1][0].after_revision is not None
    ask(database, cache, run_id, ["loss", "kl"])
    assert reads[2][1] == ["kl"]
    ask(database, cache, run_id, ["kl"], from_step=2)
    assert len(reads) == 3


def test_a_range_of_a_run_nobody_keeps_is_read_alone(
    api: Api, database: Database, reads: list[tuple[Range, list[str]]]
) -> None:
    """A zoom does not load a whole run into memory."""
    cache = SeriesCache(shortest_kept=1)
    run_id = api.new_run()
    api.send(run_id, *({"step": s, "scalars": {"loss": 1.0}} for s in range(9)))
    assert ask(database, cache, run_id, ["loss"], from_step=3, to_step=4).step.tolist() == [3, 4]
    assert (reads[0][0].from_step, reads[0][0].to_step) == (3, 4)
    assert cache.nbytes == 0


def test_short_runs_are_not_kept(api: Api, database: Database) -> None:
    """Thousands of small runs leave nothing behind."""
    cache = SeriesCache()
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "scalars": {"loss": 1.0}})
    assert ask(database, cache, run_id, ["loss"]).step.tolist() == [1]
    assert cache.nbytes == 0
    assert not cache._kept


def test_memory_is_bounded_and_the_longest_unused_goes_first(api: Api, database: Database) -> None:
    """Over its limit the cache forgets the run nobody asked for the longest."""
    runs = [api.new_run() for _ in range(3)]
    for run_id in runs:
        api.send(run_id, *({"step": s, "scalars": {"loss": 1.0}} for s in range(100)))
    one = ask(database, SeriesCache(), runs[0], ["loss"]).nbytes
    cache = SeriesCache(most_bytes=2 * one, shortest_kept=1)
    for run_id in (runs[0], runs[1], runs[0], runs[2]):
        ask(database, cache, run_id, ["loss"])
    assert cache.nbytes <= 2 * one
    assert {key[0] for key in cache._kept} == {UUID(runs[0]), UUID(runs[2])}


def test_a_restored_database_is_read_anew(api: Api, database: Database) -> None:
    """When a run's revision went back, nothing that was remembered counts any more."""
    cache = SeriesCache(shortest_kept=1)
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "scalars": {"loss": 1.0}})
    api.send(run_id, {"step": 2, "scalars": {"loss": 2.0}})
    ask(database, cache, run_id, ["loss"])
    with database.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM step WHERE run_id = %s AND step = 2", (run_id,))
        back = "UPDATE run SET revision = revision - 1 WHERE id = %s"
        connection.exec_driver_sql(back, (run_id,))
    check(database, cache, run_id, ["loss"])


def test_many_readers_while_a_run_is_written(api: Api, database: Database) -> None:
    """Readers in several threads see only ever more steps, each with all its values."""
    cache = SeriesCache(shortest_kept=1)
    run_id = api.new_run()
    api.send(run_id, {"step": 0, "scalars": {"loss": 0.0}})
    done = threading.Event()
    wrong: list[str] = []

    def read() -> None:
        seen = 0
        while not done.is_set():
            rows = ask(database, cache, run_id, ["loss"]).newest()
            if len(rows.step) < seen or rows.metrics["loss"].value.tolist() != rows.step.tolist():
                wrong.append(f"{rows.step} {rows.metrics['loss'].value}")
            seen = len(rows.step)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for step in range(1, 40):
        api.send(run_id, {"step": step, "scalars": {"loss": float(step)}})
    done.set()
    for reader in readers:
        reader.join(30)
    assert wrong == []
    assert len(ask(database, cache, run_id, ["loss"]).step) == 40
