"""The first line of a spool, and the lock that says whether its process lives."""

from __future__ import annotations

import fcntl
import os
import socket
from typing import Any

import msgspec

LONGEST_HEADER = 64 * 2**20
CHUNK = 2**20


class Header(msgspec.Struct, kw_only=True):
    """Say whose data a spool holds, so that any process can bring it in."""

    version: int = 1
    url: str | None = None
    mode: str = "online"
    host: str = ""
    pid: int = 0
    attempt_key: str = ""
    registration: dict[str, Any] = {}


class Busy(OSError):
    """Say that another process holds this spool."""


def read_header(descriptor: int) -> tuple[Header, int]:
    """Read the header and the place of the first frame; ValueError when it is no spool."""
    start, newline = b"", -1
    while newline < 0 and len(start) < LONGEST_HEADER:
        piece = os.pread(descriptor, CHUNK, len(start))
        if not piece:
            break
        newline = piece.find(b"\n") + len(start) if b"\n" in piece else -1
        start += piece
    if newline < 0:
        raise ValueError("no header line: this is not an rlvitals spool")
    try:
        header = msgspec.json.decode(start[:newline], type=Header)
    except msgspec.MsgspecError as error:
        raise ValueError(f"unreadable header line: {error}") from None
    return header, newline + 1


def lock(descriptor: int) -> bool:
    """Lock a spool for this process; False on a file system that has no locks.

    Raises Busy while another process holds it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Busy("the process that writes this spool is still alive") from None
    except OSError:
        return False  # going on unlocked beats losing data
    return True


def check_present(descriptor: int) -> None:
    """Raise FileNotFoundError when a spool was deleted between being opened and being locked."""
    if os.fstat(descriptor).st_nlink == 0:
        raise FileNotFoundError("the spool was brought in meanwhile")


def check_writer(header: Header) -> None:
    """Raise Busy while the process that a header names lives; for where nothing can be locked."""
    if header.host == socket.gethostname() and _is_alive(header.pid):
        raise Busy(f"process {header.pid}, which writes this spool, is still alive")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return process > 0
