"""Pack the groups of a step small, and give them back bit by bit the same; pure.

Codec 1: zstd of a msgpack map of columns. Float columns are byte-shuffled float64 (all first
bytes, then all second bytes, …), which compresses far better; missing is NaN. Integer columns
are int32, missing is -1. Labels are lists of texts.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import zstandard

from rlvitals.metrics.groups import Groups

CODEC = 1
LEVEL = 3
FLOATS = ("reward_mean", "reward_std", "reward_min", "reward_max")
INTEGERS = ("size", "n_correct", "n_failed")
LABELS = ("group_id", "prompt_id")

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, Any])


def to_columns(groups: Groups) -> bytes:
    """Lay groups out as bytes, the same bytes for the same groups."""
    columns: dict[str, Any] = {}
    for name in INTEGERS:
        column = getattr(groups, name)
        columns[name] = None if column is None else np.asarray(column, "<i4").tobytes()
    for name in FLOATS:
        column = np.asarray(getattr(groups, name), "<f8")
        columns[name] = column.view(np.uint8).reshape(-1, 8).T.tobytes()
    for name in LABELS:
        columns[name] = getattr(groups, name)
    return _encoder.encode(columns)


def compress(columns: bytes) -> bytes:
    """Compress what `to_columns` gave."""
    return zstandard.compress(columns, LEVEL)


def pack(groups: Groups) -> bytes:
    """Pack groups with the present codec; `errored` is not part of it."""
    return compress(to_columns(groups))


def unpack(codec: int, payload: bytes) -> Groups:
    """Give packed groups back; ValueError for a codec of a later version."""
    if codec != CODEC:
        msg = f"codec {codec} is unknown to this version; upgrade rlvitals"
        raise ValueError(msg)
    columns = _decoder.decode(zstandard.decompress(payload))
    read: dict[str, Any] = {name: columns[name] for name in LABELS}
    for name in INTEGERS:
        column = columns[name]
        read[name] = None if column is None else np.frombuffer(column, "<i4").astype(np.int64)
    for name in FLOATS:
        shuffled = np.frombuffer(columns[name], np.uint8).reshape(8, -1)
        read[name] = np.ascontiguousarray(shuffled.T).view("<f8").ravel()
    return Groups(**read)
