"""`python -m rlvitals_service`: says what it lacks, and stops at once whoever is waiting."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from tests.serving import Api

from rlvitals_service.local import free_port

Ask = Callable[..., Any]


def command(**variables: str) -> dict[str, Any]:
    """Give what starts the service with these settings alone."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RLVITALS_", "PG"))}
    return {
        "args": [sys.executable, "-m", "rlvitals_service"],
        "env": {**kept, "OMP_NUM_THREADS": "1", **variables},
    }


@pytest.fixture
def served(database_url: str, tmp_path: Path, eventually: Ask) -> Iterator[tuple[Any, Api]]:
    """Run the service as a process; give it and an administrator's client."""
    port = str(free_port("127.0.0.1", 0))
    token = tmp_path / "token"
    variables = {
        "RLVITALS_DATABASE_URL": database_url,
        "RLVITALS_PORT": port,
        "RLVITALS_BOOTSTRAP_TOKEN_FILE": str(token),
    }
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(**command(**variables), stderr=log)
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        try:
            return urllib3.request("GET", f"{url}/readyz", retries=False).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    try:
        eventually(ready, 120)
        yield process, Api(url, token.read_text().strip())
    finally:
        process.kill()
        process.wait(30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_sends_waiting_readers_home(
    served: tuple[Any, Api], number: signal.Signals, tmp_path: Path
) -> None:
    """Neither a long poll of 30 s nor an open stream holds up the end, which is 0."""
    process, api = served
    run_id = api.new_run()
    headers = {"Authorization": f"Bearer {api.token}"}
    path = f"{api.url}/api/v1/runs/{run_id}/stream"
    stream = urllib3.request("GET", path, headers=headers, preload_content=False, timeout=60)
    poll = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=60)
    poll.request("GET", f"/api/v1/runs/{run_id}/directive?since=0&wait=30", headers=headers)
    api.get("/runs")  # asked later and answered: so the poll is under way
    process.send_signal(number)
    assert process.wait(20) == 0
    answer = poll.getresponse()
    assert (answer.status, json.loads(answer.read())) == (200, {"directive": None})
    poll.close()
    assert b"retry" in stream.read()
    logged = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert not [line for line in logged if line["level"] in {"error", "warning"}]


def test_without_a_database_it_says_what_to_set() -> None:
    """The first start without settings explains itself in one line."""
    done = subprocess.run(**command(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "RLVITALS_DATABASE_URL" in done.stderr
    assert "rlvitals up" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"RLVITALS_PORT": "many"}, "RLVITALS_PORT"),
        ({"RLVITALS_DATABASE_URL": "mysql://somewhere/else"}, "RLVITALS_DATABASE_URL"),
    ],
)
def test_a_wrong_setting_is_named(variables: dict[str, str], name: str) -> None:
    """A mistake in the environment is named, not traced back."""
    done = subprocess.run(**command(**variables), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert name in done.stderr
    assert "Traceback" not in done.stderr
