"""A child is restarted while that helps, given up when it does not, and always stopped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.launcher.launched import eventually, is_alive

from rlvitals_service import children
from rlvitals_service.children import Child, GivenUp, rotate

SLEEPER = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@pytest.fixture
def child(tmp_path: Path) -> Callable[[str], Child]:
    """Make a child of one line of Python."""

    def make(code: str) -> Child:
        command = [sys.executable, "-S", "-c", code]
        return Child("worker", command, dict(os.environ), tmp_path / "logs" / "worker.log")

    return make


def test_a_child_that_will_not_stay_is_given_up(
    child: Callable[[str], Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started again a few times, said so each time, and then its log is quoted."""
    monkeypatch.setattr(children, "FIRST_DELAY", 0.0)
    said: list[str] = []
    failing = child("print('no disk left'); raise SystemExit(7)")
    failing.start()

    def given_up() -> str | None:
        try:
            failing.keep_alive(said.append)
        except GivenUp as error:
            return str(error)
        return None

    message = eventually(given_up)
    assert "ended 6 times" in message
    assert "no disk left" in message
    assert len(said) == children.MOST_RESTARTS
    assert all("exit code 7" in line and "worker.log" in line for line in said)


def test_a_child_that_ran_well_gets_all_its_restarts_back(
    child: Callable[[str], Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash a day is not a crash loop."""
    monkeypatch.setattr(children, "FIRST_DELAY", 0.0)
    crashing = child("raise SystemExit(1)")
    crashing.start()
    crashing.restarts = children.MOST_RESTARTS
    eventually(lambda: crashing.exit_code is not None)
    crashing.started_at = time.monotonic() - children.RAN_WELL_SECONDS - 1
    crashing.keep_alive(lambda _: None)
    assert crashing.restarts == 1


def test_a_running_child_is_left_alone_and_stopped_when_asked(
    child: Callable[[str], Child],
) -> None:
    """Nothing is said while all is well; a stop ends the process."""
    said: list[str] = []
    running = child(SLEEPER)
    running.start()
    pid = running.process.pid if running.process else 0
    running.keep_alive(said.append)
    assert said == []
    running.stop(20)
    assert not is_alive(pid)
    running.stop(20)


def test_a_stubborn_child_is_killed(child: Callable[[str], Child]) -> None:
    """A child that ignores the request to end is ended."""
    stubborn = child(STUBBORN)
    stubborn.start()
    pid = stubborn.process.pid if stubborn.process else 0
    stubborn.stop(0.2)
    assert not is_alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for a signal")
def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    """However the parent ends, the child goes with it."""
    import subprocess

    code = f"""
import os, sys, pathlib
from rlvitals_service.children import Child
child = Child("worker", [sys.executable, "-c", {SLEEPER!r}], dict(os.environ),
              pathlib.Path({str(tmp_path / "log")!r}))
child.start()
print(child.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    pid = int(done.stdout)
    eventually(lambda: not is_alive(pid))


def test_a_log_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log over its limit makes room, also under its writer's hands, and the last one is kept."""
    monkeypatch.setattr(children, "LOG_BYTES", 10)
    log = tmp_path / "new" / "a.log"
    rotate(log)
    with log.open("a") as writer:
        writer.write("x" * 11)
        writer.flush()
        rotate(log)
        writer.write("y")
    assert log.read_text() == "y"
    assert log.with_name("a.log.1").read_text() == "x" * 11
