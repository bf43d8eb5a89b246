"""Log with one client and print one ``RESULT`` line of JSON; times wrap the call alone.

``python -m clients NAME --call scalars|groups [--shape 64x8] [--n N] [--pace-ms MS]``
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from typing import TYPE_CHECKING, Any

from measuring.processes import peak_memory_mb, tree_cpu

from clients import floors, ours, peers

if TYPE_CHECKING:
    from collections.abc import Callable

    from clients.contract import Log, Open

CLIENTS: dict[str, dict[str, Open]] = {
    "scalars": floors.SCALARS | ours.SCALARS | peers.SCALARS,
    "groups": floors.GROUPS | ours.GROUPS | peers.GROUPS,
}
NAMES = [
    f"{family}/{kind}"
    for family in ("train", "reward", "kl", "grad", "rollout")
    for kind in ("mean", "std", "min", "max", "p50", "count")
]
WARM = 50  # calls before the clock runs


def payloads(call: str, shape: str) -> Callable[[int], Any]:
    """Give what makes the argument of a call from its step; the same series for every client."""
    if call == "scalars":
        chance = random.Random(0)
        return lambda step: {name: chance.random() * (1 + step % 7) for name in NAMES}
    import numpy as np

    n_groups, group_size = (int(part) for part in shape.split("x"))
    generator = np.random.default_rng(0)
    rates = generator.random((n_groups, 1))
    return lambda _: (generator.random((n_groups, group_size)) < rates).astype(np.float32)


def call_times(log: Log, make: Callable[[int], Any], steps: range, pause: float) -> list[float]:
    """Log so many steps; give what each call took, in microseconds, ascending."""
    taken = []
    for step in steps:
        payload = make(step)
        begin = time.perf_counter_ns()
        log(step, payload)
        taken.append((time.perf_counter_ns() - begin) / 1000)
        if pause:
            time.sleep(pause)
    return sorted(taken)


def measure(args: argparse.Namespace) -> dict[str, float]:
    """Open the client, log, finish; CPU is that of all its processes until it has finished."""
    make = payloads(args.call, args.shape)
    begin = time.perf_counter()
    log, finish = CLIENTS[args.call][args.client]()
    init_seconds = time.perf_counter() - begin
    call_times(log, make, range(WARM), 0)
    cpu = tree_cpu([os.getpid()])
    taken = call_times(log, make, range(WARM, WARM + args.n), args.pace_ms / 1000)
    begin = time.perf_counter()
    finish()
    return {
        "p50": taken[len(taken) // 2],
        "p99": taken[int(len(taken) * 0.99)],
        "max": taken[-1],
        "init_seconds": init_seconds,
        "finish_seconds": time.perf_counter() - begin,
        "cpu_ms": (tree_cpu([os.getpid()]) - cpu) / args.n * 1000,
        "rss_mb": peak_memory_mb(),
    }


def main() -> None:
    """Measure the client that the command line names, in an empty folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client")
    parser.add_argument("--call", choices=list(CLIENTS), default="scalars")
    parser.add_argument("--shape", default="64x8", help="groups x group size")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--pace-ms", type=float, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hook-cost-", ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        print("RESULT " + json.dumps(measure(args)), flush=True)


if __name__ == "__main__":
    main()
