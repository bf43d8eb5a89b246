"""MLflow's tracking server over PostgreSQL."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from servers.server import Request, Row, Server, count

if TYPE_CHECKING:
    from collections.abc import Iterator

API = "/api/2.0/mlflow"


class Mlflow(Server):
    """MLflow with two uvicorn workers, or with one where two never come up."""

    name: ClassVar[str] = "mlflow"
    ready_path: ClassVar[str] = "/health"

    def __init__(self, folder: Path, python: str, database_url: str, workers: int = 2) -> None:
        super().__init__(folder)
        self.python, self.database_url, self.workers = python, database_url, workers

    @property
    def label(self) -> str:
        """Say what a table calls it."""
        return f"mlflow, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def command(self) -> list[str]:
        """Say how to start it; its supervisor must not kill a worker that is slow to import."""
        options = {
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--workers": str(self.workers),
            "--uvicorn-opts": "--timeout-worker-healthcheck 300",
            "--backend-store-uri": self.database_url,
            "--default-artifact-root": str(self.folder / "artifacts"),
        }
        return [
            self.python,
            "-m",
            "mlflow",
            "server",
            *(word for o in options.items() for word in o),
        ]

    def environment(self) -> dict[str, str]:
        """Let it find its own uvicorn, call nobody, and leave out what stores no points.

        Its seven consumers of background jobs would take the cores from its workers for minutes.
        """
        return {
            "PATH": f"{Path(self.python).parent}:{os.environ['PATH']}",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }

    def new_run(self) -> str:
        """Create a run to log to; give its id."""
        experiment = self._post("experiments/create", {"name": uuid.uuid4().hex})["experiment_id"]
        asked = {"experiment_id": experiment, "start_time": int(time.time() * 1000)}
        return str(self._post("runs/create", asked)["run"]["info"]["run_id"])

    def _post(self, path: str, content: dict[str, Any]) -> Any:
        return json.loads(self.call(self.connect(), f"{API}/{path}", json.dumps(content).encode()))

    def requests(self, run: str, batches: Iterator[list[Row]]) -> Iterator[Request]:
        """Phrase one request for each batch of rows; a single point has a path of its own."""
        now = int(time.time() * 1000)
        for batch in batches:
            metrics = [
                {"key": key, "value": value, "timestamp": now + step, "step": step}
                for step, values in batch
                for key, value in values.items()
            ]
            content: dict[str, Any] = {"run_id": run, "metrics": metrics}
            path = "log-batch"
            if len(metrics) == 1:
                content, path = {"run_id": run, **metrics[0]}, "log-metric"
            yield f"{API}/runs/{path}", json.dumps(content).encode(), count(batch)


def start_mlflow(folder: Path, python: str, database_url: str) -> Mlflow:
    """Start MLflow with two workers, or else with one; it is running when this returns."""
    try:
        return Mlflow(folder, python, database_url).__enter__()
    except RuntimeError as error:
        print(f"{error}\nTrying with one worker.", file=sys.stderr, flush=True)
        return Mlflow(folder, python, database_url, workers=1).__enter__()
