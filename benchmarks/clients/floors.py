"""The least that a hook can cost: they show how noisy the machine is, too."""

from __future__ import annotations

import json
import queue
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.contract import Finish, Log, nothing

if TYPE_CHECKING:
    from clients.contract import Open

SINK = Path("metrics.jsonl")


def queue_only() -> tuple[Log, Finish]:
    """Hand the mapping itself to a thread that writes JSON lines."""
    box: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def drain() -> None:
        with SINK.open("a") as sink:
            while (item := box.get()) is not None:
                sink.write(json.dumps(item) + "\n")

    thread = threading.Thread(target=drain, daemon=True)
    thread.start()

    def finish() -> None:
        box.put(None)
        thread.join()

    return (lambda step, row: box.put((step, row))), finish


def json_lines() -> tuple[Log, Finish]:
    """Write a JSON line into a buffered file on the calling thread."""
    sink = SINK.open("a", buffering=1 << 16)
    return (lambda step, row: sink.write(json.dumps({"step": step, **row}) + "\n")), sink.close


def copy_only() -> tuple[Log, Finish]:
    """Copy the array of rewards and keep it."""
    kept: deque[Any] = deque(maxlen=64)
    return (lambda step, rewards: kept.append((step, rewards.copy()))), nothing


def histogram() -> tuple[Log, Finish]:
    """Count the successes of each group, for rewards of 0 and 1 only."""
    import numpy as np

    def count(_: int, rewards: Any) -> None:
        np.bincount(rewards.sum(1).astype(np.int64), minlength=rewards.shape[1] + 1)

    return count, nothing


SCALARS: dict[str, Open] = {"floor: queue": queue_only, "floor: JSON lines": json_lines}
GROUPS: dict[str, Open] = {"floor: copy": copy_only, "floor: histogram": histogram}
