"""The data folder has one owner, and the note about the service belongs to its writer."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
from pathlib import Path

import pytest

from rlvitals_service import local
from rlvitals_service.local import CannotStart, DataFolder, check_port, free_port


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this user a fresh home."""
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    """The second owner learns who the first is; afterwards the folder is free again."""
    folder = DataFolder(tmp_path / "data")
    with (
        folder.owned(),
        pytest.raises(CannotStart, match=rf"process {os.getpid()}.*--data"),
        folder.owned(),
    ):
        pytest.fail("two owners")
    with folder.owned():
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_an_unusable_folder_is_named(tmp_path: Path) -> None:
    """A path that cannot be a folder is refused with the option to change it."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CannotStart, match="--data"),
        DataFolder(tmp_path / "file" / "data").owned(),
    ):
        pytest.fail("a folder inside a file")


def test_the_note_is_private_and_removed_by_its_writer_only(home: Path) -> None:
    """Clients of this user, and nobody else, can read where the service is."""
    local.announce("http://127.0.0.1:1", "rlv_secret", None)
    assert stat.S_IMODE(local.service_file().stat().st_mode) == 0o600
    known = local.announced()
    assert (known["url"], known["token"], known["pid"]) == (
        *("http://127.0.0.1:1", "rlv_secret"),
        os.getpid(),
    )
    local.service_file().write_text(json.dumps({**known, "pid": 1}))
    local.withdraw()
    assert local.service_file().exists()
    local.service_file().write_text(json.dumps(known))
    local.withdraw()
    assert local.announced() == {}


def test_a_broken_note_is_no_note(home: Path) -> None:
    """Half a file or something else entirely does not stop a start."""
    home.mkdir()
    for text in ("", "{", "[]", "7"):
        local.service_file().write_text(text)
        assert local.announced() == {}
        local.withdraw()


def test_ports() -> None:
    """A taken port is named with its option; a free one is taken as wanted."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"Port {port} is taken.*--port"):
            check_port("127.0.0.1", port, "--port")
        assert free_port("127.0.0.1", port) not in {0, port}
    check_port("127.0.0.1", port, "--port")
    assert free_port("127.0.0.1", port) == port
    with pytest.raises(CannotStart, match=f"({os.strerror(errno.EADDRNOTAVAIL)}).*--host"):
        check_port("203.0.113.1", port, "--port")
