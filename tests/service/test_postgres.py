"""The life of the embedded PostgreSQL: real servers, real kills."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text

from rlvitals_service.postgres import EmbeddedPostgres, PostgresError
from rlvitals_service.postgres_account import find_binaries, server_account
from rlvitals_service.postgres_cluster import server_command, socket_folder
from rlvitals_service.postgres_orphan import processes_in

ROWS = 20_000
# A program that owns a server until its standard input ends.
OWNER = """
import sys
from pathlib import Path
from rlvitals_service.postgres import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1])) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    """Return a data folder with a cluster in it and no server; tests leave it that way."""
    parent = Path(tempfile.mkdtemp(prefix="rlv-"))
    parent.chmod(0o755)
    with EmbeddedPostgres(parent / "data"):
        pass
    yield parent / "data"
    shutil.rmtree(parent)


def connect(url: str) -> psycopg.Connection[tuple[int]]:
    """Open a plain connection to a SQLAlchemy URL."""
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def store(url: str, table: str) -> None:
    """Commit rows into a new table."""
    with connect(url) as session:
        session.execute(f"CREATE TABLE {table} AS SELECT generate_series(1, {ROWS}) AS n".encode())


def stored(url: str, table: str) -> int:
    """Count the rows of a table."""
    with connect(url) as session:
        found = session.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert found is not None
    return found[0]


def wait_until(fact: Callable[[], bool], seconds: float = 30.0) -> None:
    """Return once the fact holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def postmaster_of(data_dir: Path) -> int:
    """Read the server's process id."""
    return int((data_dir / "cluster" / "postmaster.pid").read_text().split()[0])


def test_first_start_makes_a_utf8_database_on_a_private_socket_with_fsync_on(
    tmp_path: Path,
) -> None:
    """A first start yields a URL that SQLAlchemy opens, durable and closed to the network."""
    with EmbeddedPostgres(tmp_path / "data", database="ward") as server:
        engine = create_engine(server.url)
        with engine.connect() as session:
            shown = {
                name: session.execute(text(f"SHOW {name}")).scalar_one()
                for name in ("server_encoding", "fsync", "listen_addresses", "wal_compression")
            }
            assert session.execute(text("SELECT current_database()")).scalar_one() == "ward"
        engine.dispose()
    assert shown == {
        "server_encoding": "UTF8",
        "fsync": "on",
        "listen_addresses": "",
        "wal_compression": "pglz",
    }
    assert (tmp_path / "data" / "cluster").stat().st_mode & 0o777 == 0o700


def test_rows_survive_a_restart_and_stop_may_be_called_again(data_dir: Path) -> None:
    """A stopped server keeps its rows, and a second stop does nothing."""
    server = EmbeddedPostgres(data_dir)
    store(server.start(), "restarted")
    assert server.is_running
    server.stop()
    server.stop()
    assert not server.is_running
    assert processes_in(data_dir / "cluster") == []
    assert stored(server.start(), "restarted") == ROWS
    server.stop()


def test_committed_rows_survive_kill_9_of_the_postmaster(data_dir: Path) -> None:
    """What was committed is there after the server was killed without warning."""
    server = EmbeddedPostgres(data_dir)
    store(server.start(), "killed")
    os.kill(postmaster_of(data_dir), signal.SIGKILL)
    wait_until(lambda: not server.is_running)
    assert stored(server.start(), "killed") == ROWS
    server.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_the_server_ends_by_itself_after_kill_9_of_its_owner(data_dir: Path) -> None:
    """A killed owner leaves no server behind, and its committed rows are there."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    store(owner.stdout.readline().strip(), "orphaned")
    owner.kill()
    owner.communicate(timeout=30)
    wait_until(lambda: processes_in(data_dir / "cluster") == [])
    with EmbeddedPostgres(data_dir) as server:
        assert stored(server.url, "orphaned") == ROWS


def test_a_live_orphan_is_ended_before_a_new_server_starts(data_dir: Path) -> None:
    """A server whose owner is gone gives way, with everything it had committed."""
    cluster = data_dir / "cluster"
    account = server_account(cluster)
    orphan = subprocess.Popen(
        server_command(cluster, account, find_binaries(account)),
        cwd=cluster,
        user=account.uid if account.differs else None,
        stderr=subprocess.DEVNULL,
    )
    server = EmbeddedPostgres(data_dir)
    wait_until((cluster / ".s.PGSQL.5432").exists)
    wait_until(lambda: "ready" in (cluster / "postmaster.pid").read_text())
    store(server.url, "adopted")
    server.start()
    assert orphan.wait(timeout=30) == 0
    assert stored(server.url, "adopted") == ROWS
    server.stop()


def test_a_reused_process_id_is_not_taken_for_a_server(data_dir: Path) -> None:
    """A stale pid file that names a stranger does not stop the start, nor the stranger."""
    stranger = subprocess.Popen(["sleep", "60"])
    note = data_dir / "cluster" / "postmaster.pid"
    note.write_text(f"{stranger.pid}\n{data_dir / 'cluster'}\n0\n5432\n\n\n\nready\n")
    with EmbeddedPostgres(data_dir):
        assert stranger.poll() is None
    stranger.terminate()
    stranger.wait()


def test_a_cluster_of_another_version_is_refused_with_both_versions(data_dir: Path) -> None:
    """Another major version's files are left alone, and the message says what to do."""
    note = data_dir / "cluster" / "PG_VERSION"
    ours = note.read_text()
    note.write_text("15\n")
    try:
        with pytest.raises(PostgresError, match=r"PostgreSQL 15.*PostgreSQL 18.*--data.*pg_dump"):
            EmbeddedPostgres(data_dir).start()
    finally:
        note.write_text(ours)


def test_a_second_owner_is_refused_by_process_id_until_the_first_stops(data_dir: Path) -> None:
    """One process at a time owns a data folder."""
    with (
        EmbeddedPostgres(data_dir),
        pytest.raises(PostgresError, match=rf"in use by process {os.getpid()}.*--data"),
    ):
        EmbeddedPostgres(data_dir).start()
    with EmbeddedPostgres(data_dir) as second:
        assert second.is_running


def test_the_server_outlives_the_thread_that_started_it(data_dir: Path) -> None:
    """Starting from a short thread is no different from starting from the main one."""
    server = EmbeddedPostgres(data_dir)
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    store(server.url, "threaded")
    assert stored(server.url, "threaded") == ROWS
    server.stop()
    assert not server.is_running


def test_a_failed_start_shows_the_log_and_leaves_the_folder_free(data_dir: Path) -> None:
    """A server that ends while starting gives a PostgresError with its own last words."""
    settings = data_dir / "cluster" / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("no_such_setting = 1\n")
    server = EmbeddedPostgres(data_dir)
    with pytest.raises(PostgresError, match="no_such_setting"):
        server.start()
    settings.write_text(before)
    server.start()
    server.stop()


def test_a_path_too_long_for_a_socket_gets_a_short_link(tmp_path: Path) -> None:
    """Any data folder works, however deep it lies."""
    with EmbeddedPostgres(tmp_path / ("deep" * 30) / "data") as server:
        link = socket_folder(tmp_path / ("deep" * 30) / "data" / "cluster")
        assert len(os.fsencode(link)) <= 90
        assert link.is_symlink()
        store(server.url, "deep")
        assert stored(server.url, "deep") == ROWS
    assert not link.is_symlink()


def test_a_taken_link_name_is_refused(tmp_path: Path) -> None:
    """A name that somebody else put in the temporary folder is never used."""
    data_dir = tmp_path / ("deep" * 30) / "data"
    link = socket_folder(data_dir / "cluster")
    link.mkdir()
    try:
        with pytest.raises(PostgresError, match="short link"):
            EmbeddedPostgres(data_dir).start()
    finally:
        link.rmdir()
    assert processes_in(data_dir / "cluster") == []
