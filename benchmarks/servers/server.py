"""What a server under test has in common: a process of its own, HTTP, a stop that is certain."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Self

from rlvitals_service.local import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = [f"train/m{number:02d}" for number in range(30)]
Row = tuple[int, dict[str, float]]  # a step and its scalars
Request = tuple[str, bytes, int]  # path, body, points in it
# Each worker of MLflow imports for a minute where other work shares the cores.
START_SECONDS = 420.0
STOP_SECONDS = 20.0


class Server:
    """A server under test; leaving the block stops it and all its processes."""

    name: ClassVar[str]
    ready_path: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port("127.0.0.1", 0)
        self.headers: dict[str, str] = {}
        self.log = folder / f"{self.name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Say how to start it."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Say what its environment needs beside ours."""
        return {}

    def new_run(self) -> str:
        """Create a run to log to; give its id."""
        raise NotImplementedError

    def requests(self, run: str, batches: Iterator[list[Row]]) -> Iterator[Request]:
        """Phrase one request for each batch of rows."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """Say what a table calls it."""
        return self.name

    def __enter__(self) -> Self:
        """Start the process and wait until it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self.environment()},
            )
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every process of it."""
        self.stop()

    def wait(self) -> None:
        """Wait until the server answers; RuntimeError with its last words when it does not."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.is_alive():
            if self.is_ready():
                return
            time.sleep(0.2)
        said = self.log.read_text(encoding="utf-8", errors="replace")[-500:]
        raise RuntimeError(f"{self.name} did not come up: {said}")

    def is_alive(self) -> bool:
        """Tell whether its first process is there."""
        return self.process is not None and self.process.poll() is None

    def is_ready(self) -> bool:
        """Tell whether it answers."""
        try:
            connection = self.connect(5)
            connection.request("GET", self.ready_path)
            return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException):
            return False

    def stop(self) -> None:
        """End its process group, the stubborn ones by force."""
        if self.process is None:
            return
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):  # its children may outlive it
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)

    def connect(self, seconds: float = 120) -> http.client.HTTPConnection:
        """Open a connection that stays."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    def call(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
        """Post a body and give the answer; RuntimeError when it is refused."""
        headers = {"Content-Type": "application/json", **self.headers}
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        text: bytes = answer.read()
        if answer.status >= http.HTTPStatus.MULTIPLE_CHOICES:
            raise RuntimeError(f"{self.name} answered {answer.status}: {text[:300]!r}")
        return text


def count(batch: list[Row]) -> int:
    """Count the points of a batch."""
    return sum(len(values) for _, values in batch)
