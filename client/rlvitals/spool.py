"""Keep what is still to be sent in an append-only file that survives a killed process.

A spool is one JSON header line (how to register the run), then frames. A torn frame at the end is
ignored. Beside it, `<name>.ack` holds the position up to which the service has everything. The
file is locked while its process lives.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

import msgspec

from rlvitals.frames import RECORD, Frame, is_torn, parse
from rlvitals.spool_header import Busy, Header, check_present, check_writer, lock, read_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["Busy", "Header", "Spool"]

REWIND_BYTES = 8 * 2**20
ACK_DIGITS = 20
CHUNK = 2**20
CLOSE_SECONDS = 0.2


class Spool:
    """Append frames, read them back in order, forget what the service has.

    Positions only grow, also when the file is rewound or shortened behind them. Safe for one
    writing and one reading thread.
    """

    def __init__(self, path: Path, descriptor: int, header: Header, begin: int, cap: int) -> None:
        self.path, self.header = path, header
        self._descriptor, self._begin, self._cap = descriptor, begin, cap
        self._lock = threading.Lock()
        self._gaps: set[int] = set()  # positions where something unreadable begins
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
            lock(descriptor)
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
            locked = lock(descriptor)
            check_present(descriptor)
            header, begin = read_header(descriptor)
            if not locked:
                check_writer(header)
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

    @property
    def damaged(self) -> int:
        """Count the stretches of the file that could not be read so far."""
        return len(self._gaps)

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
                with contextlib.suppress(OSError):
                    self._end = os.fstat(self._descriptor).st_size + self._shift
                raise
            self._end += len(data)
            return dropped

    def read(self, position: int, limit: int = 2**20) -> list[Frame]:
        """Read whole frames from a position on, about `limit` bytes of them.

        What the disk damaged is skipped and counted in `damaged`.
        """
        with self._lock:
            position = max(position, self._acked)
            frames = self._frames(position, limit)
            expected = position
            for frame in frames:
                if frame.begin != expected:
                    self._gaps.add(expected)
                expected = frame.end
            return frames

    def _frames(self, position: int, limit: int) -> list[Frame]:
        while position < self._end:
            available = self._end - position
            data = os.pread(self._descriptor, min(limit, available), self._place(position))
            frames, needed = parse(data, position, available)
            if frames:
                return frames
            if needed > len(data):
                limit = needed
            elif len(data) == available:
                if not is_torn(data):
                    self._gaps.add(position)
                break
            else:
                position += max(len(data) - 1, 1)  # the mark has two bytes
        return []

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
        if not self._lock.acquire(timeout=CLOSE_SECONDS):
            return  # a call on a disk that hangs holds it; the end of the process lets go
        try:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
        finally:
            self._lock.release()

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
        start, dropped = self._acked, 0
        for frame in self._all_from(self._acked):
            if frame.end > self._end - keep:
                break
            start, dropped = frame.end, dropped + (frame.kind == RECORD)
        # As in rewinding: a crash between the two only sends again.
        _write_ack(self.path, self._begin)
        self._replace(start)
        self._shift = start - self._begin
        self._acked = start
        return dropped

    def _all_from(self, position: int) -> Iterator[Frame]:
        while found := self._frames(position, CHUNK):
            yield from found
            position = found[-1].end

    def _replace(self, start: int) -> None:
        fresh = self.path.with_suffix(".new")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(fresh, flags, 0o600)
        try:
            lock(descriptor)
            self._copy(descriptor, 0, self._begin)
            self._copy(descriptor, self._place(start), self._place(self._end))
            fresh.replace(self.path)
        except OSError:
            os.close(descriptor)
            fresh.unlink(missing_ok=True)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor

    def _copy(self, target: int, place: int, until: int) -> None:
        while place < until:
            piece = os.pread(self._descriptor, min(CHUNK, until - place), place)
            if not piece:
                raise OSError("the spool is shorter than it was")
            _write_all(target, piece)
            place += len(piece)


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
