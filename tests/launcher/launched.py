"""Start `rlvitals up` as a person would, and see what became of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlvitals_service.local import free_port

START_SECONDS = 150.0
CODE = """import sys
from rlvitals_service.launcher import main
sys.exit(main(sys.argv[1], sys.argv[2:]))"""


def eventually(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until something holds; fail when it does not within the time."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{holds} did not hold within {seconds} s")
        time.sleep(0.05)
    return found


def is_open(port: int) -> bool:
    """Tell whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def environment(home: Path) -> dict[str, str]:
    """Give the environment of a user with a fresh home and nothing configured."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RLVITALS_", "PG"))}
    return {**kept, "HOME": str(home), "OMP_NUM_THREADS": "1"}


def run(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a launcher command to its end."""
    return subprocess.run(
        [sys.executable, "-c", CODE, *words],
        env={**environment(home), **variables},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


class Launched:
    """A running `rlvitals up` with ports of its own."""

    def __init__(self, home: Path, *words: str) -> None:
        self.home = home
        self.port, self.dashboard_port = (free_port("127.0.0.1", 0) for _ in range(2))
        ports = ["--port", str(self.port), "--dashboard-port", str(self.dashboard_port)]
        self.output = home / "output.txt"
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", CODE, "up", *ports, *words],
                env=environment(home),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def note(self) -> Path:
        """The file by which clients find the service."""
        return self.home / ".rlvitals" / "service.json"

    def wait_until_up(self) -> dict[str, Any]:
        """Wait for the note of this very process and give it."""

        def ready() -> dict[str, Any] | None:
            assert self.process.poll() is None, self.said()
            try:
                known: dict[str, Any] = json.loads(self.note.read_text())
            except (OSError, ValueError):
                return None
            return known if known["pid"] == self.process.pid else None

        found: dict[str, Any] = eventually(ready, START_SECONDS)
        return found

    def said(self) -> str:
        """Give everything it wrote to the terminal."""
        return self.output.read_text()

    def children(self) -> list[int]:
        """Give the process ids of the children, database included."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def child(self, name: str) -> int | None:
        """Give the process id of one child."""
        for pid in self.children():
            if f"rlvitals_{name}" in command_of(pid).split("\0"):
                return pid
        return None

    def get(self, path: str, **body: Any) -> Any:
        """Ask the service as this user's clients do; post when there is a body."""
        known = json.loads(self.note.read_text())
        headers = {"Authorization": f"Bearer {known['token']}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(known["url"] + path, data, headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read())

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal and give the exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)


def command_of(pid: int) -> str:
    """Give a process's command line, NUL between words; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Tell whether a process still runs; one that merely awaits its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
