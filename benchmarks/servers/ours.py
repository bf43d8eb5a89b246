"""The rlvitals service, asked in JSON or in msgpack, which its own client speaks."""

from __future__ import annotations

import json
import sys
import uuid
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from servers.server import Request, Row, Server, count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Rlvitals(Server):
    """One service process, its token checked and its judge at work on every step."""

    name: ClassVar[str] = "rlvitals"
    ready_path: ClassVar[str] = "/readyz"

    def __init__(self, folder: Path, database_url: str) -> None:
        super().__init__(folder)
        self.database_url = database_url
        self.token = f"rlv_{uuid.uuid4().hex}{uuid.uuid4().hex}"
        self.headers = {"Authorization": f"Bearer {self.token}"}

    @property
    def url(self) -> str:
        """Give the address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """Say how to start it."""
        return [sys.executable, "-m", "rlvitals_service"]

    def environment(self) -> dict[str, str]:
        """Say where its database is and who may come in."""
        return {
            "OMP_NUM_THREADS": "1",
            "RLVITALS_PORT": str(self.port),
            "RLVITALS_DATABASE_URL": self.database_url,
            "RLVITALS_BOOTSTRAP_TOKEN": self.token,
        }

    def new_run(self) -> str:
        """Create a run to log to; give its id."""
        asked = {"project": "bench", "key": uuid.uuid4().hex, "attempt_key": uuid.uuid4().hex}
        answer = self.call(self.connect(), "/api/v1/runs", json.dumps(asked).encode())
        return str(json.loads(answer)["id"])

    def requests(self, run: str, batches: Iterator[list[Row]]) -> Iterator[Request]:
        """Phrase one request for each batch of rows."""
        for batch in batches:
            records = [{"step": step, "scalars": values} for step, values in batch]
            yield f"/api/v1/runs/{run}/steps", self.encode({"records": records}), count(batch)

    def encode(self, content: Any) -> bytes:
        """Write the body of a request."""
        return json.dumps(content).encode()


class PackedRlvitals(Rlvitals):
    """The same, spoken to in msgpack."""

    name: ClassVar[str] = "rlvitals, msgpack"

    def requests(self, run: str, batches: Iterator[list[Row]]) -> Iterator[Request]:
        """Phrase one request for each batch of rows."""
        self.headers["Content-Type"] = "application/msgpack"
        return super().requests(run, batches)

    def encode(self, content: Any) -> bytes:
        """Write the body of a request."""
        return msgspec.msgpack.encode(content)

    def new_run(self) -> str:
        """Create a run to log to, asking in JSON; give its id."""
        self.headers["Content-Type"] = "application/json"
        return super().new_run()
