"""Whatever goes wrong on the way to an answer is an ApiError, told in one line."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from rlvitals.cli import main

CUT = b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\nstep,acr\n"


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Serve one canned answer to every request, then close the line."""

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line, contextlib.suppress(OSError):
                line.recv(65536)
                line.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_an_export_that_breaks_off_is_an_api_error() -> None:
    """Half a file is never taken for a whole one."""
    with answering(CUT) as url, pytest.raises(rlvitals.ApiError, match=url):
        rlvitals.Api(url).export("run")


def test_a_stream_that_breaks_off_is_an_api_error() -> None:
    """Who follows a run hears that the line is broken."""
    with answering(CUT) as url, pytest.raises(rlvitals.ApiError, match=url):
        list(rlvitals.Api(url).stream("run"))


def test_a_page_of_something_else_is_no_rlvitals() -> None:
    """A JSON answer without what was asked for names the address."""
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with answering(body) as url:
        api = rlvitals.Api(url)
        for ask in (api.runs, api.incidents, api.projects, api.tokens, api.catalog):
            with pytest.raises(rlvitals.ApiError, match="no rlvitals service"):
                ask()
        with pytest.raises(rlvitals.ApiError, match="no rlvitals service"):
            api.directive("run")


def test_an_address_that_moved_is_named() -> None:
    """The answer of a proxy that wants https says where to go."""
    moved = b"HTTP/1.1 308 Moved\r\nLocation: https://there/x\r\nContent-Length: 0\r\n\r\n"
    with answering(moved) as url, pytest.raises(rlvitals.ApiError, match="https://there/x"):
        rlvitals.Api(url).runs()


def test_a_wish_for_long_patience_is_told_rather_than_waited_for() -> None:
    """A person is not kept waiting for minutes: the wish is in the message."""
    busy = b"HTTP/1.1 429 Slow\r\nRetry-After: 300\r\nContent-Length: 0\r\n\r\n"
    with answering(busy) as url:
        began = time.monotonic()
        with pytest.raises(rlvitals.ApiError, match="300"):
            rlvitals.Api(url).runs()
        assert time.monotonic() - began < 100.0


def test_an_export_left_half_way_leaves_the_client_usable(
    run: rlvitals.Run, reader: rlvitals.Api
) -> None:
    """Who stops reading an export may go on asking with the same client."""
    pieces = reader.export_pieces(str(run.id), "json")
    assert next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    for _ in range(5):
        assert reader.run(str(run.id))["name"] == "first run"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://[::1", "--url"),
        ("ftp://there", "http"),
        ("there:8400", "http"),
    ],
)
def test_an_address_that_is_none_says_what_one_looks_like(
    url: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped --url is told in one line, not in a traceback."""
    assert main(["runs", "--url", url]) in (1, 2)
    assert says in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_told(
    run: rlvitals.Run, reader: rlvitals.Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing folder ends with a message and code 1."""
    token: Any = reader.create_token("export", ["read"])["token"]
    where = ["--url", reader.url, "--token", token]
    assert main(["export", str(run.id), "-o", str(tmp_path / "no" / "x.csv"), *where]) == 1
    err = capsys.readouterr().err
    assert "x.csv" in err
    assert len(err.splitlines()) == 1


def test_without_any_service_the_command_says_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A new user is told how to start one."""
    assert main(["runs"]) == 1
    assert "rlvitals up" in capsys.readouterr().err


def test_the_module_is_the_command() -> None:
    """`python -m rlvitals` works where the command is not on the path, and calls itself so."""
    command = [sys.executable, "-m", "rlvitals", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"rlvitals {rlvitals.__version__}"
