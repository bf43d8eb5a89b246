"""The door: whatever a trainer holds becomes one flat float64 array and its group layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.segments import LARGEST_REWARD, equal_width

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

_SCALARS = {float, int, bool, type(None)}


@dataclass(frozen=True, slots=True, eq=False)
class Rollouts:
    """Hold one number a rollout, flat and in the order given, with the group of each.

    ``size`` counts the rollouts of each group whether usable or not. ``index`` numbers groups in
    order of first appearance, one entry a rollout; None when rollouts lie group by group. With a
    ``width`` above 0 they lie in rows of that many. NaN stands for a missing number.
    """

    values: FloatArray
    size: IntArray
    index: IntArray | None = None
    width: int = 0
    group_id: list[str] | None = None

    @property
    def group(self) -> IntArray:
        """Give the group of each rollout."""
        return np.arange(len(self.size)).repeat(self.size) if self.index is None else self.index

    @property
    def usable(self) -> BoolArray:
        """Say which rollouts hold a number that can be squared: finite, at most 1e100 in size."""
        return np.abs(self.values) <= LARGEST_REWARD


def rollouts(rewards: Any, group_ids: Any = None) -> Rollouts:
    """Lay out 2-D or ragged rewards (a row is a group), or flat rewards with one id a rollout.

    Raises ValueError naming the field when the layout is unclear or a length does not match.
    """
    values, lengths = flatten(rewards, "rewards")
    ids = None if group_ids is None else labels(group_ids, "group_ids")
    if lengths is not None:
        _match(ids, len(lengths), "group_ids", "groups")
        square = getattr(rewards, "ndim", 0) > 1 and len(lengths) >= rewards.shape[1] > 0
        width = int(rewards.shape[1]) if square else equal_width(lengths)
        return Rollouts(values, lengths, width=width, group_id=ids)
    if ids is None:
        if len(values):
            raise ValueError(
                "group_ids: flat rewards need one id a rollout, or reshape to (groups, rollouts)"
            )
        ids = []
    _match(ids, len(values), "group_ids", "rollouts")
    index = {name: position for position, name in enumerate(dict.fromkeys(ids))}
    group = np.fromiter(map(index.__getitem__, ids), np.int64, len(ids))
    size = np.bincount(group, minlength=len(index))
    return Rollouts(values, size, group, group_id=list(index))


def flatten(values: Any, field: str) -> tuple[FloatArray, IntArray | None]:
    """Give numbers as one flat float64 array and the row lengths, None when they were flat."""
    if isinstance(values, (list, tuple)) and not _plain(values) and any(map(_is_row, values)):
        return _flatten_rows(values, field)
    array = as_floats(values, field)
    if array.ndim == 1:
        return array, None
    if array.ndim == 2:  # noqa: PLR2004
        return array.ravel(), np.full(array.shape[0], array.shape[1], np.int64)
    raise ValueError(
        f"{field}: want (groups, rollouts), ragged rows or a flat array, got {array.ndim} axes"
    )


def as_floats(values: Any, field: str) -> FloatArray:
    """Give an array, tensor or sequence of numbers as float64, None as NaN."""
    try:
        array = np.asarray(_without_tensors(values))
        if array.dtype.kind not in "USMmc":  # text, times and complex numbers are no rewards
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise _no_numbers(values, field) from None
    raise _no_numbers(values, field)


def _no_numbers(values: Any, field: str) -> ValueError:
    return ValueError(f"{field}: want numbers, booleans or None, got {_describe(values)}")


def _without_tensors(values: Any) -> Any:
    """Turn tensors, known by ``detach``, into arrays; widened first, as NumPy has no bfloat16."""
    if hasattr(values, "detach"):
        return values.detach().cpu().double().numpy()
    if isinstance(values, (list, tuple)) and not _plain(values):
        return [_without_tensors(item) for item in values]
    return values


def labels(ids: Any, field: str) -> list[str]:
    """Give ids of any kind as strings; None among them is refused, for it names nothing."""
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu()
    if hasattr(ids, "tolist"):
        ids = ids.tolist()
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ValueError(f"{field}: want a sequence of ids, got {_describe(ids)}")  # noqa: TRY004
    names = list(ids)
    kinds = set(map(type, names))
    if kinds & {type(None), list, tuple}:
        raise ValueError(f"{field}: every entry must be a string or number, one axis only")
    return names if kinds <= {str} else list(map(str, names))


def _plain(values: Iterable[Any]) -> bool:
    return set(map(type, values)) <= _SCALARS


def _is_row(item: Any) -> bool:
    return isinstance(item, (list, tuple)) or getattr(item, "ndim", 0) > 0


def _flatten_rows(rows: Sequence[Any], field: str) -> tuple[FloatArray, IntArray]:
    if not all(map(_is_row, rows)):
        raise ValueError(
            f"{field}: rows and single numbers are mixed; give [] for a group without rollouts"
        )
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    if set(map(type, rows)) <= {list, tuple}:
        flat = as_floats(list(chain.from_iterable(rows)), field)
    else:
        flat = np.concatenate([as_floats(row, field) for row in rows])
    if flat.ndim != 1:
        raise ValueError(f"{field}: want (groups, rollouts), got rows of more than one axis")
    return flat, lengths


def _match(ids: Sequence[str] | None, count: int, field: str, noun: str) -> None:
    if ids is not None and len(ids) != count:
        raise ValueError(f"{field}: {len(ids)} entries for {count} {noun}")


def _describe(values: Any) -> str:
    dtype = getattr(values, "dtype", None)
    return f"{type(values).__name__}" + (f" of {dtype}" if dtype is not None else "")
