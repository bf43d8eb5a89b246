"""The newest values by step, bounded, where a step seen again replaces its value."""

from __future__ import annotations

from bisect import bisect_left
from typing import Generic, TypeVar

T = TypeVar("T")


class StepSeries(Generic[T]):
    """Hold at most ``limit`` values in ascending order of step, the newest ones."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.steps: list[int] = []
        self.values: list[T] = []

    def __len__(self) -> int:
        return len(self.steps)

    def get(self, step: int) -> T | None:
        """Give the value of a step, None where it is unknown."""
        at = bisect_left(self.steps, step)
        known = at < len(self.steps) and self.steps[at] == step
        return self.values[at] if known else None

    def put(self, step: int, value: T) -> None:
        """Place a value; a step older than all that is kept by a full series is left out."""
        at = bisect_left(self.steps, step)
        if at < len(self.steps) and self.steps[at] == step:
            self.values[at] = value
            return
        if at == 0 and len(self.steps) >= self.limit:
            return
        self.steps.insert(at, step)
        self.values.insert(at, value)
        if len(self.steps) > self.limit:
            self.drop_oldest()

    def remove(self, step: int) -> None:
        """Forget a step, if it is known."""
        at = bisect_left(self.steps, step)
        if at < len(self.steps) and self.steps[at] == step:
            del self.steps[at], self.values[at]

    def drop_oldest(self) -> T:
        """Take out the oldest value."""
        del self.steps[0]
        return self.values.pop(0)


class Flags(StepSeries[bool]):
    """Hold whether a condition was met, row by row."""

    def newest(self, flag: bool) -> int:
        """Count how many of the newest rows in a row have this flag."""
        length = 0
        for value in reversed(self.values):
            if value is not flag:
                break
            length += 1
        return length
