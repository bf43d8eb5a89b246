"""Choose how long to wait before trying again."""

from __future__ import annotations

import os
import random

BACKOFF_BASE_SECONDS = 0.5
BACKOFF_CAP_SECONDS = 30.0

# A generator of our own: drawing from the global one would change a seeded training.
_jitter = random.Random()  # noqa: S311 - no secret hangs on it
if hasattr(os, "register_at_fork"):
    # Else all forked workers would wait for the same times and come back together.
    os.register_at_fork(after_in_child=_jitter.seed)


class Backoff:
    """Choose how long to wait after a failure: full jitter, growing, bounded."""

    def __init__(
        self, base: float = BACKOFF_BASE_SECONDS, cap: float = BACKOFF_CAP_SECONDS
    ) -> None:
        self._base, self._cap, self._failures = base, cap, 0

    def next(self, retry_after: float | None = None) -> float:
        """Give the seconds to wait; the service's own wish counts as the least."""
        ceiling = min(self._cap, self._base * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return max(_jitter.uniform(0.05, ceiling), retry_after or 0.0)

    @property
    def failing(self) -> bool:
        """Say whether the last attempt failed."""
        return self._failures > 0

    def reset(self) -> None:
        """Begin anew after a success."""
        self._failures = 0
