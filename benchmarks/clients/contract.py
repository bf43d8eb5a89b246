"""What a contestant is: it opens, gives a call that logs, and a call that ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Log = Callable[[int, Any], object]
Finish = Callable[[], object]
Open = Callable[[], tuple[Log, Finish]]


def nothing() -> None:
    """End what needs no ending."""
