"""Count what could not be kept, by reason, and say so once a reason."""

from __future__ import annotations

import logging
import threading

logger = logging.getLogger("rlvitals")


class Losses:
    """Hold how many things were dropped for which reason in this process."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def add(self, reason: str, detail: object = "", count: int = 1) -> None:
        """Count a loss; warn when it is the first of its reason."""
        with self._lock:
            first = reason not in self._counts
            self._counts[reason] = self._counts.get(reason, 0) + count
        if first and detail:
            self.warn(f"loss:{reason}", f"{detail} (counted as {reason!r}; further ones are silent)")

    def warn(self, topic: str, message: str) -> None:
        """Log a warning once a topic; never raise."""
        with self._lock:
            if topic in self._warned:
                return
            self._warned.add(topic)
        try:
            logger.warning("rlvitals: %s", message)
        except Exception:  # a broken handler of the user's must not reach training
            return

    def forget(self, topic: str) -> None:
        """Let the next warning of a topic through again."""
        with self._lock:
            self._warned.discard(topic)

    def snapshot(self) -> dict[str, int]:
        """Copy the counts."""
        with self._lock:
            return dict(self._counts)
