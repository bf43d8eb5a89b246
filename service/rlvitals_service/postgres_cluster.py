"""One cluster on disk: how it is made, checked, addressed and served."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rlvitals_service.postgres_account import Account, PostgresError, can_reach
from rlvitals_service.postgres_child import run_as

ROLE = "rlvitals"
# sun_path holds 104 bytes on macOS and 108 on Linux, with the socket's file name in it.
SOCKET_FOLDER_BYTES = 85
INITDB = (
    *("--username", ROLE, "--encoding=UTF8", "--locale=C", "--locale-provider=builtin"),
    *("--builtin-locale=C.UTF-8", "--auth-local=trust", "--auth-host=reject", "--no-sync"),
)
SETTINGS = {
    "listen_addresses": "",
    # The cluster itself: a folder of mode 0700 and, as seen by the server, always a short path.
    "unix_socket_directories": ".",
    "cluster_name": "rlvitals",
    "shared_buffers": "128MB",
    "max_connections": "50",
    # The only method this build has; step payloads are compressed before they get here.
    "wal_compression": "pglz",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
}
LINES_WITH_STATE = 8


def create_cluster(cluster: Path, account: Account, binaries: Path) -> None:
    """Create the cluster with trust on its private socket and no network access at all."""
    # Built aside and renamed: a start that was killed half-way leaves nothing half-made.
    building = cluster.with_name(f"{cluster.name}.new")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)
    if account.differs:
        os.chown(building, account.uid, account.gid)
    command = [str(binaries / "initdb"), *INITDB, "--pgdata", _seen_by(account, building)]
    done = run_as(account.uid, account.gid, command, cwd=building)
    if done.returncode != 0:
        said = done.stdout.strip() or f"initdb ended with status {done.returncode}"
        msg = f"PostgreSQL could not create a cluster in {cluster}: {said}"
        raise PostgresError(msg)
    building.rename(cluster)


def server_command(cluster: Path, account: Account, binaries: Path) -> list[str]:
    """Return the command line of the foreground server; its working folder is the cluster."""
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    return [str(binaries / "postgres"), "-D", _seen_by(account, cluster), *settings]


def refuse_other_version(cluster: Path, binaries: Path) -> None:
    """Raise PostgresError unless these binaries can read the cluster's files."""
    asked = subprocess.run([binaries / "postgres", "--version"], capture_output=True, check=True)
    ours = asked.stdout.decode().split()[-1].split(".")[0]
    try:
        theirs = (cluster / "PG_VERSION").read_text(encoding="ascii").strip()
    except OSError as error:
        msg = (
            f"{cluster} is not a PostgreSQL cluster that this user can read ({error.strerror}): "
            "choose another folder with --data."
        )
        raise PostgresError(msg) from error
    if theirs != ours:
        msg = (
            f"The data folder {cluster} was written by PostgreSQL {theirs}, but this release "
            f"brings PostgreSQL {ours}. Either choose another folder with --data, or dump it "
            f"with PostgreSQL {theirs} (pg_dump) and restore the dump into a new folder."
        )
        raise PostgresError(msg)


def is_ready(cluster: Path, pid: int) -> bool:
    """Tell whether the server with this process id accepts connections.

    Read from the server's own note for pg_ctl: line 1 its process id, line 8 its state.
    """
    try:
        lines = (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    if len(lines) < LINES_WITH_STATE:
        return False
    return lines[0].strip() == str(pid) and lines[LINES_WITH_STATE - 1].strip() == "ready"


def socket_folder(cluster: Path) -> Path:
    """Return the cluster itself or, where its path is too long for a socket, a short link to it."""
    if len(os.fsencode(cluster)) <= SOCKET_FOLDER_BYTES:
        return cluster
    digest = hashlib.sha256(os.fsencode(cluster)).hexdigest()[:12]
    name = f"rlvitals-{os.geteuid()}-{digest}"
    preferred = Path(tempfile.gettempdir(), name)
    fits = len(os.fsencode(preferred)) <= SOCKET_FOLDER_BYTES
    return preferred if fits else Path("/tmp", name)  # noqa: S108 - link_socket_folder checks it


def link_socket_folder(cluster: Path) -> None:
    """Make the short link where one is needed; refuse a name that somebody else has taken."""
    link = socket_folder(cluster)
    if link == cluster:
        return
    try:
        unlink_socket_folder(cluster)
        link.symlink_to(cluster)
    except OSError as error:
        msg = f"Cannot make the short link {link} to the socket in {cluster}: {error.strerror}."
        raise PostgresError(msg) from error


def unlink_socket_folder(cluster: Path) -> None:
    """Remove the short link if it is there and ours."""
    link = socket_folder(cluster)
    if link != cluster and link.is_symlink() and link.lstat().st_uid == os.geteuid():
        link.unlink()


def _seen_by(account: Account, cluster: Path) -> str:
    """Return the path by which the account gets to the cluster.

    No path leads it into root's private home, but the working folder is inherited open.
    """
    if not account.differs or can_reach(account, cluster):
        return str(cluster)
    if sys.platform == "linux":
        return "/proc/self/cwd"
    msg = (
        f"{cluster} lies in a folder private to root, and PostgreSQL does not run as root: "
        "choose a folder that everybody can enter with --data."
    )
    raise PostgresError(msg)
