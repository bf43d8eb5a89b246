"""What each group of rollouts was worth, as columns with one entry a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rlvitals.metrics.rollouts import (
    BoolArray,
    FloatArray,
    IntArray,
    Rollouts,
    flatten,
    labels,
    rollouts,
)

UNKNOWN = -1  # stands in an integer column where success is unknown

# Rewards arrive as float32 sums, so 0.9 may be 0.89999998 when a threshold of 0.9 looks at it.
THRESHOLD_SLACK = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Hold the groups of one generation as columns of equal length.

    ``size`` counts the rewards present. ``reward_std`` has ddof=1. Reward columns are NaN where
    undefined: all four for a group without rewards, the std for a group of one. ``n_correct`` is
    -1 where success is unknown and None without any success definition; ``n_failed`` counts the
    rollouts that failed for certain, None meaning ``size - n_correct``. ``errored`` counts the
    rollouts without a usable reward.
    """

    size: IntArray
    reward_mean: FloatArray
    reward_std: FloatArray
    reward_min: FloatArray
    reward_max: FloatArray
    n_correct: IntArray | None = None
    n_failed: IntArray | None = None
    group_id: list[str] | None = None
    prompt_id: list[str] | None = None
    errored: int = 0

    def __len__(self) -> int:
        """Count the groups, those without rewards included."""
        return len(self.size)

    @classmethod
    def from_rewards(
        cls,
        rewards: Any,
        *,
        group_ids: Any = None,
        correct: Any = None,
        prompt_ids: Any = None,
        success_threshold: float | None = None,
        failure_threshold: float = 0.0,
    ) -> Groups:
        """Reduce rewards to groups.

        ``rewards`` is (n_groups, group_size), ragged rows, or flat with one group id a rollout in
        any order; None, NaN, infinite and absurdly large rewards are left out and counted as
        errored. ``correct`` has the layout of ``rewards`` and wins over the thresholds; without
        it a rollout is correct when its reward reaches ``success_threshold`` and has failed when
        its reward is at most ``failure_threshold`` (below ``success_threshold``, should that not
        lie above ``failure_threshold``). ``prompt_ids`` has one entry a group, or a rollout when
        rewards are flat. Raises ValueError naming the field.
        """
        laid_out = rollouts(rewards, group_ids)
        kept = _Kept.of(laid_out)
        n_correct, n_failed = _success(
            laid_out, kept, correct, success_threshold, failure_threshold
        )
        mean, std, low, high = _moments(kept)
        return cls(
            size=kept.size,
            reward_mean=mean,
            reward_std=std,
            reward_min=low,
            reward_max=high,
            n_correct=n_correct,
            n_failed=n_failed,
            group_id=laid_out.group_id,
            prompt_id=None if prompt_ids is None else _prompts(prompt_ids, laid_out),
            errored=len(laid_out.values) - len(kept.values),
        )

    @classmethod
    def from_columns(cls, columns: dict[str, Any], errored: int = 0) -> Groups:
        """Read columns as they travel: lists with None where a number is undefined."""
        integers = ("size", "n_correct", "n_failed")
        ready: dict[str, Any] = {}
        for name, column in columns.items():
            if column is None or name.endswith("_id"):
                ready[name] = column
            elif name in integers:
                known = [UNKNOWN if entry is None else entry for entry in column]
                ready[name] = np.array(known, np.int64)
            else:
                ready[name] = np.array(column, np.float64)
        return cls(**ready, errored=errored)

    def to_columns(self) -> dict[str, list[Any] | None]:
        """Write columns as they travel: lists with None where a number is undefined."""
        names = [field.name for field in fields(self) if field.name != "errored"]
        return {name: _column(getattr(self, name)) for name in names}

    def merged(self) -> Groups:
        """Pool rows of one group id into one, in order of first appearance (Chan et al., 1979).

        A row without an id (an empty one) stays alone.
        """
        if self.group_id is None:
            return self
        keys: list[Any] = [name or row for row, name in enumerate(self.group_id)]
        index = {key: position for position, key in enumerate(dict.fromkeys(keys))}
        if len(index) == len(keys):
            return self
        target = np.fromiter(map(index.__getitem__, keys), np.int64, len(keys))
        return _pool(self, target, len(index))

    @staticmethod
    def concat(parts: Sequence[Groups]) -> Groups:
        """Put the groups of several parts one after another; what one part lacks is unknown."""
        return Groups(
            size=np.concatenate([np.zeros(0, np.int64), *(part.size for part in parts)]),
            **{
                name: np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])
                for name in ("reward_mean", "reward_std", "reward_min", "reward_max")
            },
            n_correct=_concat_counts(parts, "n_correct"),
            n_failed=_concat_counts(parts, "n_failed"),
            group_id=_concat_labels(parts, "group_id"),
            prompt_id=_concat_labels(parts, "prompt_id"),
            errored=sum(part.errored for part in parts),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Usable values sorted by group, ready for ``reduceat``."""

    values: FloatArray
    size: IntArray
    selection: Any  # picks and orders the usable among all rollouts

    @classmethod
    def of(cls, laid_out: Rollouts) -> _Kept:
        usable = laid_out.usable
        size = laid_out.size
        selection: Any = slice(None)
        if not usable.all():
            selection = np.flatnonzero(usable)
            size = np.bincount(laid_out.group[selection], minlength=len(size))
        group = laid_out.group[selection]
        if (group[1:] < group[:-1]).any():
            order = np.argsort(group, kind="stable")
            selection = order if isinstance(selection, slice) else selection[order]
        return cls(laid_out.values[selection], size, selection)

    def reduce(self, ufunc: np.ufunc, values: Any, empty: float) -> Any:
        """Reduce values group by group; ``empty`` stands for a group without any."""
        filled = self.size > 0
        starts = np.cumsum(self.size) - self.size
        if filled.all():
            return ufunc.reduceat(values, starts) if len(starts) else values[:0]
        reduced = np.full(self.size.shape, empty, values.dtype)
        if filled.any():
            reduced[filled] = ufunc.reduceat(values, starts[filled])
        return reduced


def _moments(kept: _Kept) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Give mean, std (ddof=1), min and max of each group.

    Deviations are taken from the group's minimum first, so equal rewards have a std of exactly 0.
    """
    size = kept.size
    low = kept.reduce(np.minimum, kept.values, np.nan)
    high = kept.reduce(np.maximum, kept.values, np.nan)
    above = kept.values - np.repeat(low, size)
    shift = kept.reduce(np.add, above, np.nan) / np.maximum(size, 1)
    m2 = kept.reduce(np.add, (above - np.repeat(shift, size)) ** 2, np.nan)
    std = np.where(size > 1, np.sqrt(m2 / np.maximum(size - 1, 1)), np.nan)
    return low + shift, std, low, high


def _success(
    laid_out: Rollouts,
    kept: _Kept,
    correct: Any,
    success_threshold: float | None,
    failure_threshold: float,
) -> tuple[IntArray | None, IntArray | None]:
    if correct is not None:
        return _count_known(kept, _verdicts(correct, laid_out)[kept.selection]), None
    if success_threshold is None:
        return None, None
    passed, failed = by_threshold(kept.values, success_threshold, failure_threshold)
    return (
        kept.reduce(np.add, passed.astype(np.int64), 0),
        kept.reduce(np.add, failed.astype(np.int64), 0),
    )


def by_threshold(
    rewards: FloatArray, success_threshold: float, failure_threshold: float
) -> tuple[BoolArray, BoolArray]:
    """Say which rewards count as correct and which as failed for certain; some are neither."""
    slack = THRESHOLD_SLACK * max(1.0, abs(success_threshold))
    passed = rewards >= success_threshold - slack
    if failure_threshold >= success_threshold:
        return passed, ~passed
    return passed, (rewards <= failure_threshold + slack) & ~passed


def _verdicts(correct: Any, laid_out: Rollouts) -> FloatArray:
    verdicts, lengths = flatten(correct, "correct")
    fits = len(verdicts) == len(laid_out.values)
    if not fits or (lengths is not None and not np.array_equal(lengths, laid_out.size)):
        msg = f"correct: {len(verdicts)} entries do not match the layout of the rewards"
        raise ValueError(msg)
    if not (np.isnan(verdicts) | (verdicts == 0) | (verdicts == 1)).all():
        msg = "correct: every entry must be true, false or None"
        raise ValueError(msg)
    return verdicts


def _count_known(kept: _Kept, verdicts: FloatArray) -> IntArray:
    """Count correct rollouts; a group with one unknown verdict is unknown."""
    count = kept.reduce(np.add, verdicts, 0.0)
    return np.where(np.isnan(count), UNKNOWN, np.nan_to_num(count)).astype(np.int64)


def _prompts(prompt_ids: Any, laid_out: Rollouts) -> list[str]:
    names = labels(prompt_ids, "prompt_ids")
    if len(names) == len(laid_out.size):
        return names
    if len(names) != len(laid_out.values):
        msg = f"prompt_ids: {len(names)} entries for {len(laid_out.size)} groups"
        raise ValueError(msg)
    by_group: list[str] = [""] * len(laid_out.size)
    for group, name in zip(laid_out.group.tolist(), names, strict=True):
        if by_group[group] not in ("", name):
            msg = f"prompt_ids: one group holds rollouts of {by_group[group]!r} and {name!r}"
            raise ValueError(msg)
        by_group[group] = name
    return by_group


def _pool(groups: Groups, target: IntArray, count: int) -> Groups:
    order = np.argsort(target, kind="stable")
    rows = _Kept(groups.reward_mean[order], np.bincount(target, minlength=count), order)
    size = groups.size[order]
    total = rows.reduce(np.add, size, 0)
    low = rows.reduce(np.fmin, groups.reward_min[order], np.nan)
    above = np.where(size > 0, groups.reward_mean[order] - np.repeat(low, rows.size), 0.0)
    shift = rows.reduce(np.add, size * above, 0.0) / np.maximum(total, 1)
    within = np.where(size > 1, groups.reward_std[order] ** 2 * (size - 1), 0.0)
    between = size * (above - np.repeat(shift, rows.size)) ** 2
    m2 = rows.reduce(np.add, within + between, 0.0)
    first = order[np.cumsum(rows.size) - rows.size].tolist()
    return replace(
        groups,
        size=total,
        reward_mean=low + shift,
        reward_std=np.where(total > 1, np.sqrt(m2 / np.maximum(total - 1, 1)), np.nan),
        reward_min=low,
        reward_max=rows.reduce(np.fmax, groups.reward_max[order], np.nan),
        n_correct=_pool_counts(rows, groups.n_correct),
        n_failed=_pool_counts(rows, groups.n_failed),
        group_id=_pick(groups.group_id, first),
        prompt_id=_pick(groups.prompt_id, first),
    )


def _pool_counts(rows: _Kept, counts: IntArray | None) -> IntArray | None:
    if counts is None:
        return None
    ordered = counts[rows.selection]
    unknown = rows.reduce(np.minimum, ordered, 0) < 0
    pooled: IntArray = np.where(unknown, UNKNOWN, rows.reduce(np.add, ordered, 0))
    return pooled


def _pick(names: list[str] | None, rows: list[int]) -> list[str] | None:
    return None if names is None else [names[row] for row in rows]


def _concat_counts(parts: Sequence[Groups], name: str) -> IntArray | None:
    if all(getattr(part, name) is None for part in parts):
        return None
    return np.concatenate([_counts_of(part, name) for part in parts])


def _counts_of(part: Groups, name: str) -> IntArray:
    own: IntArray | None = getattr(part, name)
    if own is not None:
        return own
    if name == "n_failed" and part.n_correct is not None:
        return np.where(part.n_correct < 0, UNKNOWN, part.size - part.n_correct)
    return np.full(part.size.shape, UNKNOWN, np.int64)


def _concat_labels(parts: Sequence[Groups], name: str) -> list[str] | None:
    if all(getattr(part, name) is None for part in parts):
        return None
    return [label for part in parts for label in getattr(part, name) or [""] * len(part)]


def _column(values: Any) -> list[Any] | None:
    if values is None or isinstance(values, list):
        return values
    absent = np.isnan(values) if values.dtype.kind == "f" else values < 0
    entries: list[Any] = values.tolist()
    for row in np.flatnonzero(absent).tolist():
        entries[row] = None
    return entries
