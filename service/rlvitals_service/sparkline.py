"""The ACR of a whole run in a few points, kept up step by step.

A bucket spans 2**k steps counted from step 0 and has the mean of what is known of it. When there
are too many, k grows by one and pairs become one, so the points depend on the steps, not on when
they came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_BUCKETS = 60
Age = Callable[[int], int]  # of an attempt: greater is newer


@dataclass(slots=True)
class Bucket:
    """Hold the sum of ``count`` rates, the newest attempt among them and the last step."""

    attempt: int
    last: int
    total: float = 0.0
    count: int = 0

    def take(self, later: Bucket, age: Age) -> None:
        """Take in a bucket of later steps."""
        self.attempt = max(self.attempt, later.attempt, key=age)
        self.last = later.last
        self.total += later.total
        self.count += later.count


@dataclass(slots=True)
class Sparkline:
    """Hold buckets of 2**bits steps, by number."""

    bits: int = 0
    buckets: dict[int, Bucket] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Sparkline:
        """Read what `to_json` wrote; anything else is empty."""
        names = ("number", "attempt", "last", "total", "count")
        columns = [stored[name] for name in names if "bits" in stored]
        buckets = {number: Bucket(*rest) for number, *rest in zip(*columns, strict=True)}
        return cls(stored.get("bits", 0), buckets)

    def to_json(self) -> dict[str, Any]:
        """Lay the buckets out as columns."""
        found = sorted(self.buckets.items())
        return {
            "bits": self.bits,
            "number": [number for number, _ in found],
            "attempt": [bucket.attempt for _, bucket in found],
            "last": [bucket.last for _, bucket in found],
            "total": [bucket.total for _, bucket in found],
            "count": [bucket.count for _, bucket in found],
        }

    def add(
        self, attempt: int, step: int, rate: float | None, before: float | None, age: Age = int
    ) -> None:
        """Take in the rate of a step, in place of the rate it had before, if it had one.

        A newer attempt replaces what it goes back over. A bucket that it begins within then has
        its steps alone, and takes nothing of the attempt it left behind any more. ``age`` gives a
        greater number for a newer attempt.
        """
        rate, before = _known(rate), _known(before)
        number = step >> self.bits
        own = age(attempt)
        if any(age(b.attempt) > own and n <= number for n, b in self.buckets.items()):
            return
        self._go_back(own, step, number, age)
        if rate is None and before is None:
            return
        bucket = self.buckets.setdefault(number, Bucket(attempt, step))
        bucket.attempt, bucket.last = attempt, max(bucket.last, step)
        bucket.total += (rate or 0.0) - (before or 0.0)
        bucket.count += (rate is not None) - (before is not None)
        if bucket.count <= 0:
            del self.buckets[number]
        while len(self.buckets) > MOST_BUCKETS:
            self._widen(age)

    def _go_back(self, own: int, step: int, number: int, age: Age) -> None:
        """Forget what earlier attempts did at this step and after it."""
        for n, bucket in list(self.buckets.items()):
            if age(bucket.attempt) < own and n >= number and bucket.last >= step:
                del self.buckets[n]

    def _widen(self, age: Age) -> None:
        wider: dict[int, Bucket] = {}
        for number, bucket in sorted(self.buckets.items()):
            if number >> 1 in wider:
                wider[number >> 1].take(bucket, age)
            else:
                wider[number >> 1] = bucket
        self.bits, self.buckets = self.bits + 1, wider


def points(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Give the points of a stored sparkline: mean rates, and the step where each bucket begins."""
    line = Sparkline.read(stored)
    found = sorted(line.buckets.items())
    return {
        "acr": [round(bucket.total / bucket.count, 6) for _, bucket in found],
        "step": [number << line.bits for number, _ in found],
        "stride": 1 << line.bits,
    }


def _known(rate: float | None) -> float | None:
    return rate if rate is not None and math.isfinite(rate) else None
