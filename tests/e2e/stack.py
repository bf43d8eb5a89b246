"""Start the database and the service as they run in production, on free ports."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from typing_extensions import Self

from rlvitals_service.local import free_port
from rlvitals_service.postgres import EmbeddedPostgres

HOST = "127.0.0.1"


class Stack:
    """A database and a service process that can be killed, hung and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port(HOST, 0)
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = "rlv_" + secrets.token_hex(32)
        self.postgres = EmbeddedPostgres(folder / "data")
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.postgres.start()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.postgres.stop()

    def start(self) -> None:
        """Start the service and wait until it is ready."""
        token_file = self.folder / "token"
        token_file.write_text(self.token)
        env = os.environ | {
            "RLVITALS_DATABASE_URL": self.postgres.url,
            "RLVITALS_BOOTSTRAP_TOKEN_FILE": str(token_file),
            "RLVITALS_PORT": str(self.port),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "rlvitals_service"]
        with (self.folder / "service.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        self.wait_ready()

    def wait_ready(self, seconds: float = 60) -> None:
        """Wait until the service answers that it is ready."""
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > deadline:
                raise RuntimeError((self.folder / "service.log").read_text()[-2000:])
            time.sleep(0.1)

    def is_ready(self) -> bool:
        """Ask the service whether it can serve."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def signal(self, number: signal.Signals) -> None:
        """Send the service process a signal: SIGSTOP hangs it, SIGCONT wakes it."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the service without warning."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        """Stop the service as an operator would."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(30)
