"""Reduce queued items to records: groups to columns, names to the catalog's, same keys to one."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.capture import Unusable, land, number
from rlvitals.items import Advantages, Item, Rewards, Reweighted, Scalars
from rlvitals.metrics.catalog import canonical
from rlvitals.metrics.groups import Groups
from rlvitals.plain import clean_text
from rlvitals.records import GroupColumns, Scalar, StepRecord, encode_scalar
from rlvitals.remedies import Remedies, reweight

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlvitals.losses import Losses

Key = tuple[str, int, int, str]  # phase, step, generation, stage
REMEMBERED = 64
LONGEST_NAME = 200
NAMES_REMEMBERED = 10_000
LONGEST_ID = 128


class Reducer:
    """Turn items into records; remembers recent groups so that a resend of a key is whole.

    Not thread-safe: it lives on the writing thread.
    """

    def __init__(
        self,
        losses: Losses,
        source: str = "0",
        success_threshold: float | None = None,
        failure_threshold: float = 0.0,
    ) -> None:
        self._losses = losses
        self._source = source
        self._success_threshold = success_threshold
        self._failure_threshold = failure_threshold
        self._names: dict[Any, str] = {}
        self._parts: OrderedDict[Key, _Part] = OrderedDict()
        self._generations: OrderedDict[tuple[str, str, int], tuple[int, Any]] = OrderedDict()

    def records(self, items: Iterable[Item]) -> list[StepRecord]:
        """Reduce items in order; items of one key become one record.

        What cannot be read is counted with its reason and spoils nothing else.
        """
        made: dict[Key, StepRecord] = {}
        for item in items:
            kind = type(item).__name__.lower()
            with self._losses.guard(f"{kind}_unreadable", f"{kind} were dropped"):
                self._fold(item, made)
        return list(made.values())

    def _fold(self, item: Item, made: dict[Key, StepRecord]) -> None:
        if isinstance(item, Scalars):
            key: Key = (item.phase, item.step, 0, "sampled")
            values = self._scalars(item.values)
            if values:
                self._record(made, key, item.time).scalars.update(values)
        elif isinstance(item, Rewards):
            self._rewards(item, made)
        elif isinstance(item, Advantages):
            advantages, rewards = land(item.advantages), land(item.rewards)
            seen = reweight(advantages, rewards, Remedies(), group_ids=land(item.group_ids))
            part = self._part((item.phase, item.step, item.generation, "sampled"))
            part.advantages(seen.advantage_groups, seen.advantage_zero, None)
            self._emit(made, part, item.time)
        elif isinstance(item, Reweighted):
            part = self._part((item.phase, item.step, item.generation, "sampled"))
            part.advantages(item.advantage_groups, item.advantage_zero, item.applied)
            record = self._emit(made, part, item.time)
            record.scalars.update(self._scalars(item.scalars))

    def _rewards(self, item: Rewards, made: dict[Key, StepRecord]) -> None:
        groups = Groups.from_rewards(
            land(item.rewards),
            group_ids=land(item.group_ids),
            correct=land(item.correct),
            prompt_ids=land(item.prompt_ids),
            success_threshold=self._success_threshold,
            failure_threshold=self._failure_threshold,
        )
        part = self._part((item.phase, item.step, item.generation, item.stage))
        content = None
        if item.numbered:
            content = _content(groups)
            part.carried = self._carried(item, content)
        part.add(groups, content, item.filtered, item.dropped)
        self._emit(made, part, item.time)

    def _carried(self, item: Rewards, content: Any) -> bool:
        """Say whether this very generation was logged at an earlier step.

        The content decides together with the number, since some trainers number the generations
        of each step from zero.
        """
        key = (item.phase, item.stage, item.generation)
        first_step, first_content = self._generations.setdefault(key, (item.step, content))
        if first_content != content:
            self._generations[key] = (item.step, content)
            return False
        if len(self._generations) > REMEMBERED * 16:
            self._generations.popitem(last=False)
        return item.step > first_step

    def _part(self, key: Key) -> _Part:
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Part(key)
            if len(self._parts) > REMEMBERED:
                self._parts.popitem(last=False)
        return part

    def _emit(self, made: dict[Key, StepRecord], part: _Part, time: float) -> StepRecord:
        record = self._record(made, part.key, time)
        part.write(record)
        return record

    def _record(self, made: dict[Key, StepRecord], key: Key, time: float) -> StepRecord:
        record = made.get(key)
        if record is None:
            phase, step, generation, stage = key
            record = made[key] = StepRecord(
                step=step,
                phase=phase,  # type: ignore[arg-type]
                generation=generation,
                source=self._source,
                stage=stage,  # type: ignore[arg-type]
                scalars={},
            )
        record.time = time
        return record

    def _scalars(self, values: dict[Any, Any]) -> dict[str, Scalar]:
        """Convert values and names; a name that is canonical already wins over its aliases."""
        ready: dict[str, Scalar] = {}
        for given, value in values.items():
            name = self._names.get(given) or self._name(given)
            if name in ready and name != given:
                continue
            if type(value) is float:
                ready[name] = value if isfinite(value) else encode_scalar(value)
                continue
            with self._losses.guard(_scalar_reason(value), f"{name!r} was dropped"):
                read = number(value)
                ready[name] = None if read is None else encode_scalar(read)
        return ready

    def _name(self, given: Any) -> str:
        name = clean_text(canonical(str(given)))[:LONGEST_NAME] or "unnamed"
        if len(self._names) < NAMES_REMEMBERED:
            self._names[given] = name
        return name


class _Part:
    """Hold what one key carries besides its scalars."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.carried = False
        self._groups: Groups | None = None
        self._contents: list[Any] = []
        self._filtered = self._dropped = 0
        self._advantage_groups = self._advantage_zero = 0
        self._applied: int | None = None

    def add(self, groups: Groups, content: Any, filtered: int, dropped: int) -> None:
        """Take the groups of one call; the same ones again under one number change nothing."""
        if content is not None:
            if content in self._contents:
                return
            self._contents.append(content)
        self._groups = groups if self._groups is None else Groups.concat([self._groups, groups])
        self._filtered += filtered
        self._dropped += dropped

    def advantages(self, groups: int, zero: int, applied: int | None) -> None:
        """Take what became of the advantages of one call."""
        self._advantage_groups += groups
        self._advantage_zero += zero
        self._applied = applied if applied is not None else self._applied

    def write(self, record: StepRecord) -> None:
        """Put everything into a record."""
        if self._groups is not None:
            record.groups = _columns(self._groups)
            record.errored = self._groups.errored
        record.filtered, record.dropped = self._filtered, self._dropped
        record.advantage_groups = self._advantage_groups
        record.advantage_zero = self._advantage_zero
        record.carried, record.applied = self.carried, self._applied


def merge(older: StepRecord, newer: StepRecord) -> StepRecord:
    """Join two records of one key as the service would: what the newer one carries replaces."""
    scalars = {**older.scalars, **newer.scalars}
    reweighted = bool(newer.advantage_groups) or newer.applied is not None
    base = newer if newer.groups is not None else older
    if reweighted and base is older:
        older.advantage_groups = newer.advantage_groups
        older.advantage_zero = newer.advantage_zero
        older.applied = newer.applied
    base.scalars, base.time = scalars, newer.time
    return base


def key_of(record: StepRecord) -> Key:
    """Give the key of a record within its run, attempt and source."""
    return (record.phase, record.step, record.generation, record.stage)


def _columns(groups: Groups) -> GroupColumns:
    columns = groups.to_columns()
    for name in ("group_id", "prompt_id"):
        ids = columns.get(name)
        if ids is not None:
            columns[name] = [_short(text) for text in ids]
    return GroupColumns(**columns)  # type: ignore[arg-type]


def _short(given: Any) -> str:
    """Keep an id; of a long text (a whole prompt) keep the hash, texts stay with the trainer."""
    text: str = clean_text(str(given))
    if len(text) <= LONGEST_ID:
        return text
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _content(groups: Groups) -> Any:
    """Describe groups apart from their order, so that a shuffled resend is recognised."""
    columns = [groups.reward_max, groups.reward_min, np.round(groups.reward_mean, 9), groups.size]
    if groups.n_correct is not None:
        columns.append(groups.n_correct)
    order = np.lexsort(columns)
    return hash(
        (*(column[order].tobytes() for column in columns), frozenset(groups.group_id or ()))
    )


def _scalar_reason(value: Any) -> str:
    if isinstance(value, Unusable):
        return "scalar_unusable"
    return f"scalar_{type(value).__name__.lower()}"[:60]
