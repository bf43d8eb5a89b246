"""What `rlvitals up` keeps on this machine: its data folder, and where clients find it."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlvitals.discovery import home
from rlvitals_service.auth import write_secret
from rlvitals_service.folder_lock import Held, take


class CannotStart(Exception):
    """Something on this machine is in the way; the message says what to do."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Know the places in a data folder."""

    path: Path

    @property
    def postgres(self) -> Path:
        """Give the embedded database's own folder."""
        return self.path / "postgres"

    @property
    def token(self) -> Path:
        """Give the file with the local admin token, mode 0600."""
        return self.path / "token"

    def log(self, name: str) -> Path:
        """Give the path of one child's log."""
        return self.path / "logs" / f"{name}.log"

    def read_token(self) -> str:
        """Give the local admin token; the service wrote it when it first started."""
        return self.token.read_text(encoding="utf-8").strip()

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be the only launcher on this folder; CannotStart names the other one."""
        try:
            lock = take(self.path / "launcher.lock")
        except Held as held:
            msg = (
                f"rlvitals already runs on {self.path} (process {held.owner}): "
                "use that one, stop it first, or choose another folder with --data."
            )
            raise CannotStart(msg) from None
        except OSError as error:
            msg = f"Cannot use the folder {self.path} ({error.strerror}): choose one with --data."
            raise CannotStart(msg) from error
        with lock:
            yield


def default_data() -> Path:
    """Give the folder for real runs."""
    return home() / "data"


def service_file() -> Path:
    """Give the file in which clients of this user find the service."""
    return home() / "service.json"


def announce(url: str, token: str, dashboard_url: str | None) -> None:
    """Write down where the service is, for this user's eyes only."""
    known = {
        "url": url,
        "token": token,
        "dashboard_url": dashboard_url,
        "pid": os.getpid(),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_secret(service_file(), json.dumps(known, indent=2))


def withdraw() -> None:
    """Remove the note, if it is still this process's own."""
    if announced().get("pid") == os.getpid():
        service_file().unlink(missing_ok=True)


def announced() -> dict[str, Any]:
    """Read the note; empty when there is none."""
    try:
        known = json.loads(service_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def check_port(host: str, port: int, option: str) -> None:
    """Raise CannotStart when the port cannot be taken."""
    try:
        _bind(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            msg = f"Port {port} is taken by another program: choose another one with {option}."
        else:
            msg = f"Cannot listen on {host}:{port} ({error.strerror}): see --host and {option}."
        raise CannotStart(msg) from None


def free_port(host: str, wanted: int) -> int:
    """Give the wanted port if it is free, else any other."""
    try:
        return _bind(host, wanted)
    except OSError:
        return _bind(host, 0)


def _bind(host: str, port: int) -> int:
    """Take a port for a moment, as the servers will; give its number."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        number: int = probe.getsockname()[1]
        return number
