"""Database, service and dashboard on this machine, as one thing to start, watch and stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import FrameType

from rlvitals_service.children import Child, GivenUp, Say
from rlvitals_service.local import CannotStart, DataFolder, check_port, free_port
from rlvitals_service.postgres import EmbeddedPostgres, PostgresError

READY_SECONDS = 120.0
LOOK_SECONDS = 0.2
DASHBOARD_STOP_SECONDS = 5.0
SERVICE_STOP_SECONDS = 10.0
# One thread in each numeric library: the work is small, and threads would only be in its way.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how to reach it from here
NEEDS_DASHBOARD = "The dashboard is not installed: pip install 'rlvitals[dashboard]'."


class Stopped(Exception):
    """Somebody asked the launcher to stop while it was starting."""


@dataclass
class Stack:
    """Hold what runs, and where it answers."""

    folder: DataFolder
    host: str
    port: int
    dashboard_port: int
    say: Say
    stop_asked: threading.Event
    with_dashboard: bool = True
    own_database: bool = False  # even where RLVITALS_DATABASE_URL names another
    database: EmbeddedPostgres | None = None
    children: list[Child] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The service's address as seen from this machine."""
        return _url(self.host, self.port)

    @property
    def dashboard_url(self) -> str | None:
        """The dashboard's address; None without a dashboard."""
        return _url(self.host, self.dashboard_port) if self.with_dashboard else None

    def start(self) -> None:
        """Start everything and wait until it answers; CannotStart, GivenUp or Stopped if not."""
        if self.with_dashboard and find_spec("rlvitals_dashboard.__main__") is None:
            self.with_dashboard = False
            self.say(NEEDS_DASHBOARD)
        self._take_ports()
        named = None if self.own_database else os.environ.get("RLVITALS_DATABASE_URL")
        url = named or self._start_database()
        self._start_child("service", f"{self.url}/readyz", self._service_environment(url))
        if self.dashboard_url:
            self._start_child("dashboard", self.dashboard_url, self._dashboard_environment())

    def watch(self) -> None:
        """Look after everything once; GivenUp when something will not stay alive."""
        for child in self.children:
            child.keep_alive(self.say)
        if self.database is not None and not self.database.is_running:
            self.say("The database ended; starting it again.")
            try:
                self.database.start()
            except PostgresError as error:
                raise GivenUp(str(error)) from error

    def stop(self) -> None:
        """Stop the dashboard, the service and the database, in this order, within bounds."""
        bounds = {"dashboard": DASHBOARD_STOP_SECONDS, "service": SERVICE_STOP_SECONDS}
        for child in reversed(self.children):
            child.stop(bounds[child.name])
        self.children.clear()
        if self.database is not None:
            self.database.stop()

    def _take_ports(self) -> None:
        """Check the ports; 0 stands for any free one."""
        self.port = self.port or free_port(self.host, 0)
        check_port(self.host, self.port, "--port")
        if not self.with_dashboard:
            return
        self.dashboard_port = self.dashboard_port or free_port(self.host, 0)
        if self.dashboard_port == self.port:
            msg = f"Service and dashboard cannot share port {self.port}: see --dashboard-port."
            raise CannotStart(msg)
        check_port(self.host, self.dashboard_port, "--dashboard-port")

    def _start_database(self) -> str:
        self.database = EmbeddedPostgres(self.folder.postgres)
        try:
            return self.database.start()
        except PostgresError as error:
            self._check_stop()
            raise CannotStart(str(error)) from error

    def _start_child(self, name: str, url: str, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", f"rlvitals_{name}"]
        child = Child(name, command, environment, self.folder.log(name))
        self.children.append(child)
        child.start()
        if not self._wait(child, lambda: answers(url)):
            msg = f"The {name} did not answer within {READY_SECONDS:.0f} s. {child.last_words()}"
            raise GivenUp(msg)

    def _wait(self, child: Child, ready: Callable[[], bool]) -> bool:
        """Wait until the child is ready; at its first start a dead child is not tried again."""
        waited = 0.0
        while waited < READY_SECONDS:
            if ready():
                return True
            self._check_stop()
            if child.exit_code is not None:
                raise GivenUp(f"The {child.name} could not start. {child.last_words()}")
            self.stop_asked.wait(LOOK_SECONDS)
            waited += LOOK_SECONDS
        return False

    def _check_stop(self) -> None:
        if self.stop_asked.is_set():
            raise Stopped

    def _service_environment(self, database_url: str) -> dict[str, str]:
        given = {
            "RLVITALS_DATABASE_URL": database_url,
            "RLVITALS_HOST": self.host,
            "RLVITALS_PORT": str(self.port),
            "RLVITALS_BOOTSTRAP_TOKEN_FILE": str(self.folder.token),
        }
        if self.dashboard_url:
            given["RLVITALS_DASHBOARD_URL"] = self.dashboard_url
        return _environment(given)

    def _dashboard_environment(self) -> dict[str, str]:
        given = {
            "RLVITALS_URL": self.url,
            "RLVITALS_TOKEN_FILE": str(self.folder.token),
            "RLVITALS_DASHBOARD_HOST": self.host,
            "RLVITALS_DASHBOARD_PORT": str(self.dashboard_port),
        }
        return _environment(given)


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Give the launcher's environment without what would outvote the given values."""
    kept = {name: value for name, value in os.environ.items() if name != "RLVITALS_TOKEN"}
    return {**kept, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONUNBUFFERED": "1", **given}


def _url(host: str, port: int) -> str:
    name = ANY_ADDRESS.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def answers(url: str) -> bool:
    """Tell whether an address of this machine answers well."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5) as response:
            return bool(response.status < 400)  # noqa: PLR2004 - HTTP's line between well and not
    except (OSError, urllib.error.HTTPError):
        return False


@contextmanager
def stopping_signals() -> Iterator[threading.Event]:
    """Turn Ctrl-C, SIGTERM and a closed terminal into an event, for the time of the block."""
    asked = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
