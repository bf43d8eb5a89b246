"""trackio's own server over its own SQLite."""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from servers.server import START_SECONDS, Request, Row, Server, count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATH = "/api/bulk_log"


class Trackio(Server):
    """The server that `trackio show` starts; it says its port and write token when it is up."""

    name: ClassVar[str] = "trackio"

    def __init__(self, folder: Path, python: str) -> None:
        super().__init__(folder)
        self.python = python

    def command(self) -> list[str]:
        """Say how to start it."""
        return [self.python, "-m", "trackio.cli", "show", "--host", "127.0.0.1"]

    def environment(self) -> dict[str, str]:
        """Give it a folder of its own, and let it speak without delay."""
        return {
            "TRACKIO_DIR": str(self.folder / "trackio"),
            "GRADIO_SERVER_PORT": str(self.port),
            "PYTHONUNBUFFERED": "1",
        }

    def wait(self) -> None:
        """Read address and token off what it prints; RuntimeError when neither comes."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.is_alive():
            said = self.log.read_text(encoding="utf-8", errors="replace")
            found = re.search(r"https?://\S*write_token=\S+", said)
            if found:
                address = urlsplit(found.group())
                self.port = address.port or self.port
                self.headers["X-Trackio-Write-Token"] = parse_qs(address.query)["write_token"][0]
                self.call(self.connect(), PATH, self._body([self._entry("warm", 0, {"a": 1.0})]))
                return
            time.sleep(0.3)
        raise RuntimeError("trackio printed no address")

    @staticmethod
    def _entry(run: str, step: int, values: dict[str, float]) -> dict[str, Any]:
        return {
            "project": "bench",
            "run": run,
            "run_id": run,
            "metrics": values,
            "step": step,
            "config": None,
            "log_id": uuid.uuid4().hex,
        }

    @staticmethod
    def _body(logs: list[dict[str, Any]]) -> bytes:
        return json.dumps({"logs": logs, "hf_token": None}).encode()

    def new_run(self) -> str:
        """Make a name up: a run begins with its first row."""
        return uuid.uuid4().hex

    def requests(self, run: str, batches: Iterator[list[Row]]) -> Iterator[Request]:
        """Phrase one request for each batch of rows."""
        for batch in batches:
            logs = [self._entry(run, step, values) for step, values in batch]
            yield PATH, self._body(logs), count(batch)
