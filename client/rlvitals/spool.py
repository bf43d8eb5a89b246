"""Keep what is still to be sent in an append-only file that survives a killed process.

A spool is one JSON header line (how to register the run), then frames: length, CRC-32, kind and
a msgpack body. A torn frame at the end is ignored. Beside it, `<name>.ack` holds the position up
to which the service has everything. The file is locked while its process lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FRAME = struct.Struct("<IIc")
RECORD, ACKNOWLEDGEMENT, ALERT, LOST, FINISH = b"r", b"a", b"l", b"x", b"f"
REWIND_BYTES = 8 * 2**20
ACK_DIGITS = 20


class Header(msgspec.Struct, kw_only=True):
    """Say whose data a spool holds, so that any process can bring it in."""

    version: int = 1
    url: str | None = None
    mode: str = "online"
    host: str = ""
    pid: int = 0
    attempt_key: str = ""
    registration: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Frame:
    """Hold one frame and the position just behind it."""

    kind: bytes
    body: bytes
    end: int


class Busy(OSError):
    """Say that another process holds this spool."""


def pack(kind: bytes, body: bytes) -> bytes:
    """Frame a body."""
    return FRAME.pack(len(body), zlib.crc32(body), kind) + body


def parse(data: bytes, start: int) -> tuple[list[Frame], bool]:
    """Read whole frames out of data that begins at position `start`.

    Gives the frames and whether a damaged frame stopped the reading.
    """
    frames: list[Frame] = []
    at = 0
    while at + FRAME.size <= len(data):
        length, checksum, kind = FRAME.unpack_from(data, at)
        body = data[at + FRAME.size : at + FRAME.size + length]
        if len(body) < length:
            break
        if zlib.crc32(body) != checksum:
            return frames, True
        at += FRAME.size + length
        frames.append(Frame(kind, body, start + at))
    return frames, False


class Spool:
    """Append frames, read them back in order, forget what the service has.

    Positions only grow, also when the file is rewound or shortened behind them. Safe for one
    writing and one reading thread.
    """

    def __init__(self, path: Path, descriptor: int, header: Header, begin: int, cap: int) -> None:
        self.path, self.header = path, header
        self._descriptor, self._begin, self._cap = descriptor, begin, cap
        self._lock = threading.Lock()
        self._shift = 0  # position minus place in the file
        self._end = os.fstat(descriptor).st_size
        self._acked = min(max(_read_ack(path), begin), self._end)

    @classmethod
    def create(cls, path: Path, header: Header, cap: int) -> Spool:
        """Start a new spool file, readable by its owner only."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            _lock(descriptor)
            line = msgspec.json.encode(header) + b"\n"
            _write_all(descriptor, line)
        except OSError:
            os.close(descriptor)
            raise
        return cls(path, descriptor, header, len(line), cap)

    @classmethod
    def open(cls, path: Path, cap: int = 2**62) -> Spool:
        """Take over the spool of a dead process.

        Raises Busy while its process lives, ValueError when it is no spool.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            _lock(descriptor)
            header, begin = _read_header(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, header, begin, cap)

    @property
    def end(self) -> int:
        """Give the position behind the last frame."""
        return self._end

    @property
    def acknowledged(self) -> int:
        """Give the position up to which the service has everything."""
        return self._acked

    @property
    def pending_bytes(self) -> int:
        """Give how much is still to be sent."""
        return self._end - self._acked

    def append(self, frames: Iterable[bytes]) -> int:
        """Write frames with one system call; give how many old frames had to go for them.

        Raises OSError when the disk does not take them; nothing is half written then.
        """
        data = b"".join(frames)
        with self._lock:
            dropped = 0
            if self._place(self._end) + len(data) > self._cap:
                dropped = self._shorten(max(self._cap // 2 - len(data), 0))
            try:
                _write_all(self._descriptor, data)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, self._place(self._end))
                raise
            self._end += len(data)
            return dropped

    def read(self, position: int, limit: int = 2**20) -> list[Frame]:
        """Read whole frames from a position on, about `limit` bytes of them.

        A frame that the disk damaged ends the reading for good: what follows is skipped.
        """
        with self._lock:
            position = max(position, self._acked)
            data = os.pread(self._descriptor, limit, self._place(position))
            frames, damaged = parse(data, position)
            if not frames and not damaged and len(data) >= FRAME.size:
                length = FRAME.unpack_from(data)[0]
                if length <= self._end - position:
                    whole = FRAME.size + length
                    data = os.pread(self._descriptor, whole, self._place(position))
                    frames, damaged = parse(data, position)
            return frames

    def acknowledge(self, position: int) -> None:
        """Note that the service has everything up to a position."""
        with self._lock:
            if position <= self._acked or self._descriptor < 0:
                return
            self._acked = position
            if position == self._end and self._place(position) > REWIND_BYTES:
                self._rewind()
            else:
                _write_ack(self.path, self._place(position))

    def close(self) -> None:
        """Let go of the file and keep it on disk."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def delete(self) -> None:
        """Remove the file; everything in it is with the service."""
        with self._lock:
            for path in (self.path, _ack_path(self.path)):
                path.unlink(missing_ok=True)
        self.close()

    def abandon_in_child(self) -> None:
        """Close a forked child's copy, so that it does not keep the lock of a dead parent."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

    def _place(self, position: int) -> int:
        return position - self._shift

    def _rewind(self) -> None:
        # The acknowledgement goes first: a crash between the two only sends again.
        _write_ack(self.path, self._begin)
        os.ftruncate(self._descriptor, self._begin)
        self._shift = self._end - self._begin

    def _shorten(self, keep: int) -> int:
        """Rewrite the file with its newest frames; give how many unsent ones were lost."""
        place = max(self._place(self._acked), self._begin)
        frames, _ = parse(_pread_all(self._descriptor, place), self._acked)
        kept = [frame for frame in frames if frame.end > self._end - keep]
        start = kept[0].end - len(kept[0].body) - FRAME.size if kept else self._end
        self._replace(b"".join(pack(frame.kind, frame.body) for frame in kept))
        self._shift = start - self._begin
        self._acked = start
        _write_ack(self.path, self._begin)
        return sum(frame.kind == RECORD for frame in frames[: len(frames) - len(kept)])

    def _replace(self, data: bytes) -> None:
        fresh = self.path.with_suffix(".new")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(fresh, flags, 0o600)
        try:
            _lock(descriptor)
            _write_all(descriptor, os.pread(self._descriptor, self._begin, 0) + data)
            fresh.replace(self.path)
        except OSError:
            os.close(descriptor)
            fresh.unlink(missing_ok=True)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Busy("the process that writes this spool is still alive") from None
    except OSError:
        return  # a file system without locks: going on unlocked beats losing data


def _read_header(descriptor: int) -> tuple[Header, int]:
    start = os.pread(descriptor, 2**20, 0)
    line, newline, _ = start.partition(b"\n")
    if not newline:
        raise ValueError("no header line: this is not an rlvitals spool")
    try:
        header = msgspec.json.decode(line, type=Header)
    except msgspec.MsgspecError as error:
        raise ValueError(f"unreadable header line: {error}") from None
    return header, len(line) + 1


def _ack_path(path: Path) -> Path:
    return path.with_suffix(".ack")


def _read_ack(path: Path) -> int:
    try:
        return int(_ack_path(path).read_bytes())
    except (OSError, ValueError):
        return 0


def _write_ack(path: Path, place: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(_ack_path(path), flags, 0o600)
    try:
        os.pwrite(descriptor, b"%0*d" % (ACK_DIGITS, place), 0)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _pread_all(descriptor: int, place: int) -> bytes:
    size = os.fstat(descriptor).st_size - place
    return os.pread(descriptor, size, place) if size > 0 else b""
