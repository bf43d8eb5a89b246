"""Find the service: explicit settings first, else what `rlvitals up` wrote down for this user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class Address(msgspec.Struct, frozen=True):
    """Say where a service answers and which token opens it."""

    url: str | None = None
    token: str | None = None
    dashboard_url: str | None = None


def home(environ: Mapping[str, str] | None = None) -> Path:
    """Give the folder of this user's rlvitals files (RLVITALS_HOME, else ~/.rlvitals)."""
    environ = os.environ if environ is None else environ
    return folder(environ.get("RLVITALS_HOME") or "~/.rlvitals")


def folder(given: str | os.PathLike[str]) -> Path:
    """Read a path, `~` included; a user without a home has the working folder for one."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        parts = Path(given).parts
        return Path.cwd().joinpath(*(parts[1:] if parts[:2] == ("~", ".rlvitals") else parts))


def local_service(home: Path) -> Address:
    """Read the service.json of a running `rlvitals up`; an empty address when there is none."""
    try:
        return msgspec.json.decode((home / "service.json").read_bytes(), type=Address)
    except (OSError, msgspec.MsgspecError):
        return Address()


def find(
    home: Path,
    url: str | None = None,
    token: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Address:
    """Combine arguments, environment and the local service, in this order.

    The local service's token is used only for its own address, never sent elsewhere.
    """
    environ = os.environ if environ is None else environ
    url = find_url(url, environ)
    token = token or environ.get("RLVITALS_TOKEN") or _token_file(environ)
    token = token.strip() or None if token else None
    local = local_service(home)
    if url is None or url == _trimmed(local.url):
        return Address(url or _trimmed(local.url), token or local.token, local.dashboard_url)
    return Address(url, token)


def find_url(url: str | None, environ: Mapping[str, str]) -> str | None:
    """Give the address that an argument or the environment names."""
    return _trimmed(url or environ.get("RLVITALS_URL"))


def checked_url(url: str) -> str:
    """Give the address of a service without a slash at its end; ValueError when it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(
            f"url must look like http://host:port, not {url!r} (from --url, RLVITALS_URL or `url`)"
        )
    return url.rstrip("/")


def _trimmed(url: str | None) -> str | None:
    return url.strip().rstrip("/") or None if url else None


def _token_file(environ: Mapping[str, str]) -> str | None:
    path = environ.get("RLVITALS_TOKEN_FILE")
    if not path:
        return None
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
