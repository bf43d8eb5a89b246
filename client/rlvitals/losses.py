"""Count what could not be kept, by reason, and say so once a reason."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

logger = logging.getLogger("rlvitals")


class Losses:
    """Hold how many things were dropped for which reason in this process."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._warned: set[str] = set()
        # Re-entrant: a signal handler may log while the same thread is in here.
        self._lock = threading.RLock()

    def add(self, reason: str, detail: object = "", count: int = 1) -> None:
        """Count a loss; warn when it is the first of its reason."""
        with self._lock:
            first = reason not in self._counts
            self._counts[reason] = self._counts.get(reason, 0) + count
        if first and detail:
            self.warn(f"loss:{reason}", f"{detail} (counted as {reason!r}, reported once)")

    def warn(self, topic: str, message: str) -> None:
        """Log a warning once a topic; never raise."""
        with self._lock:
            if topic in self._warned:
                return
            self._warned.add(topic)
        # A broken handler of the user's must not reach training.
        with contextlib.suppress(Exception):
            logger.warning("rlvitals: %s", message)

    def guard(self, reason: str, what: str) -> Guard:
        """Turn any error in a with-block into a counted loss."""
        return Guard(self, reason, what)

    def forget(self, topic: str) -> None:
        """Let the next warning of a topic through again."""
        with self._lock:
            self._warned.discard(topic)

    def snapshot(self) -> dict[str, int]:
        """Copy the counts."""
        with self._lock:
            return dict(self._counts)


class Guard:
    """End every error of a block here: this is the one place that swallows them."""

    __slots__ = ("_losses", "_reason", "_what")

    def __init__(self, losses: Losses, reason: str, what: str) -> None:
        self._losses, self._reason, self._what = losses, reason, what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        logger.debug("rlvitals: %s", self._what, exc_info=error)
        self._losses.add(self._reason, f"{self._what}: {describe(error)}")
        return True


def describe(error: BaseException) -> str:
    """Say what an error says, or its type when it says nothing or cannot."""
    with contextlib.suppress(Exception):
        return str(error) or type(error).__name__
    return type(error).__name__
