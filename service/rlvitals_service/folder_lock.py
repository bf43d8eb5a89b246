"""One process at a time in a folder: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO


class Held(Exception):
    """Another process has the folder; ``owner`` is its process id, "?" when it left none."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"held by process {owner}")
        self.owner = owner


def take(path: Path) -> IO[str]:
    """Take a lock file, its folder made if need be, and note our process id in it.

    Closing the file gives the lock back. Raises Held, and OSError for a folder that is no use.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = path.open("a+", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with lock:
            lock.seek(0)
            raise Held(lock.read().strip() or "?") from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock
