"""Columns of groups put together, pooled by id, and carried over the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.metrics.rollouts import as_floats, labels
from rlvitals.metrics.segments import LARGEST_REWARD, Segments, std_of
from rlvitals.metrics.success import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.metrics.groups import Groups
    from rlvitals.metrics.rollouts import FloatArray, IntArray

COUNTS = ("n_correct", "n_failed")
REWARDS = ("reward_mean", "reward_std", "reward_min", "reward_max")
IDS = ("group_id", "prompt_id")


def write(groups: Groups) -> dict[str, list[Any] | None]:
    """Turn columns into lists with None where a number is undefined.

    ``n_failed`` is None where it says no more than ``size - n_correct``.
    """
    written = {name: _plain(getattr(groups, name)) for name in ("size", *REWARDS, *COUNTS, *IDS)}
    failed = groups.n_failed
    if failed is not None and np.array_equal(failed, _counts_of(replace(groups, n_failed=None))):
        written["n_failed"] = None
    return written


def _plain(column: Any) -> list[Any] | None:
    if column is None or isinstance(column, list):
        return column
    absent = np.isnan(column) if column.dtype.kind == "f" else column < 0
    entries: list[Any] = column.tolist()
    for row in np.flatnonzero(absent).tolist():
        entries[row] = None
    return entries


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn lists into columns, checking that the numbers of each group can be."""
    for name in ("size", *REWARDS):
        if given.get(name) is None:
            raise ValueError(f"{name}: is required")
    ready: dict[str, Any] = {"size": _whole(given["size"], "size")}
    size = ready["size"]
    for name in REWARDS:
        ready[name] = as_floats(given[name], name)
    for name in COUNTS:
        column = given.get(name)
        ready[name] = None if column is None else _whole(column, name)
    for name in IDS:
        column = given.get(name)
        ready[name] = None if column is None else labels(column, name)
    for name, column in ready.items():
        if column is not None and len(column) != len(size):
            raise ValueError(f"{name}: {len(column)} entries for {len(size)} groups")
    _check(ready, size)
    return ready


def _whole(column: Any, name: str) -> IntArray:
    values = as_floats(column, name)
    whole = np.where(np.isnan(values), UNKNOWN, values)
    lowest = 0 if name == "size" else UNKNOWN
    if not ((whole >= lowest) & (whole < 2**53) & (whole == np.floor(whole))).all():
        raise ValueError(f"{name}: want whole numbers, none negative")
    return whole.astype(np.int64)


def _check(ready: dict[str, Any], size: IntArray) -> None:
    for name in COUNTS:
        if ready[name] is not None and (ready[name] > size).any():
            raise ValueError(f"{name}: larger than the size of its group")
    for name in REWARDS:
        needed = size > (1 if name == "reward_std" else 0)
        if not (np.abs(ready[name][needed]) <= LARGEST_REWARD).all():
            raise ValueError(f"{name}: a group with rewards needs a finite number")
        ready[name] = np.where(needed, ready[name], np.nan)
    low, high = ready["reward_min"], ready["reward_max"]
    if (low > high).any() or (ready["reward_std"] < 0).any():
        raise ValueError("reward_min: larger than reward_max, or reward_std negative")


def concat(parts: Sequence[Groups]) -> dict[str, Any]:
    """Put columns one after another; -1 and the empty id fill in for a part that lacks them."""
    return {
        "size": np.concatenate([np.zeros(0, np.int64), *(part.size for part in parts)]),
        **{name: _joined(parts, name) for name in REWARDS},
        **{name: _joined_counts(parts, name) for name in COUNTS},
        **{name: _joined_ids(parts, name) for name in IDS},
    }


def _joined(parts: Sequence[Groups], name: str) -> FloatArray:
    return np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])


def _joined_counts(parts: Sequence[Groups], name: str) -> IntArray | None:
    if all(getattr(part, name) is None for part in parts):
        return None
    return np.concatenate([_counts_of(part, name) for part in parts])


def _counts_of(part: Groups, name: str = "n_failed") -> IntArray:
    own: IntArray | None = getattr(part, name)
    if own is not None:
        return own
    if name == "n_failed" and part.n_correct is not None:
        return np.where(part.n_correct < 0, UNKNOWN, part.size - part.n_correct)
    return np.full(part.size.shape, UNKNOWN, np.int64)


def _joined_ids(parts: Sequence[Groups], name: str) -> list[str] | None:
    if all(getattr(part, name) is None for part in parts):
        return None
    return [label for part in parts for label in getattr(part, name) or [""] * len(part)]


def merge(groups: Groups) -> Groups:
    """Pool rows of one group id; deviations of means from their minimum keep equal rewards exact.

    Chan, Golub and LeVeque (1979): m2 = sum of m2_i + n_i (mean_i - mean)^2.
    """
    if groups.group_id is None:
        return groups
    keys: list[str | int] = [name or row for row, name in enumerate(groups.group_id)]
    index = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    if len(index) == len(keys):
        return groups
    target = np.fromiter(map(index.__getitem__, keys), np.int64, len(keys))
    return _pool(groups, Segments.of(target, np.bincount(target)))


def _pool(groups: Groups, rows: Segments) -> Groups:
    order = np.arange(len(groups))[rows.selection]
    size = groups.size[order]
    total = rows.reduce(np.add, size, 0)
    low = rows.reduce(np.fmin, groups.reward_min[order], np.nan)
    above = np.where(size > 0, groups.reward_mean[order] - rows.spread(low), 0.0)
    shift = rows.reduce(np.add, size * above, 0.0) / np.maximum(total, 1)
    within = np.where(size > 1, groups.reward_std[order] ** 2 * (size - 1), 0.0)
    m2 = rows.reduce(np.add, within + size * (above - rows.spread(shift)) ** 2, 0.0)
    first = order[rows.starts].tolist()
    return replace(
        groups,
        size=total,
        reward_mean=low + shift,
        reward_std=std_of(m2, total),
        reward_min=low,
        reward_max=rows.reduce(np.fmax, groups.reward_max[order], np.nan),
        n_correct=_pooled_counts(groups.n_correct, rows),
        n_failed=_pooled_counts(groups.n_failed, rows),
        group_id=_picked(groups.group_id, first),
        prompt_id=_picked(groups.prompt_id, first),
    )


def _pooled_counts(counts: IntArray | None, rows: Segments) -> IntArray | None:
    if counts is None:
        return None
    ordered = counts[rows.selection]
    unknown = rows.reduce(np.minimum, ordered, 0) < 0
    return np.where(unknown, UNKNOWN, rows.reduce(np.add, ordered, 0))


def _picked(names: list[str] | None, rows: list[int]) -> list[str] | None:
    return None if names is None else [names[row] for row in rows]
