"""Find and end PostgreSQL processes that outlived the program that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from rlvitals_service.postgres_account import PostgresError

# Asked politely first; a process that hangs is killed only at the end.
PATIENCE = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
POLL_SECONDS = 0.02


def end_orphans(cluster: Path) -> None:
    """End every server process that still works in the cluster; the caller holds its lock."""
    orphans = processes_in(cluster)
    for number, seconds in PATIENCE:
        for pid in _recipients(orphans, number, _pid_in_file(cluster)):
            _signal(pid, number)
        deadline = time.monotonic() + seconds
        while orphans and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            orphans = processes_in(cluster)
    if orphans:
        msg = f"PostgreSQL processes {orphans} still use {cluster}: end them, then start again."
        raise PostgresError(msg)
    _drop_stale_pid_file(cluster)


def processes_in(cluster: Path) -> list[int]:
    """List the server processes of the cluster.

    Every PostgreSQL process works in its data folder, so where /proc tells the working folder,
    backends whose postmaster was killed are found too, and a reused process id is not mistaken
    for a server. Elsewhere the pid file and the program's name are all there is to ask.
    """
    if Path("/proc/self/cwd").exists():
        candidates = Path("/proc").glob("[0-9]*")
        return sorted(int(path.name) for path in candidates if _works_in(path, cluster))
    postmaster = _pid_in_file(cluster)
    return [postmaster] if postmaster and _program(postmaster).endswith("postgres") else []


def _recipients(orphans: list[int], number: signal.Signals, postmaster: int | None) -> list[int]:
    # SIGINT asks a postmaster to shut down, but means something else to each of its children:
    # those of a dead postmaster notice by themselves.
    return [pid for pid in orphans if number != signal.SIGINT or pid == postmaster]


def _works_in(process: Path, cluster: Path) -> bool:
    try:
        name = (process / "comm").read_text().strip()
        return name == "postgres" and (process / "cwd").samefile(cluster)
    except OSError:  # ended meanwhile, a zombie, or not ours to see
        return False


def _program(pid: int) -> str:
    asked = subprocess.run(
        ["/bin/ps", "-p", str(pid), "-o", "comm="], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip()


def _pid_in_file(cluster: Path) -> int | None:
    try:
        return int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        msg = f"PostgreSQL process {pid} belongs to another user: end it, then start again."
        raise PostgresError(msg) from error


def _drop_stale_pid_file(cluster: Path) -> None:
    # PostgreSQL clears a dead server's file itself, but takes a reused process id for a server.
    pid = _pid_in_file(cluster)
    if pid is not None:
        (cluster / "postmaster.pid").unlink(missing_ok=True)
