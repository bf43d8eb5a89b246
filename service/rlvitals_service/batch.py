"""Decode a batch of records so that one bad record spoils nothing but itself; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rlvitals.records import Acknowledgement, AlertRecord, Count, Scalar, StepBatch, StepRecord
from rlvitals_service.errors import BadRequest, Invalid

JSON = "application/json"
MSGPACK = "application/msgpack"
MEDIA_TYPES = (JSON, MSGPACK, "application/x-msgpack")

PATH = re.compile(r" - at `(?:key` in `)?\$\.?(.*)`$")


class _Whole(msgspec.Struct, forbid_unknown_fields=True):
    """The shape of a batch whose records are all good, decoded in one go."""

    records: list[StepRecord] = []
    acknowledgements: list[Acknowledgement] = []
    alerts: list[AlertRecord] = []
    lost: dict[str, Count] = {}


class _Loose(msgspec.Struct, forbid_unknown_fields=True):
    """The shape of a batch whose records are plain objects from an indulgent parser."""

    records: list[Any] = []
    acknowledgements: list[Acknowledgement] = []
    alerts: list[AlertRecord] = []
    lost: dict[str, Count] = {}


@dataclass(slots=True)
class Batch:
    """Hold what could be decoded, each record with its index, and why the rest could not."""

    records: list[tuple[int, StepRecord]]
    acknowledgements: list[Acknowledgement]
    alerts: list[AlertRecord]
    lost: dict[str, int]
    rejected: list[dict[str, Any]] = field(default_factory=list)

    def reject(self, index: int, reason: str) -> None:
        """Note that a record was not taken, and why."""
        self.rejected.append({"index": index, "reason": reason})


_JSON_WHOLE = msgspec.json.Decoder(_Whole)
_JSON_BATCH = msgspec.json.Decoder(StepBatch)
_JSON_RECORD = msgspec.json.Decoder(StepRecord)
_PACKED_WHOLE = msgspec.msgpack.Decoder(_Whole)
_PACKED_BATCH = msgspec.msgpack.Decoder(StepBatch)
_PACKED_RECORD = msgspec.msgpack.Decoder(StepRecord)


def decode(body: bytes, *, packed: bool) -> Batch:
    """Decode JSON or msgpack; BadRequest when it is neither, Invalid when the envelope is wrong."""
    try:
        return _decode_packed(body) if packed else _decode_json(body)
    except msgspec.ValidationError as error:
        field_name, reason = explain(error)
        message = f"{field_name}: {reason}" if field_name else reason
        raise Invalid(message, field=field_name) from None
    except (ValueError, RecursionError) as error:
        msg = f"The body is not valid {'msgpack' if packed else 'JSON'}: {error}"
        raise BadRequest(msg) from None


def explain(error: Exception) -> tuple[str | None, str]:
    """Split a decoding error into the field's name and the reason."""
    text = str(error)
    found = PATH.search(text)
    return (found[1] or None, text[: found.start()]) if found else (None, text)


def _decode_json(body: bytes) -> Batch:
    try:
        found = _JSON_WHOLE.decode(body)
        return _batch(found, enumerate(found.records))
    except msgspec.ValidationError:
        envelope = _JSON_BATCH.decode(body)
        return _one_by_one(envelope, envelope.records, _JSON_RECORD.decode)
    except msgspec.DecodeError:
        return _decode_loosely(body)


def _decode_loosely(body: bytes) -> Batch:
    """Decode what strict JSON forbids and trainers write: bare NaN, lone surrogates."""
    plain = json.loads(body.decode("utf-8", "replace"))
    envelope = msgspec.convert(plain, _Loose)
    return _one_by_one(envelope, envelope.records, _convert)


def _convert(plain: Any) -> StepRecord:
    return msgspec.convert(plain, StepRecord)


def _decode_packed(body: bytes) -> Batch:
    try:
        found = _PACKED_WHOLE.decode(body)
        return _batch(found, enumerate(found.records))
    except msgspec.DecodeError:
        # A text that is not UTF-8 spoils its own record only: skipping does not look inside.
        envelope = _PACKED_BATCH.decode(body)
        return _one_by_one(envelope, envelope.records, _PACKED_RECORD.decode)


def _one_by_one(
    envelope: StepBatch | _Loose, records: Iterable[Any], read: Callable[[Any], StepRecord]
) -> Batch:
    batch = _batch(envelope, ())
    for index, record in enumerate(records):
        try:
            batch.records.append((index, read(record)))
        except (ValueError, RecursionError) as error:  # noqa: PERF203 - this is the point
            batch.reject(index, _reason(index, record, error))
    return batch


def _batch(found: StepBatch | _Whole | _Loose, records: Iterable[tuple[int, StepRecord]]) -> Batch:
    return Batch(list(records), found.acknowledgements, found.alerts, dict(found.lost))


def _reason(index: int, record: Any, error: Exception) -> str:
    """Name the field of a record that could not be decoded, and what is wrong with it."""
    name, reason = explain(error)
    if name == "scalars[...]":
        name, reason = _bad_scalar(record) or (name, reason)
    where = f"records[{index}]"
    if name:
        where += name if name.startswith("[") else f".{name}"
    return f"{where}: {reason}"


def _bad_scalar(record: Any) -> tuple[str, str] | None:
    try:
        plain = msgspec.json.decode(record) if isinstance(record, msgspec.Raw) else record
        scalars = plain["scalars"]
    except (ValueError, TypeError, RecursionError):
        return None
    for name, value in scalars.items():
        reason = _misfit(value)
        if reason:
            return f"scalars[{str(name)!r:.200}]", reason
    return None


def _misfit(value: Any) -> str | None:
    try:
        msgspec.convert(value, Scalar)
    except ValueError as error:
        return explain(error)[1]
    return None
