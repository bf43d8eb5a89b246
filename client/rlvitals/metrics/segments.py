"""Numbers sorted by group, reduced group by group without a Python loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import BoolArray, FloatArray, IntArray, Rollouts


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Hold the order that sorts entries by group, and where each group lies in it.

    ``selection`` picks and orders the entries that count; an empty group has size 0.
    """

    selection: Any
    size: IntArray
    starts: IntArray
    filled: BoolArray | None  # which groups have an entry; None when all have

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

    def reduce(self, ufunc: np.ufunc, values: Any, empty: float) -> Any:
        """Reduce sorted values to one number a group; ``empty`` stands for an empty group."""
        if self.filled is None:
            return ufunc.reduceat(values, self.starts) if len(self.starts) else values[:0]
        reduced = np.full(self.size.shape, empty, values.dtype)
        if self.filled.any():
            reduced[self.filled] = ufunc.reduceat(values, self.starts[self.filled])
        return reduced

    def spread(self, values: Any) -> Any:
        """Give each entry the number of its group."""
        return values.repeat(self.size)


def usable_segments(laid_out: Rollouts) -> Segments:
    """Sort the rollouts that have a usable reward by group."""
    usable = laid_out.usable
    return Segments.of(laid_out.group, laid_out.size, None if usable.all() else usable)


def moments(
    segments: Segments, values: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Give mean, std (ddof=1), min and max of each group of sorted values.

    Deviations are taken from the group's minimum first, so equal values have a std of exactly 0.
    """
    size = segments.size
    low = segments.reduce(np.minimum, values, np.nan)
    high = segments.reduce(np.maximum, values, np.nan)
    above = values - segments.spread(low)
    shift = segments.reduce(np.add, above, np.nan) / np.maximum(size, 1)
    above -= segments.spread(shift)
    return low + shift, std_of(segments.reduce(np.add, above * above, np.nan), size), low, high


def std_of(m2: FloatArray, size: IntArray) -> FloatArray:
    """Turn sums of squared deviations into stds (ddof=1), NaN for fewer than two numbers."""
    std: FloatArray = np.sqrt(m2 / np.maximum(size - 1, 1))
    std[size <= 1] = np.nan
    return std
