"""Send points to a server through keep-alive connections, and time what it does."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

from measuring.processes import tree_cpu

from servers.server import KEYS, Request, Row, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring.tables import Figures

SETTLE_SECONDS = 2.0
SETTLED_SHARE = 0.05  # of one core
LONGEST_SETTLING = 180.0
BATCH_STEPS = 33  # x 30 scalars: MLflow takes at most 1,000 metrics a request


def batches(mode: str, points: int) -> Iterator[list[Row]]:
    """Make the rows of each request: 33 steps, one step, or one scalar."""
    steps = range(max(1, points // len(KEYS)))
    if mode == "batch":
        for first in range(0, len(steps), BATCH_STEPS):
            yield [_row(step, KEYS) for step in steps[first : first + BATCH_STEPS]]
    elif mode == "step":
        yield from ([_row(step, KEYS)] for step in steps)
    else:
        yield from ([_row(step, [key])] for step in steps for key in KEYS)


def _row(step: int, keys: list[str]) -> Row:
    return step, {key: random.random() for key in keys}


def warm_up(server: Server) -> None:
    """Store a few points, and wait until the server does nothing any more."""
    Load(server).send([list(server.requests(server.new_run(), batches("batch", 990)))] * 4)
    pids = [server.process.pid] if server.process else []
    deadline = time.monotonic() + LONGEST_SETTLING
    used = SETTLE_SECONDS
    while used > SETTLED_SHARE * SETTLE_SECONDS and time.monotonic() < deadline:
        before = tree_cpu(pids)
        time.sleep(SETTLE_SECONDS)
        used = tree_cpu(pids) - before


def measure(
    server: Server, mode: str, clients: int, points: int, database_pids: list[int]
) -> Figures:
    """Send the points through so many connections at once; give rates, latencies and CPU."""
    plans = [
        list(server.requests(server.new_run(), batches(mode, points // clients)))
        for _ in range(clients)
    ]
    load = Load(server)
    pids = [*database_pids, *([server.process.pid] if server.process else [])]
    cpu, begin = tree_cpu(pids), time.perf_counter()
    load.send(plans)
    wall, cpu = time.perf_counter() - begin, tree_cpu(pids) - cpu
    stored = sum(points for plan in plans for _, _, points in plan)
    taken = sorted(load.taken)
    return {
        "rate": stored / wall,
        "p50": taken[len(taken) // 2],
        "p99": taken[int(len(taken) * 0.99)],
        "cpu": cpu / stored * 1e6,
    }


class Load:
    """Send plans, each on a thread and connection of its own; milliseconds gather in `taken`."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.taken: list[float] = []
        self.errors: list[Exception] = []

    def send(self, plans: list[list[Request]]) -> None:
        """Send all; raise what the first thread to fail raised."""
        threads = [threading.Thread(target=self._work, args=(plan,)) for plan in plans]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _work(self, plan: list[Request]) -> None:
        connection = self.server.connect()
        try:
            for path, body, _ in plan:
                begin = time.perf_counter()
                self.server.call(connection, path, body)
                self.taken.append((time.perf_counter() - begin) * 1000)
        except Exception as error:  # noqa: BLE001 - raised again where it is seen
            self.errors.append(error)
