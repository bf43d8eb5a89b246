"""Many processes write one run at once, and a failure in the middle leaves nothing behind."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest
from sqlalchemy import event
from tests.serving import Service

from rlvitals.metrics.tally import Tally
from rlvitals_service.run_memory import MOST_NAMES, RunMemory
from rlvitals_service.sparkline import Sparkline
from rlvitals_service.vitals import StepVitals

RANKS = 6
STEPS = 25


def test_ranks_that_write_together_lose_nothing(service: Service) -> None:
    """Each rank posts each step on its own; every part is there, and each step has them all."""
    run_id = service.api("admin").new_run()
    failures: list[Any] = []

    def rank(number: int) -> None:
        api = service.api("ingest")
        for step in range(STEPS):
            record = {
                "step": step,
                "source": str(number),
                "counts": {"2": [1, 1, 0]},
                "scalars": {"loss": float(number)},
            }
            answer = api.post(f"/runs/{run_id}/steps", {"records": [record]})
            if answer.status != 200 or answer.json["accepted"] != 1:
                failures.append(answer)

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = service.rows("SELECT * FROM step WHERE run_id = %s ORDER BY step", run_id)
    assert [row["step"] for row in rows] == list(range(STEPS))
    assert {row["groups"] for row in rows} == {2.0 * RANKS}
    assert {row["loss"] for row in rows} == {(RANKS - 1) / 2}
    parts = service.rows("SELECT count(*) AS n FROM step_part WHERE run_id = %s", run_id)
    assert parts == [{"n": RANKS * STEPS}]
    (run,) = service.rows("SELECT revision FROM run WHERE id = %s", run_id)
    assert run["revision"] == RANKS * STEPS


def test_a_failed_commit_leaves_nothing(service: Service) -> None:
    """When the database fails at commit, the answer is 503, nothing is stored, a retry works."""
    api = service.api("admin")
    run_id = api.new_run()
    api.send(run_id, {"step": 1, "counts": {"2": [4, 0, 0]}})
    engine = service.app.state.database.engine

    def cut(connection: Any) -> None:
        connection.connection.driver_connection.close()

    event.listen(engine, "commit", cut)
    try:
        record = {"step": 2, "counts": {"2": [0, 4, 0]}}
        failed = api.post(f"/runs/{run_id}/steps", {"records": [record]})
    finally:
        event.remove(engine, "commit", cut)
    assert failed.status == 503, failed.body
    assert failed.headers["retry-after"]
    count = "SELECT count(*) AS n FROM step WHERE run_id = %s"
    assert service.rows(count, run_id) == [{"n": 1}]
    assert api.send(run_id, record)["accepted"] == 1
    rows = service.rows("SELECT acr_pooled FROM step WHERE run_id = %s ORDER BY step", run_id)
    # The Judge that had seen the lost batch is not asked again: each step counts once.
    assert [row["acr_pooled"] for row in rows] == [1.0, 0.5]


def test_a_run_of_two_writers_goes_on_from_the_database(database_url: str) -> None:
    """Two services on one database take turns; each sees what the other stored."""
    from tests.serving import serving

    with serving(database_url) as one, serving(database_url) as two:
        apis = [one.api("admin"), two.api("admin")]
        run_id = apis[0].new_run()
        for step in range(20):
            counts = {"2": [1, 0, 0]} if step % 2 else {"2": [0, 1, 0]}
            apis[step % 2].send(run_id, {"step": step, "counts": counts})
        query = "SELECT acr_pooled, tally FROM step WHERE run_id = %s ORDER BY step"
        rows = one.rows(query, run_id)
    tallies = [Tally.from_dict(msgspec.msgpack.decode(row["tally"])) for row in rows]
    total = Tally()
    for row, tally in zip(rows, tallies, strict=True):
        total += tally
        assert row["acr_pooled"] == pytest.approx(total.collapsed / total.groups)


def test_a_run_with_too_many_names_keeps_its_summary_small() -> None:
    """Names beyond the bound are charted but not listed, and known ones stay up to date."""
    memory = RunMemory(0, {"train": {}, "eval": {}}, {}, Sparkline(), {})
    for step in range(3):
        own = {f"n{step}-{number}": 1.0 for number in range(MOST_NAMES // 2 + 1)}
        memory.note(StepVitals((1, "train", step), {"loss": float(step), **own}))
    latest = memory.latest["train"]
    assert len(latest) == MOST_NAMES
    assert latest["loss"] == 2.0
