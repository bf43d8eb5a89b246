"""Processes that live as long as the launcher: started, watched, restarted, stopped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlvitals_service import postgres_child

# A child that dies again and again is given up, unless it ran well in between.
MOST_RESTARTS = 5
RAN_WELL_SECONDS = 60.0
FIRST_DELAY = 0.5
LONGEST_DELAY = 8.0
LOG_BYTES = 10_000_000
LAST_LINES = 5

Say = Callable[[str], None]


class GivenUp(Exception):
    """A child cannot be kept alive; the message says why and where to look."""


@dataclass
class Child:
    """One child process and how it is doing.

    Start it from the main thread: Linux ends a child whose starting thread ended.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    log_starts_at: int = field(default=0, init=False)
    restarts: int = field(default=0, init=False)
    next_start: float | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the process, its output going to the log; on Linux it ends with this one."""
        rotate(self.log)
        with self.log.open("ab") as log:
            self.log_starts_at = log.tell()
            self.process = subprocess.Popen(
                bound_to_this_process(self.command),
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The terminal's Ctrl-C is for the launcher, which ends things in order.
                start_new_session=True,
            )
        self.started_at = time.monotonic()
        self.next_start = None

    @property
    def exit_code(self) -> int | None:
        """How the process ended; None while it runs or before it was started."""
        return None if self.process is None else self.process.poll()

    def keep_alive(self, say: Say) -> None:
        """Start a dead process again, later and later; GivenUp when it will not stay."""
        rotate(self.log)
        now = time.monotonic()
        if self.next_start is not None:
            if now >= self.next_start:
                self.start()
            return
        code = self.exit_code
        if code is None:
            return
        self.restarts = 0 if now - self.started_at > RAN_WELL_SECONDS else self.restarts
        if self.restarts >= MOST_RESTARTS:
            raise GivenUp(f"The {self.name} ended {MOST_RESTARTS + 1} times. {self.last_words()}")
        delay = min(FIRST_DELAY * 2**self.restarts, LONGEST_DELAY)
        self.restarts += 1
        self.next_start = now + delay
        say(f"The {self.name} ended ({_how(code)}); starting it again. Log: {self.log}")

    def stop(self, seconds: float) -> None:
        """Ask the process to end, and end it when it does not within the time."""
        self.next_start = None
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def last_words(self) -> str:
        """Quote the end of what the process wrote since it was last started."""
        try:
            written = self.log.read_bytes()[self.log_starts_at :]
        except OSError:
            written = b""
        lines = written.decode("utf-8", errors="replace").splitlines()
        quoted = "\n  ".join(line[:500] for line in lines[-LAST_LINES:])
        return f"Its log {self.log} ends with:\n  {quoted}"


def bound_to_this_process(command: Sequence[str]) -> list[str]:
    """Wrap a command so that it gets a SIGINT when this process dies (Linux)."""
    numbers = [str(number) for number in (os.getpid(), os.getuid(), os.getgid())]
    return [sys.executable, "-I", "-S", postgres_child.__file__, *numbers, *command]


def rotate(log: Path) -> None:
    """Keep a log from growing for ever: one old file is kept.

    Copied and emptied in place, because its writer holds it open (and appends).
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_BYTES:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
