"""Numbers sorted by group, reduced group by group without a Python loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import BoolArray, FloatArray, IntArray, Rollouts

# Squares of larger numbers leave float64; a reward beyond it is as unusable as an infinite one.
LARGEST_REWARD = 1e100

SMALL = 256  # below it a byte holds a count


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Hold the order that sorts entries by group, and where each group lies in it.

    ``selection`` picks and orders the entries that count; an empty group has size 0. With a
    ``width`` above 0 all groups have that many entries, and ``take`` lays them out as a column
    each: reduced column by column, a thousand groups take no longer than a few.
    """

    selection: Any
    size: IntArray
    starts: IntArray  # none with a width: columns need none
    filled: BoolArray | None  # which groups have an entry; None when all have
    width: int = 0

    @classmethod
    def of(cls, group: IntArray, size: IntArray, keep: BoolArray | None = None) -> Segments:
        """Sort the entries to keep by their group index; entries in order are not moved."""
        selection: Any = slice(None)
        if keep is not None:
            selection = np.flatnonzero(keep)
            group = group[selection]
            size = np.bincount(group, minlength=len(size))
        if (group[1:] < group[:-1]).any():
            order = np.argsort(group, kind="stable")
            selection = order if keep is None else selection[order]
        starts = size.cumsum() - size
        filled = size > 0
        return cls(selection, size, starts, None if filled.all() else filled)

    def take(self, entries: Any) -> Any:
        """Pick the entries that count, sorted by group: flat, or in columns with a ``width``."""
        picked = entries[self.selection]
        return np.ascontiguousarray(picked.reshape(-1, self.width).T) if self.width else picked

    def reduce(self, ufunc: np.ufunc, values: Any, empty: float) -> Any:
        """Reduce taken values to one number a group; ``empty`` stands for an empty group."""
        if self.width:
            return ufunc.reduce(values, axis=0)
        if self.filled is None:
            return ufunc.reduceat(values, self.starts) if len(self.starts) else values[:0]
        reduced = np.full(self.size.shape, empty, values.dtype)
        if self.filled.any():
            reduced[self.filled] = ufunc.reduceat(values, self.starts[self.filled])
        return reduced

    def count(self, marks: BoolArray) -> IntArray:
        """Count the marked among the taken entries of each group."""
        if 0 < self.width < SMALL:
            few: IntArray = np.add.reduce(marks.view(np.uint8), axis=0, dtype=np.uint8)
            return few.astype(np.int64)
        counts: IntArray = self.reduce(np.add, marks.astype(np.int64), 0)
        return counts

    def spread(self, values: Any) -> Any:
        """Give each taken entry the number of its group, or what broadcasts to that."""
        return values if self.width else values.repeat(self.size)


class Taken(NamedTuple):
    """Hold the entries that count as their segments take them, and the extremes of each group."""

    segments: Segments
    values: FloatArray
    low: FloatArray
    high: FloatArray


def take_usable(laid_out: Rollouts) -> Taken:
    """Sort the rollouts that have a usable reward by group."""
    if laid_out.width:
        taken = _take(_in_columns(slice(None), laid_out.size, laid_out.width), laid_out.values)
        if within(taken.low, taken.high):  # the usual case, seen on groups instead of rollouts
            return taken
    usable = laid_out.usable
    keep = None if np.count_nonzero(usable) == len(usable) else usable
    segments = Segments.of(laid_out.group, laid_out.size, keep)
    width = equal_width(segments.size)
    columns = _in_columns(segments.selection, segments.size, width) if width else segments
    return _take(columns, laid_out.values)


def _take(segments: Segments, entries: FloatArray) -> Taken:
    values = segments.take(entries)
    low = segments.reduce(np.minimum, values, np.nan)
    return Taken(segments, values, low, segments.reduce(np.maximum, values, np.nan))


def within(low: FloatArray, high: FloatArray) -> bool:
    """Say whether no extreme is beyond what can be squared; NaN is an extreme and is."""
    inside = (low >= -LARGEST_REWARD) & (high <= LARGEST_REWARD)
    return bool(np.count_nonzero(inside) == len(inside))


def equal_width(size: IntArray) -> int:
    """Give the number of entries that all groups have, 0 when it differs or columns gain nothing.

    Reducing a column costs a call for each of its entries, so groups must outnumber these.
    """
    first = int(size[0]) if len(size) else 0
    equal = 0 < first <= len(size) and np.count_nonzero(size == first) == len(size)
    return first if equal else 0


def _in_columns(selection: Any, size: IntArray, width: int) -> Segments:
    return Segments(selection, size, size[:0], None, width)


def moments(taken: Taken) -> tuple[FloatArray, FloatArray]:
    """Give mean and std (ddof=1) of each group.

    Deviations are taken from the group's minimum first, so equal values have a std of exactly 0.
    """
    segments, values, low, _ = taken
    divisor: Any = segments.width or np.maximum(segments.size, 1)
    above = values - segments.spread(low)
    shift = segments.reduce(np.add, above, np.nan) / divisor
    above -= segments.spread(shift)
    above *= above
    m2 = segments.reduce(np.add, above, np.nan)
    std = np.sqrt(m2 / (segments.width - 1)) if segments.width > 1 else std_of(m2, segments.size)
    return low + shift, std


def std_of(m2: FloatArray, size: IntArray) -> FloatArray:
    """Turn sums of squared deviations into stds (ddof=1), NaN for fewer than two numbers."""
    std: FloatArray = np.sqrt(m2 / np.maximum(size - 1, 1))
    std[size <= 1] = np.nan
    return std
