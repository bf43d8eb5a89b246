"""Keep frames on disk, or in bounded memory while the disk refuses them."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from rlvitals import frames
from rlvitals.frames import Frame

if TYPE_CHECKING:
    from rlvitals.losses import Losses
    from rlvitals.spool import Spool

MEMORY_FRAMES = 50_000
MEMORY_READ = 200


class Store:
    """Hold frames on disk, and in bounded memory for as long as the disk refuses them.

    Safe for one writing and one reading thread.
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._lock = threading.Lock()
        self._memory: deque[bytes] = deque()
        self._forgotten = 0  # frames that have left memory, sent or dropped
        self._damaged = 0  # unreadable stretches of the spool
        self.spool: Spool | None = None

    def use(self, spool: Spool) -> None:
        """Write to this spool from now on."""
        self.spool = spool

    def append(self, made: list[bytes]) -> None:
        """Keep frames; count the old ones that had to go for them."""
        if self.spool is None or self._memory or not self._append_to_disk(self.spool, made):
            with self._lock:
                self._append_to_memory(made)

    def _append_to_disk(self, spool: Spool, made: list[bytes]) -> bool:
        try:
            dropped = spool.append(made)
        except OSError as error:
            self._losses.warn("spool", f"the spool cannot grow ({error}); keeping data in memory")
            return False
        if dropped:
            self._losses.add("spool_full", "the spool is full; the oldest records went", dropped)
        return True

    def _append_to_memory(self, made: list[bytes]) -> None:
        self._memory.extend(made)
        while len(self._memory) > MEMORY_FRAMES:
            self._memory.popleft()
            self._forgotten += 1
            self._losses.add("memory_full", "no disk and no service; the oldest were dropped")

    def read(self, limit: int) -> list[Frame]:
        """Read what is to be sent next: the disk's frames first, then those in memory.

        A frame in memory has a negative end: minus its running number.
        """
        if self.spool is not None:
            found = self.spool.read(self.spool.acknowledged, limit)
            self._count_damage(self.spool.damaged)
            if found:
                return found
        with self._lock:
            data, first = b"".join(islice(self._memory, MEMORY_READ)), self._forgotten + 1
        parsed, _ = frames.parse(data, 0)
        return [Frame(f.kind, f.body, -(first + i)) for i, f in enumerate(parsed)]

    def _count_damage(self, damaged: int) -> None:
        if damaged > self._damaged:
            self._losses.add("damaged", "the spool has unreadable parts", damaged - self._damaged)
            self._damaged = damaged

    def acknowledge(self, frame: Frame) -> None:
        """Forget a frame and everything before it."""
        if frame.end >= 0:
            if self.spool is not None:
                with contextlib.suppress(OSError):
                    self.spool.acknowledge(frame.end)
            return
        with self._lock:
            while self._memory and self._forgotten < -frame.end:
                self._memory.popleft()
                self._forgotten += 1

    def close(self) -> None:
        """Let go of the spool and keep it on disk."""
        if self.spool is not None:
            self.spool.close()

    def delete(self) -> None:
        """Delete the spool; everything in it is with the service."""
        if self.spool is not None:
            self.spool.delete()

    @property
    def pending(self) -> bool:
        """Say whether anything is still to be sent."""
        return bool(self._memory) or (self.spool is not None and self.spool.pending_bytes > 0)
