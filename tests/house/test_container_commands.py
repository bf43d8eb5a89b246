"""Run each container's command and health check by hand: no container engine is needed for that.

What differs from docker-compose.yml is named in `as_here`: the database's address, the secrets'
folder and the ports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlvitals_service.local import free_port
from rlvitals_service.postgres import EmbeddedPostgres

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
SECONDS = 60.0


class Containers:
    """The compose file's containers as processes of this machine."""

    def __init__(self, folder: Path, database_url: str) -> None:
        (folder / "database_password").write_text("p@ss w/rd%20?")
        (folder / "token").write_text("rlv_" + "0123456789abcdef" * 4)
        self.log = (folder / "containers.log").open("w+")
        self.replaced = {
            "postgresql+psycopg://rlvitals@db:5432/rlvitals": database_url,
            "/run/secrets": str(folder),
            "service:8400": "127.0.0.1:8400",
            "8400": str(free_port("127.0.0.1", 0)),
            "8401": str(free_port("127.0.0.1", 0)),
            "/opt/rlvitals/probe.py": str(ROOT / "docker" / "probe.py"),
        }
        self.running: list[subprocess.Popen[str]] = []

    def as_here(self, text: str) -> str:
        """Give a word of the compose file as it must read on this machine."""
        for there, here in self.replaced.items():
            text = text.replace(there, here)
        return text

    def start(self, name: str) -> subprocess.Popen[str]:
        """Start a container's command with its environment and nothing of ours but the PATH."""
        program, *rest = map(self.as_here, COMPOSE[name]["command"])
        given = {key: self.as_here(str(value)) for key, value in environment(name).items()}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name(program)), *rest],
            env={"PATH": path, "HOME": "/tmp", **given},
            stdout=self.log,
            stderr=self.log,
            text=True,
        )
        self.running.append(process)
        return process

    def becomes_healthy(self, name: str) -> bool:
        """Repeat a container's health check until it passes or time is up."""
        _, program, *rest = map(self.as_here, COMPOSE[name]["healthcheck"]["test"])
        assert program == "python"
        deadline = time.monotonic() + SECONDS
        while (
            subprocess.run([sys.executable, *rest], capture_output=True, check=False).returncode
            != 0
        ):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def said(self) -> str:
        """Read what the containers wrote."""
        return Path(self.log.name).read_text()


def environment(name: str) -> dict[str, Any]:
    """Give a container's environment; YAML has already merged the shared part."""
    found: dict[str, Any] = COMPOSE[name]["environment"]
    return found


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    """Give the containers beside a running database; all are stopped in the end."""
    with EmbeddedPostgres(tmp_path / "postgres") as server:
        made = Containers(tmp_path, server.url)
        try:
            yield made
        finally:
            for process in reversed(made.running):
                process.terminate()
                process.wait(30)
            made.log.close()


def test_migrate_then_service_then_dashboard_come_up_healthy(containers: Containers) -> None:
    """In the order of depends_on each command does its part, and its own health check passes."""
    assert containers.start("migrate").wait(SECONDS) == 0, containers.said()
    containers.start("service")
    assert containers.becomes_healthy("service"), containers.said()
    containers.start("dashboard")
    assert containers.becomes_healthy("dashboard"), containers.said()

    assert "not listening" not in containers.said()


def test_the_service_refuses_a_database_nobody_migrated(containers: Containers) -> None:
    """It ends with a line that says what to run, and no traceback."""
    assert containers.start("service").wait(SECONDS) != 0
    assert "run `rlvitals migrate`" in containers.said()
    assert "Traceback" not in containers.said()
