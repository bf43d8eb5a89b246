"""What one source said about one step, and how a later word of it is merged in; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from rlvitals.metrics.catalog import canonical
from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally
from rlvitals.records import GroupColumns, StepRecord, decode_scalar
from rlvitals_service import packing
from rlvitals_service.cleaning import clean_text

StepKey = tuple[int, str, int]  # attempt, phase, step
PartKey = tuple[int, str, int, int, str, str]  # and generation, source, stage

LARGEST_GROUP = 16_384
MOST_GROUPS = 65_536
MOST_SCALARS = 2_000
LONGEST_NAME = 200
LONGEST_LABEL = 512
LARGEST_COUNT = 2**40  # sums of many must fit 64 bits
COUNTERS = ("dropped", "errored", "filtered", "advantage_groups", "advantage_zero")

_pack = msgspec.msgpack.Encoder(order="sorted").encode
_unpack_scalars = msgspec.msgpack.Decoder(dict[str, float]).decode
_unpack_tally = msgspec.msgpack.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class Part:
    """Hold the merged words of one key.

    ``tally`` counts the groups alone; the counters stand beside it. ``identified`` says that the
    groups have ids, so that groups of other parts may be rows of the same group. ``groups`` is
    None while the packed groups stay in the database.
    """

    key: PartKey
    scalars: dict[str, float] = field(default_factory=dict)
    tally: Tally | None = None
    groups: Groups | None = None
    groups_hash: bytes | None = None
    packed: bytes | None = None
    identified: bool = False
    dropped: int = 0
    errored: int = 0
    filtered: int = 0
    advantage_groups: int = 0
    advantage_zero: int = 0
    carried: bool = False
    applied: int | None = None
    client_time: float | None = None

    @property
    def step_key(self) -> StepKey:
        """Give the key of the step that this is a part of."""
        return self.key[:3]

    @property
    def stage(self) -> str:
        """Say whether the groups were seen before or after dynamic sampling."""
        return self.key[5]

    @property
    def counted(self) -> bool:
        """Say whether the part tells anything about groups that counts at this step."""
        return not self.carried and (
            self.tally is not None or any(getattr(self, name) for name in COUNTERS)
        )

    def content(self) -> tuple[Any, ...]:
        """Give all that a resend would have to repeat to change nothing."""
        return (
            _pack(self.scalars),
            _pack(self.tally.to_dict()) if self.tally else None,
            self.groups_hash,
            *(getattr(self, name) for name in COUNTERS),
            self.carried,
            self.applied,
            self.client_time,
        )


def merge(old: Part | None, record: StepRecord) -> Part:
    """Merge a record into what is known of its key.

    Groups or counts replace the old ones together with their counters; without any, counters
    that are not zero replace; each scalar named replaces. Raises ValueError naming the field.
    """
    check(record)
    part = replace(old) if old else Part(key_of(record))
    part.scalars = {**part.scalars, **scalars_of(record)}
    if record.groups is not None or record.counts is not None:
        _replace_groups(part, record)
    else:
        for name in COUNTERS:
            setattr(part, name, getattr(record, name) or getattr(part, name))
        if record.advantage_groups:
            part.advantage_zero = record.advantage_zero
        part.carried = record.carried or part.carried
    part.applied = part.applied if record.applied is None else record.applied
    part.client_time = part.client_time if record.time is None else record.time
    return part


def key_of(record: StepRecord) -> PartKey:
    """Give the key of a record within its run."""
    source = clean_text(record.source)
    return (record.attempt, record.phase, record.step, record.generation, source, record.stage)


def scalars_of(record: StepRecord) -> dict[str, float]:
    """Read the scalars under their canonical names; null says nothing."""
    read: dict[str, float] = {}
    for name, given in record.scalars.items():
        value = given if type(given) is float else decode_scalar(given)
        if value is not None:
            read[canonical_name(name)] = value
    return read


@lru_cache(maxsize=16_384)
def canonical_name(name: str) -> str:
    """Give the canonical name of a scalar, storable; ValueError when it is empty or too long."""
    if not 0 < len(name) <= LONGEST_NAME:
        msg = f"scalars: a name has {len(name)} characters; use 1 to {LONGEST_NAME}"
        raise ValueError(msg)
    return clean_text(canonical(name)) or name


def check(record: StepRecord) -> None:
    """Refuse what the types let through and storage or arithmetic would not survive."""
    if len(record.scalars) > MOST_SCALARS:
        msg = f"scalars: {len(record.scalars)} names; at most {MOST_SCALARS} a record"
        raise ValueError(msg)
    for name in COUNTERS:
        if getattr(record, name) > LARGEST_COUNT:
            msg = f"{name}: more than {LARGEST_COUNT}"
            raise ValueError(msg)
    if record.advantage_zero > record.advantage_groups:
        msg = "advantage_zero: more than advantage_groups"
        raise ValueError(msg)
    if record.time is not None and not math.isfinite(record.time):
        msg = "time: not a finite number of seconds"
        raise ValueError(msg)
    if record.groups is not None and record.counts is not None:
        msg = "counts: send either groups or counts, not both"
        raise ValueError(msg)


def _replace_groups(part: Part, record: StepRecord) -> None:
    if record.groups is not None:
        groups = read_groups(record.groups)
        columns = packing.to_columns(groups)
        part.tally = Tally.from_groups(groups)
        part.groups, part.packed = groups, columns
        part.groups_hash = blake2b(columns, digest_size=16).digest()
        part.identified = groups.group_id is not None
    else:
        part.tally = read_counts(record.counts or {})
        part.groups, part.packed, part.groups_hash, part.identified = None, None, None, False
    for name in COUNTERS:
        setattr(part, name, getattr(record, name))
    part.carried = record.carried


def read_groups(columns: GroupColumns) -> Groups:
    """Read and check the columns of a record; ValueError names the column."""
    length = len(columns.size)
    if length > MOST_GROUPS:
        msg = f"groups.size: {length} groups; at most {MOST_GROUPS} a record"
        raise ValueError(msg)
    if max(columns.size, default=0) > LARGEST_GROUP:
        msg = f"groups.size: over {LARGEST_GROUP} rollouts in one group"
        raise ValueError(msg)
    given = {name: getattr(columns, name) for name in columns.__struct_fields__}
    for name in ("group_id", "prompt_id"):
        given[name] = _labels(name, given[name])
    try:
        return Groups.from_columns(given)
    except ValueError as error:
        msg = f"groups.{error}"
        raise ValueError(msg) from None


def _labels(name: str, labels: list[str] | None) -> list[str] | None:
    if labels is None:
        return None
    for index, label in enumerate(labels):
        if len(label) > LONGEST_LABEL:
            msg = f"groups.{name}[{index}]: over {LONGEST_LABEL} characters; send a hash of it"
            raise ValueError(msg)
    joined = "".join(labels)
    return labels if joined.isascii() and "\x00" not in joined else list(map(clean_text, labels))


def read_counts(counts: Mapping[str, Sequence[int]]) -> Tally:
    """Read ready-made counts; ValueError names the group size."""
    read: dict[int, Sequence[int]] = {}
    for name, row in counts.items():
        size = int(name) if name.isascii() and name.isdigit() and len(name) < 6 else -1  # noqa: PLR2004
        if not 0 <= size <= LARGEST_GROUP:
            msg = f"counts[{name[:20]!r}]: not a group size from 0 to {LARGEST_GROUP}"
            raise ValueError(msg)
        if len(row) != size + 1:
            msg = f"counts['{size}']: {len(row)} entries; want {size + 1}, for c = 0..{size}"
            raise ValueError(msg)
        if sum(row) > LARGEST_COUNT:
            msg = f"counts['{size}']: more than {LARGEST_COUNT} groups"
            raise ValueError(msg)
        read[size] = row
    return Tally.from_counts(read)


def pack_scalars(scalars: Mapping[str, float]) -> bytes | None:
    """Pack scalars for storage, the same bytes for the same scalars."""
    return _pack(scalars) if scalars else None


def unpack_scalars(payload: bytes | None) -> dict[str, float]:
    """Give packed scalars back."""
    return _unpack_scalars(payload) if payload else {}


def pack_tally(tally: Tally | None) -> bytes | None:
    """Pack a tally for storage."""
    return None if tally is None else _pack(tally.to_dict())


def unpack_tally(payload: bytes | None) -> Tally | None:
    """Give a packed tally back."""
    return None if payload is None else Tally.from_dict(_unpack_tally(payload))
