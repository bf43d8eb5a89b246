"""Give every call its step and its generation."""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from typing import Any

STEP_LIMIT = 2**53
REMEMBERED = 512


class Numbering:
    """Remember the current step and how often a generation was logged in it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may log while in here
        self._step = 0
        self._explicit = False
        self._seen: set[str] = set()
        self._generations: OrderedDict[tuple[str, int], int] = OrderedDict()

    @property
    def current(self) -> int:
        """Give the step that a call without a step would mean now."""
        return self._step

    def step(self, given: Any, kind: str | None) -> int:
        """Settle the step of a call of some kind.

        A given step is taken as it is, also when it goes back. Without one, the last given step
        holds; if none was ever given, a counter does, which moves on when a kind comes again and
        stays for the kind None.
        """
        if given is not None:
            self._step = step = checked_step(given)
            self._explicit = True
            return step
        if self._explicit or kind is None:
            return self._step
        with self._lock:
            if kind in self._seen:
                self._step += 1
                self._seen.clear()
            self._seen.add(kind)
            return self._step

    def generation(self, given: Any, kind: str, step: int) -> int:
        """Settle the generation: as given, else how often this kind came at this step."""
        if given is not None:
            return checked_step(given, "generation", 2**31)
        with self._lock:
            index = self._generations.get((kind, step), 0)
            self._generations[kind, step] = index + 1
            if len(self._generations) > REMEMBERED:
                self._generations.popitem(last=False)
            return index


def checked_step(value: Any, field: str = "step", limit: int = STEP_LIMIT) -> int:
    """Read a non-negative whole number; ValueError names the field."""
    if type(value) is int and 0 <= value < limit:
        return value
    try:
        number = operator.index(value)
    except TypeError:
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{field} must be a whole number, not {value!r}") from None
        if number != value:
            raise ValueError(f"{field} must be a whole number, not {value!r}") from None
    if not 0 <= number < limit:
        raise ValueError(f"{field} must be from 0 up to {limit - 1}, not {number}")
    return number
