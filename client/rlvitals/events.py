"""Read server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    import urllib3


def events(response: urllib3.BaseHTTPResponse) -> Iterator[dict[str, Any]]:
    """Read server-sent events; comments, which keep the line open, are skipped."""
    fields: dict[str, str] = {}
    rest = b""
    for piece in response.stream(2**16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if text and not text.startswith(":"):
                name, _, value = text.partition(":")
                fields[name] = fields.get(name, "") + value.removeprefix(" ")
            elif not text and "data" in fields:
                yield _event(fields)
                fields = {}


def _event(fields: dict[str, str]) -> dict[str, Any]:
    number = fields.get("id", "")
    return {
        "event": fields.get("event", "message"),
        "id": int(number) if number.isdigit() else None,
        "data": msgspec.json.decode(fields["data"]),
    }
