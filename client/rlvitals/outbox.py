"""Take items from the training thread and put them on disk from a thread of our own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from rlvitals import frames
from rlvitals.frames import pack
from rlvitals.items import Finish, Item
from rlvitals.records import Acknowledgement, AlertRecord, StepRecord
from rlvitals.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlvitals.losses import Losses
    from rlvitals.reduction import Reducer
    from rlvitals.spool import Spool

POLL_SECONDS = 0.004
AWAKE_SECONDS = 0.1
DOZE_SECONDS = 1.0
DRAIN_ITEMS = 512
STUCK_SECONDS = 2.0
GIVE_WAY_SECONDS = 0.0001
NEWS: dict[type[Any], bytes] = {
    Acknowledgement: frames.ACKNOWLEDGEMENT,
    AlertRecord: frames.ALERT,
    Finish: frames.FINISH,
}


class Outbox:
    """Queue items at the cost of an append; a daemon thread reduces and spools them.

    While items keep coming the thread looks every few milliseconds, so that queueing needs no
    wake-up call; it dozes off after a tenth of a second of silence.
    """

    def __init__(
        self,
        make_reducer: Callable[[], Reducer],
        open_spool: Callable[[], Spool],
        losses: Losses,
        capacity: int,
    ) -> None:
        self._queue: deque[Item] = deque()
        self._capacity, self._crowded = capacity, capacity // 2
        self._moved = time.monotonic()  # when the writer last got something done
        self._make_reducer, self._open_spool, self._losses = make_reducer, open_spool, losses
        self._doorbell = threading.Lock()
        self._doorbell.acquire()
        self._dozing = False
        self._stopping = self._left = False
        self._lost_written: dict[str, int] = {}
        self.store = Store(losses)
        self.on_write: Callable[[], None] = lambda: None
        self.finished = threading.Event()
        self._encoder = msgspec.msgpack.Encoder()
        self._thread = threading.Thread(target=self._work, name="rlvitals-outbox", daemon=True)

    def start(self) -> None:
        """Start the writing thread."""
        self._thread.start()

    def put(self, item: Item) -> None:
        """Queue an item; the oldest goes when the queue is full."""
        if len(self._queue) >= self._crowded:
            self._make_room()
        self._queue.append(item)
        if self._dozing:
            self._ring()

    def _make_room(self) -> None:
        """Let a writer that keeps moving catch up for a moment; do not wait for a stuck one.

        Only a loop that logs thousands of times a second without end gets here, which is no
        training: a tenth of a millisecond a call is what it then runs at, and nothing is lost.
        """
        if len(self._queue) >= self._capacity:
            with contextlib.suppress(IndexError):
                self._queue.popleft()
                self._losses.add("queue_full", "the disk does not keep up; the oldest were dropped")
        elif time.monotonic() - self._moved < STUCK_SECONDS:
            time.sleep(GIVE_WAY_SECONDS)

    def _ring(self) -> None:
        self._dozing = False
        with contextlib.suppress(RuntimeError):  # somebody else rang first
            self._doorbell.release()

    def leave(self, *, keep: bool) -> None:
        """Let go of the spool, or delete it; a writer that is behind lets go when it is done."""
        self._left = True
        if not keep:
            self.store.delete()
        elif self.finished.is_set():
            self.store.close()

    def _work(self) -> None:
        with self._losses.guard("no_spool", "nothing can be spooled, data stays in memory"):
            self.store.use(self._open_spool())
        # Loading what reduces takes a moment, which init must not take from the trainer.
        with self._losses.guard("internal", "nothing can be recorded"):
            self._reducer = self._make_reducer()
        while not self._stopping:
            with self._losses.guard("internal", "writing failed"):
                self._round()
        if self._left:
            self.store.close()

    def _round(self) -> None:
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < AWAKE_SECONDS:
            if self._drain():
                quiet_since = time.monotonic()
                continue
            if self._stopping:
                return
            time.sleep(POLL_SECONDS)
        self._dozing = True
        if not self._queue:
            self._doorbell.acquire(timeout=DOZE_SECONDS)
        self._dozing = False

    def _drain(self) -> bool:
        items: list[Item] = []
        while self._queue and len(items) < DRAIN_ITEMS:
            items.append(self._queue.popleft())
        if not items:
            return False
        try:
            self._write(items)
        finally:
            if any(isinstance(item, Finish) for item in items):
                self._stopping = True
                self.finished.set()
        return True

    def _write(self, items: list[Item]) -> None:
        made = [*self._records(items), *self._news(items)]
        lost = self._losses.snapshot()
        if lost != self._lost_written:
            self._lost_written = lost
            made.insert(0, pack(frames.LOST, self._encoder.encode(lost)))
        self.store.append(made)
        self._moved = time.monotonic()
        self.on_write()

    def _records(self, items: list[Item]) -> Iterator[bytes]:
        made: list[StepRecord] = []
        with self._losses.guard("internal", "records were dropped"):
            made = self._reducer.records(gently(items))
        for record in made:
            with self._losses.guard("unwritable", f"a record of step {record.step} was dropped"):
                yield pack(frames.RECORD, self._encoder.encode(record))

    def _news(self, items: list[Item]) -> Iterator[bytes]:
        for item in items:
            kind = NEWS.get(type(item))
            if kind is not None:
                yield pack(kind, self._encoder.encode(item))


def gently(items: list[Item]) -> Iterator[Item]:
    """Pass items on, giving way after each: a trainer that wants to run must not wait for us."""
    for item in items:
        yield item
        time.sleep(0)
