"""`rlvitals up`: one command starts everything, one signal stops it, nothing stays behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.launcher.launched import (
    Launched,
    eventually,
    is_alive,
    is_open,
    run,
)

from rlvitals_service.local import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    """Give a running `up` in a fresh home; end whatever the test leaves."""
    started = Launched(tmp_path)
    try:
        started.wait_until_up()
        yield started
    finally:
        if started.process.poll() is None:
            started.process.terminate()
            started.process.wait(60)


def test_up_serves_restarts_what_dies_and_stops_on_ctrl_c(launched: Launched) -> None:
    """A fresh user gets a service, a dashboard and a private note; Ctrl-C ends it all with 0."""
    note = launched.wait_until_up()
    assert note["url"] == f"http://127.0.0.1:{launched.port}"
    assert note["dashboard_url"] == f"http://127.0.0.1:{launched.dashboard_port}"
    data = launched.home / ".rlvitals" / "data"
    for private in (launched.note, data / "token"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert launched.get("/api/v1/runs")["runs"] == []
    with urllib.request.urlopen(note["dashboard_url"], timeout=30) as page:
        assert page.status == 200
    assert f"http://127.0.0.1:{launched.dashboard_port}" in launched.said()

    second = run(launched.home, "up")
    assert second.returncode == 1
    assert str(launched.process.pid) in second.stderr
    assert "--data" in second.stderr
    elsewhere = ("--data", str(launched.home / "other"))
    taken = run(launched.home, "up", *elsewhere, "--port", str(launched.port))
    assert taken.returncode == 1
    assert f"Port {launched.port}" in taken.stderr
    assert "--port" in taken.stderr

    dead = eventually(lambda: launched.child("service"))
    os.kill(dead, signal.SIGKILL)
    eventually(lambda: launched.child("service") not in {None, dead})
    eventually(lambda: is_open(launched.port))
    assert "service ended (signal 9); starting it again" in launched.said()
    eventually(lambda: launched.get("/api/v1/runs")["runs"] == [])

    children = launched.children()
    assert len(children) == 3
    assert launched.stop(signal.SIGINT) == 0
    assert not any(map(is_alive, children))
    assert not launched.note.exists()
    assert "Traceback" not in launched.said() + second.stderr + taken.stderr
    for name in ("service", "dashboard"):
        assert (data / "logs" / f"{name}.log").exists()


def test_kill_9_leaves_nothing_running_and_no_row_lost(launched: Launched) -> None:
    """After SIGKILL of the launcher every process and port is gone, and the data is all there."""
    made = launched.get("/api/v1/runs", project="math", key="k", attempt_key="a", name="kept")
    children = launched.children()
    launched.process.kill()
    launched.process.wait(60)
    eventually(lambda: not any(map(is_alive, children)))
    assert not is_open(launched.port)
    assert not is_open(launched.dashboard_port)

    again = Launched(launched.home)
    try:
        again.wait_until_up()
        assert [one["id"] for one in again.get("/api/v1/runs")["runs"]] == [made["id"]]
    finally:
        status = again.stop(signal.SIGTERM)
    assert status == 0
    assert "Traceback" not in again.said()


def test_a_signal_while_starting_stops_quietly(tmp_path: Path) -> None:
    """Ctrl-C before anything answers ends with 0 and leaves no process."""
    started = Launched(tmp_path)
    eventually(started.children)
    children = started.children()
    assert started.stop(signal.SIGINT) == 0
    eventually(lambda: not any(map(is_alive, children)))
    assert "Traceback" not in started.said()
    assert not started.note.exists()


def test_a_taken_port_is_named_with_its_option(tmp_path: Path) -> None:
    """A port that another program holds is refused at once, with the option to change it."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        refused = run(
            tmp_path, "up", "--dashboard-port", port, "--port", str(free_port("127.0.0.1", 0))
        )
    assert refused.returncode == 1
    assert f"Port {port} is taken" in refused.stderr
    assert "--dashboard-port" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_database_that_does_not_answer_is_said_plainly(tmp_path: Path) -> None:
    """With a wrong RLVITALS_DATABASE_URL, `up` and `migrate` fail with words, not a traceback."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    ports = ("--port", "0", "--dashboard-port", "0")
    started = run(tmp_path, "up", *ports, RLVITALS_DATABASE_URL=nowhere)
    assert started.returncode == 1
    assert "service could not start" in started.stderr
    assert "The database does not answer" in started.stderr
    assert "service.log" in started.stderr
    migrated = run(tmp_path, "migrate", RLVITALS_DATABASE_URL=nowhere)
    assert migrated.returncode == 1
    assert "Cannot migrate" in migrated.stderr
    unset = run(tmp_path, "migrate")
    assert unset.returncode == 1
    assert "RLVITALS_DATABASE_URL" in unset.stderr
    for done in (started, migrated, unset):
        assert "Traceback" not in done.stderr


def test_one_port_cannot_serve_both(tmp_path: Path) -> None:
    """The same port for service and dashboard is refused before anything starts."""
    port = str(free_port("127.0.0.1", 0))
    refused = run(tmp_path, "up", "--port", port, "--dashboard-port", port)
    assert refused.returncode == 1
    assert "--dashboard-port" in refused.stderr
