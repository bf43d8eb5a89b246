"""The frames of a spool: a mark, length, CRC-32 and kind, then a msgpack body.

The mark lets reading go on behind bytes that a disk or a crash has broken.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

MARK = b"\xf5\xfa"  # neither byte occurs in a text
HEAD = struct.Struct("<2sIIc")
RECORD, ACKNOWLEDGEMENT, ALERT, LOST, FINISH = b"r", b"a", b"l", b"x", b"f"


@dataclass(frozen=True, slots=True)
class Frame:
    """Hold one frame and the position just behind it."""

    kind: bytes
    body: bytes
    end: int

    @property
    def begin(self) -> int:
        """Give the position of its first byte."""
        return self.end - len(self.body) - HEAD.size


def pack(kind: bytes, body: bytes) -> bytes:
    """Frame a body."""
    return HEAD.pack(MARK, len(body), _checksum(kind, body), kind) + body


def parse(data: bytes, start: int, available: int | None = None) -> tuple[list[Frame], int]:
    """Read whole frames out of data that begins at position `start`; skip what is broken.

    `available` counts the bytes there are from `start` on, `data` being the first of them. Also
    gives how many bytes a frame needs that begins in `data` and ends behind it; 0 for none.
    """
    available = len(data) if available is None else available
    frames: list[Frame] = []
    at = 0
    while (at := data.find(MARK, at)) >= 0:
        end = _end(data, at)
        if end > available:
            at += 1
        elif end > len(data):
            return frames, end
        else:
            _, _, checksum, kind = HEAD.unpack_from(data, at)
            body = data[at + HEAD.size : end]
            if _checksum(kind, body) == checksum:
                frames.append(Frame(kind, body, start + end))
                at = end
            else:
                at += 1
    return frames, 0


def is_torn(data: bytes) -> bool:
    """Say whether the last bytes of a file are the beginning of a frame, cut off by a crash."""
    return data.startswith(MARK[: len(data)]) and _end(data, 0) > len(data)


def _end(data: bytes, at: int) -> int:
    if at + HEAD.size > len(data):
        return at + HEAD.size
    length: int = HEAD.unpack_from(data, at)[1]
    return at + HEAD.size + length


def _checksum(kind: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(kind))
