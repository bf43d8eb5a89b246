"""A run of 100,000 steps on its page: nothing is lost in its overview, and a zoom shows it raw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Dashboard, Window
from tests.serving import Api, Service

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STEPS, BATCH = 100_000, 500
PANELS = ("acr", "gradient", "reward", "passk", "tail")
TRACE = """([panel, name]) => {
    const plot = document.querySelector(`#panel-${panel} .js-plotly-plot`);
    const found = ((plot && plot.data) || []).find((trace) => trace.name === name);
    return found ? { x: Array.from(found.x), y: Array.from(found.y) } : null;
}"""
RANGES = """() => [...document.querySelectorAll('.run-page .js-plotly-plot')]
    .map((plot) => plot._fullLayout && plot._fullLayout.xaxis.range.map(Math.round))"""
RAW = "gradient norm, each step"


@dataclass
class LongRun:
    """Hold a run's id, and what was sent of it."""

    api: Api
    run_id: str
    columns: dict[str, np.ndarray]
    spike: int

    def send(self, records: list[dict[str, Any]]) -> None:
        """Post a batch as msgpack; all of it must be taken."""
        body = msgspec.msgpack.encode({"records": records})
        kind = {"Content-Type": "application/msgpack"}
        path = f"/api/v1/runs/{self.run_id}/steps"
        answer = self.api.call("POST", path, raw=body, headers=kind)
        assert answer.json["accepted"] == len(records), answer.body

    def advance(self, grad_norm: float) -> None:
        """Report one more step, the last one's figures with another gradient norm."""
        self.columns = {n: np.append(c, c[-1]) for n, c in self.columns.items()}
        self.columns["grad_norm"][-1] = grad_norm
        step = len(self.columns["grad_norm"]) - 1
        self.send([{"step": step, "scalars": {n: float(c[step]) for n, c in self.columns.items()}}])


def figures() -> dict[str, np.ndarray]:
    """Make the figures of a run that learns, collapses late and has noise on everything."""
    rng = np.random.default_rng(20)
    at = np.linspace(0, 1, STEPS)
    solved, dead = 0.35 * at**2 + 0.02, 0.3 * np.exp(-4 * at) + 0.03
    passed, failed = (rng.binomial(64, share) / 64 for share in (solved, dead))
    success = np.clip(0.3 + 0.4 * at + rng.normal(0, 0.04, STEPS), 0, 1)
    return {
        "acr": passed + failed,
        "acr_all_pass": passed,
        "acr_all_fail": failed,
        "success_rate": success,
        "pass_at_1": success,
        "pass_at_8": np.clip(success + 0.2 + rng.normal(0, 0.02, STEPS), 0, 1),
        "tail_miss_risk": np.clip(0.2 - 0.1 * at + rng.normal(0, 0.02, STEPS), 0, 1),
        "grad_norm": np.exp(-0.5 - at + 0.15 * rng.normal(size=STEPS)),
        "loss": 0.1 * rng.normal(size=STEPS),
    }


@pytest.fixture(scope="module")
def long_run(service: Service) -> LongRun:
    """Fill a run through the API, with one high gradient norm at a random step."""
    api = service.api("admin")
    spike = int(np.random.default_rng(8).integers(10_000, STEPS - 10_000))
    columns = figures()
    columns["grad_norm"][spike] = 30.0
    run = LongRun(api, api.new_run(name="long-run"), columns, spike)
    table = np.transpose([*columns.values()]).tolist()
    rows = [dict(zip(columns, row, strict=True)) for row in table]
    for start in range(0, STEPS, BATCH):
        steps = range(start, start + BATCH)
        run.send([{"step": step, "scalars": rows[step]} for step in steps])
    return run


def opened(dashboard: Dashboard, open_page: Callable[..., Window], run: LongRun) -> Page:
    """Open the run's page and wait for its charts."""
    page = open_page(f"{dashboard.url}/runs/{run.run_id}").page
    page.wait_for_function(f"(wanted) => ({TRACE})(wanted) !== null", arg=["gradient", RAW])
    return page


def test_overview_shows_every_panel_the_spike_and_true_means(
    dashboard: Dashboard, open_page: Callable[..., Window], long_run: LongRun
) -> None:
    """All panels are drawn, the one-step spike is marked, and the trend is the mean's."""
    page = opened(dashboard, open_page, long_run)
    for panel in PANELS:
        expect(page.locator(f"#panel-{panel} .scatterlayer .trace").first).to_be_attached()
    assert long_run.spike in page.evaluate(TRACE, ["gradient", "spike"])["x"]
    expect(page.locator("#answer-gradient")).to_contain_text(f"{long_run.spike:,}")
    raw = page.evaluate(TRACE, ["gradient", RAW])
    assert len(raw["x"]) <= 1200
    assert (raw["x"][0], raw["x"][-1]) == (0, len(long_run.columns["grad_norm"]) - 1)
    expected = f"{long_run.columns['acr'].mean():.0%}"
    expect(page.locator("#tile-wasted .tile-value")).to_have_text(expected)
    stack = [page.evaluate(TRACE, ["acr", name]) for name in ("all fail", "all pass")]
    shown = np.sum([layer["y"] for layer in stack], axis=0)
    np.testing.assert_allclose(np.mean(shown), long_run.columns["acr"].mean(), rtol=0.01)


def test_zoom_shows_raw_steps_while_the_run_goes_on(
    dashboard: Dashboard, open_page: Callable[..., Window], long_run: LongRun
) -> None:
    """A range of 1,000 steps comes whole and stays in view while new steps arrive."""
    page = opened(dashboard, open_page, long_run)
    ends = [long_run.spike - 400, long_run.spike + 600]
    for name, end in zip(("from", "to"), ends, strict=True):
        page.locator(f"#range-{name}").fill(str(end))
        page.locator(f"#range-{name}").press("Enter")
    page.wait_for_function(
        f"([wanted, most]) => {{ const t = ({TRACE})(wanted); return t && t.x.length > most; }}",
        arg=[["gradient", RAW], 1000],
    )
    raw = page.evaluate(TRACE, ["gradient", RAW])
    assert raw["x"] == list(range(raw["x"][0], raw["x"][-1] + 1))
    assert raw["x"][0] <= ends[0] < ends[1] <= raw["x"][-1]
    np.testing.assert_allclose(raw["y"], long_run.columns["grad_norm"][raw["x"]], rtol=1e-3)
    assert page.evaluate(TRACE, ["gradient", "spike"])["x"] == [long_run.spike]
    for norm in ("7.77", "8.88"):
        long_run.advance(float(norm))
        newest = len(long_run.columns["grad_norm"]) - 1
        expect(page.locator("#run-step")).to_have_text(f"{newest:,}")
        expect(page.locator("#tile-grad_norm .tile-value")).to_have_text(norm)
        assert all(shown == ends for shown in page.evaluate(RANGES))
    page.locator("#range-reset").click()
    page.wait_for_function(f"(end) => ({RANGES})().every((r) => r && r[1] === end)", arg=newest)
