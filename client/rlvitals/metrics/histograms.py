"""Groups counted by size and number of correct rollouts."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlvitals.metrics.groups import Groups
    from rlvitals.metrics.rollouts import IntArray

Counts: TypeAlias = dict[int, tuple[int, ...]]

# A histogram has a cell a rollout, so a mistyped size must not fill the memory.
LARGEST_GROUP = 2**16

_NO_CELLS = np.zeros(1, np.int64)


def histograms(groups: Groups, width: int = 0) -> Counts:
    """Count the groups of two or more whose success is known: size n -> groups with c = 0..n.

    A ``width`` above 1 says that all groups have that many rewards, which spares the sorting.
    """
    size, correct = groups.size, groups.n_correct
    if correct is None:
        return {}
    judged = correct >= 0 if width > 1 else (correct >= 0) & (size > 1)
    if np.count_nonzero(judged) < len(size):
        size, correct = size[judged], correct[judged]
    if width > 1 and len(size):
        return {width: tuple(np.bincount(correct, minlength=width + 1).tolist())}
    sizes = np.flatnonzero(np.bincount(size))
    starts = np.concatenate([_NO_CELLS, (sizes + 1).cumsum()])
    cells = np.bincount(starts[sizes.searchsorted(size)] + correct, minlength=starts[-1]).tolist()
    bounds = starts.tolist()
    return {
        n: tuple(cells[start:stop])
        for n, start, stop in zip(sizes.tolist(), bounds[:-1], bounds[1:], strict=True)
    }


def check_sizes(size: IntArray) -> int:
    """Give the largest size; refuse a group too large to count."""
    largest = int(np.maximum.reduce(size, initial=0))
    if largest > LARGEST_GROUP:
        raise ValueError(f"size: a group of {largest} rollouts, want at most {LARGEST_GROUP}")
    return largest


def check_histogram(n: int, row: Sequence[int]) -> None:
    """Refuse counts that no set of groups of size n can have."""
    if not 0 <= n <= LARGEST_GROUP:
        raise ValueError(f"counts.{n}: want a group size up to {LARGEST_GROUP}")
    if len(row) != n + 1 or min(row) < 0:
        raise ValueError(f"counts.{n}: want {n + 1} numbers of groups, none negative")


def merge_counts(one: Counts, two: Counts) -> Counts:
    """Add two sets of counts cell by cell."""
    if not one or not two:
        return one or two
    merged = dict(one)
    for n, row in two.items():
        merged[n] = tuple(map(add, merged[n], row)) if n in merged else row
    return merged


def total_counts(parts: Iterable[Counts]) -> Counts:
    """Add any number of sets of counts cell by cell."""
    rows: dict[int, list[tuple[int, ...]]] = {}
    for part in parts:
        for n, row in part.items():
            rows.setdefault(n, []).append(row)
    return {n: tuple(map(sum, zip(*held, strict=True))) for n, held in rows.items()}
