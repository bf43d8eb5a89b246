"""A real browser, and a real dashboard over a real service, for looking at pages."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.training import Training
from tests.serving import Service
from waitress.server import create_server

import rlvitals
from rlvitals_dashboard.app import create_dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
PATIENCE_MILLISECONDS = 30_000


@dataclass
class Dashboard:
    """Hold a served dashboard and its client of the service."""

    url: str
    api: rlvitals.Api


@dataclass
class Window:
    """Hold a page and everything it complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)


# Not for the session: while Playwright runs, no other test of this process can run a loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium; skip where there is none, unless it is required."""
    required = os.environ.get("RLVITALS_REQUIRE_BROWSER") == "1"
    if not shutil.which(CHROMIUM) and not required:
        pytest.skip("no Chromium at /usr/bin/chromium (set RLVITALS_REQUIRE_BROWSER=1 to insist)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Window]]:
    """Give a maker of windows; at the end none may have complained on its console."""
    contexts: list[BrowserContext] = []
    windows: list[Window] = []

    def make(url: str, *, width: int = 1280, height: int = 900, **options: Any) -> Window:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        window = Window(context.new_page())
        windows.append(window)
        window.page.on("console", lambda said: _listen(window, said))
        window.page.on("pageerror", lambda error: window.complaints.append(str(error)))
        window.page.goto(url)
        return window

    yield make
    for context in contexts:
        context.close()
    for window in windows:
        assert window.complaints == []


@pytest.fixture(scope="module")
def dashboard(service: Service) -> Iterator[Dashboard]:
    """Serve the dashboard over the module's service."""
    api = rlvitals.Api(service.url, service.tokens["admin"])
    yield from served(api)


@pytest.fixture
def training(service: Service) -> Callable[..., Training]:
    """Give a maker of runs that report to the service."""

    def begin(**wanted: Any) -> Training:
        return Training(service.api("admin"), **wanted)

    return begin


def served(api: rlvitals.Api) -> Iterator[Dashboard]:
    """Serve a dashboard on a free port for as long as the block runs."""
    server = create_server(create_dashboard(api).server, host="127.0.0.1", port=0, threads=6)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield Dashboard(f"http://127.0.0.1:{server.effective_port}", api)
    finally:
        server.close()
        thread.join(10)


def _listen(window: Window, said: Any) -> None:
    if said.type in ("error", "warning"):
        window.complaints.append(said.text)
