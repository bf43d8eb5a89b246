"""Where a list of runs goes on: the sort value and the id of the last run of a page; pure."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any
from uuid import UUID

from rlvitals_service.errors import Invalid

MOMENTS = ("last_seen_at", "started_at")


def write_cursor(sort: str, value: Any, run_id: UUID) -> str:
    """Write a place in a sort order as an opaque text."""
    plain = value.isoformat() if isinstance(value, datetime) else value
    text = json.dumps([sort, plain, str(run_id)])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, sort: str) -> tuple[Any, UUID]:
    """Read a place back; Invalid when it is none, or one of another sort order."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found, value, run_id = json.loads(base64.urlsafe_b64decode(padded))
        place = _value(sort, value), UUID(run_id)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        msg = "cursor: not one that this service gave; leave it out to begin anew."
        raise Invalid(msg, field="cursor") from error
    if found != sort:
        msg = f"cursor: it belongs to sort={found}; leave it out to begin anew."
        raise Invalid(msg, field="cursor")
    return place


def _value(sort: str, value: Any) -> Any:
    """Check that a value may stand in a sort order."""
    name = sort.removeprefix("-")
    if name in MOMENTS:
        return datetime.fromisoformat(value)
    if name == "name":
        return str(value).replace("\x00", "")
    if name == "acr":
        return float(value)
    if not -(2**63) <= value < 2**63:
        msg = "out of range"
        raise ValueError(msg)
    return int(value)
