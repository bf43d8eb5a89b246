"""Thin a series for a chart without hiding anything: a spike of one step always survives.

Beside its extremes each bucket has the mean of its values, because a trend drawn through extremes
would lean towards the middle between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.floating]

LEAST_POINTS = 4  # the ends, and one bucket's minimum and maximum
WIDEST = 64  # a width of 2**64 steps holds every step in one bucket


@dataclass(frozen=True, slots=True)
class Means:
    """Hold one entry a bucket: ``value`` is the mean of its ``count`` finite values.

    ``index`` is the position of the middle one of those values, by steps.
    """

    index: IntArray
    value: FloatArray
    count: IntArray


@dataclass(frozen=True, slots=True)
class Selection:
    """Say which positions of a series to draw.

    ``index`` ascends and holds a non-finite value only at either end; ``nonfinite`` is every
    position whose value is NaN or infinite; ``means`` is None unless a finite value was left out.
    """

    index: IntArray
    nonfinite: IntArray
    means: Means | None = None

    @property
    def sampled(self) -> bool:
        """Say whether a finite value was left out."""
        return self.means is not None


def select(
    steps: IntArray,
    values: FloatArray,
    max_points: int,
    segments: IntArray | None = None,
) -> Selection:
    """Choose at most ``max_points`` positions that keep every bucket's minimum and maximum.

    A series that fits is kept whole. A bucket spans 2**k steps counted from step 0, with the
    smallest k that fits, so points already drawn stay where they are while a run grows and
    whichever range is asked for. ``segments`` (an attempt per position) never share a bucket
    unless there are more of them than points. Raises ValueError for ``max_points`` below 4.
    """
    if max_points < LEAST_POINTS:
        raise ValueError(f"max_points must be at least {LEAST_POINTS}, not {max_points}")
    finite = np.isfinite(values)
    nonfinite = np.flatnonzero(~finite)
    if len(values) <= max_points:
        return Selection(np.arange(len(values)), nonfinite)
    kept = np.flatnonzero(finite) if len(nonfinite) else np.arange(len(values))
    ends = [0, len(values) - 1]
    if not len(kept):
        return Selection(np.unique(ends), nonfinite)
    if len(nonfinite):
        steps, values = steps[kept], values[kept]
        segments = None if segments is None else segments[kept]
    starts = _bucket_starts(steps, segments, most=(max_points - 2) // 2)
    extremes, means = _summary(values, starts)
    index = np.union1d(kept[extremes], ends)
    left_out = len(kept) > int(finite[index].sum())
    means = replace(means, index=kept[means.index])
    return Selection(index, nonfinite, means if left_out else None)


def _summary(values: FloatArray, starts: IntArray) -> tuple[IntArray, Means]:
    """Give the positions of each bucket's minimum and maximum, and the buckets' means."""
    count = np.diff(starts, append=len(values))
    least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    bucket = np.repeat(np.arange(len(starts)), count)
    low, high = _first(values == least[bucket], bucket), _first(values == most[bucket], bucket)
    # Shares are added, as a sum of values might overflow; rounding must not leave the range.
    mean = np.add.reduceat(values / count[bucket], starts).clip(least, most)
    return np.concatenate([low, high]), Means(starts + (count - 1) // 2, mean, count)


def _first(hit: NDArray[np.bool_], bucket: IntArray) -> IntArray:
    """Give each bucket's first hit; every bucket has one."""
    positions = np.flatnonzero(hit)
    first: IntArray = positions[np.diff(bucket[positions], prepend=-1) != 0]
    return first


def _bucket_starts(steps: IntArray, segments: IntArray | None, most: int) -> IntArray:
    """Give where each bucket starts, for the narrowest width that gives at most ``most``.

    Two neighbours are in different buckets of 2**k steps exactly when their steps differ at
    bit k or above; so one pass over the neighbours counts the buckets of every width.
    """
    differing = np.bitwise_xor(steps[1:], steps[:-1]).astype(np.float64)
    bits = np.frexp(differing)[1]  # bit length; exact, steps stay below 2**53
    if segments is not None:
        bits[segments[1:] != segments[:-1]] = WIDEST
    per_bits = np.bincount(bits, minlength=WIDEST + 1)
    buckets = 1 + len(bits) - np.cumsum(per_bits)  # by k: neighbours with more than k bits
    k = int(np.argmax(buckets <= most))
    return np.concatenate([[0], np.flatnonzero(bits > k) + 1]).astype(np.int64)
