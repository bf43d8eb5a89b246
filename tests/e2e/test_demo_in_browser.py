"""Do what a new user does: start the demo, watch the run, switch remedies on and off again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlvitals
from rlvitals_service.local import free_port

pytestmark = [pytest.mark.slow, pytest.mark.browser]

playwright = pytest.importorskip("playwright.sync_api")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
QUIET = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
]
HOST = "127.0.0.1"
SECONDS = 1_000
JOB_WAIT = 120 * SECONDS  # milliseconds, as Playwright counts


class Demo:
    """A running `rlvitals demo` and a way to read what its service knows."""

    def __init__(self, folder: Path) -> None:
        self.port, self.dashboard_port = (free_port(HOST, 0) for _ in range(2))
        command = [sys.executable, "-m", "rlvitals.cli", "demo", "--steps", "0", "--no-browser"]
        command += ["--data", str(folder / "data"), "--port", str(self.port)]
        command += ["--dashboard-port", str(self.dashboard_port)]
        env = os.environ | {"RLVITALS_HOME": str(folder), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.lines = iter(self.process.stdout.readline, "")
        self.said = []
        for line in self.lines:
            self.said.append(line)
            if "dashboard  http" in line:
                break
        token = (folder / "data" / "token").read_text().strip()
        self.api = rlvitals.Api(f"http://127.0.0.1:{self.port}", token)

    def stop(self) -> int:
        """Press Ctrl-C; give the exit status."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Give a running demo."""
    running = Demo(tmp_path_factory.mktemp("demo"))
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture
def page(demo: Demo) -> Iterator[playwright.Page]:
    """Give a page of a real browser."""
    if CHROMIUM is None:
        assert not os.environ.get("RLVITALS_REQUIRE_BROWSER"), "install Debian's chromium"
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(JOB_WAIT)
        yield page
        browser.close()


def number(text: str | None) -> int:
    """Read the digits of a text; -1 without any."""
    digits = re.sub(r"\D", "", text or "")
    return int(digits) if digits else -1


def test_a_new_user_watches_the_run_and_steers_it(demo: Demo, page: playwright.Page) -> None:
    """Points arrive without reload; remedies go on, acknowledged at a step, and off again."""
    page.goto(f"http://127.0.0.1:{demo.dashboard_port}/")
    page.locator("#runs-grid a[href*='/runs/']").first.click()
    page.wait_for_selector("#run-verdict")
    before = page.locator("#run-step")
    page.wait_for_function("() => /\\d/.test(document.querySelector('#run-step').innerText)")
    seen = number(before.inner_text())
    page.evaluate("() => { window.notReloaded = true }")
    wait_for_step(page, seen + 1)
    assert page.evaluate("() => window.notReloaded")

    run_id = demo.api.runs()[0]["id"]
    for remedy in ("focal", "avspo"):
        page.locator(f"#control-{remedy}").click()
        page.wait_for_selector(f"#control-{remedy}[aria-checked=true]")
    page.locator("#control-apply").click()
    in_words = "() => /step\\s[\\d,]+/.test(document.querySelector('#control-state').innerText)"
    page.wait_for_function(in_words)
    directive = demo.api.directive(run_id)
    assert directive["focal"] == {"gamma": 0.5}
    assert directive["avspo"] is not None
    assert directive["state"] in ("acknowledged", "effective")
    at = directive["acknowledged_step"]
    assert f"{at:,}" in page.locator("#control-state").inner_text()

    wait_for_step(page, at + 40)
    series = demo.api.history(run_id, metrics=["acr", "acr_effective"], from_step=at).metrics
    raw, effective = (sum(series[name]["value"]) for name in ("acr", "acr_effective"))
    assert effective < raw

    page.locator("#control-withdraw").click()
    page.wait_for_function(
        "() => /withdrawn|off/i.test(document.querySelector('#control-state').innerText)"
    )
    off = demo.api.directive(run_id)
    assert (off["mode"], off["state"]) == ("off", "withdrawn")


STEP = "Number(document.querySelector('#run-step').innerText.replace(/\\D/g, ''))"


def wait_for_step(page: playwright.Page, step: int) -> None:
    """Wait until the page shows a step."""
    page.wait_for_function(f"wanted => {STEP} >= wanted", arg=step)


def test_ctrl_c_stops_everything_cleanly(demo: Demo) -> None:
    """The demo ends with status 0 and leaves nobody listening on its ports."""
    assert demo.stop() == 0
    with pytest.raises(rlvitals.ApiError):
        demo.api.runs()
