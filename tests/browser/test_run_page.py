"""The page of a run, in a real browser over a real service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Dashboard, Window
from tests.browser.training import Training

pytestmark = pytest.mark.browser

TRACES = "#panel-acr .scatterlayer .trace"
RANGES = """() => [...document.querySelectorAll('.run-page .js-plotly-plot')]
    .map((plot) => plot._fullLayout && plot._fullLayout.xaxis.range.map(Math.round))"""
ALL_SHOW = f"""(ends) => {{
    const shown = ({RANGES})();
    return shown.length > 4 && shown.every((r) => r && r[0] === ends[0] && r[1] === ends[1]);
}}"""


def run_page(dashboard: Dashboard, training: Training) -> str:
    """Give the address of a run's page."""
    return f"{dashboard.url}/runs/{training.run_id}"


def drag_zoom(window: Window, panel: str, start: float, end: float) -> None:
    """Drag over a panel from one share of its width to another."""
    area = window.page.locator(f"#{panel} .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    window.page.mouse.move(box["x"] + start * box["width"], middle)
    window.page.mouse.down()
    window.page.mouse.move(box["x"] + end * box["width"], middle, steps=6)
    window.page.mouse.up()


def test_steps_appear_without_a_reload(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """A step that arrives while the page is open shows in number, tile and chart."""
    run = training(name="live-run")
    run.advance(30)
    page = open_page(run_page(dashboard, run)).page
    expect(page.locator("#run-step")).to_have_text("29")
    expect(page.locator("#run-name")).to_have_text("live-run")
    expect(page.locator(TRACES).first).to_be_attached()
    run.advance(5)
    expect(page.locator("#run-step")).to_have_text("34")
    page.wait_for_function(f"() => ({RANGES})()[0][1] === 34")


def test_collapse_is_told_with_its_side_and_can_be_acknowledged(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """A collapsed run says so in its verdict and list of incidents, which can be acknowledged."""
    run = training(name="collapsing", collapse_at=20, nonfinite_at=10)
    run.advance(80)
    page = open_page(run_page(dashboard, run)).page
    expect(page.locator("#run-verdict")).to_contain_text("%")
    expect(page.locator("#incident-list .severity-critical").first).to_be_visible()
    page.locator("#incident-list button", has_text="Acknowledge").first.click()
    expect(page.locator("#incident-list")).to_contain_text("✓ acknowledged by")
    expect(page.locator("#answer-gradient")).to_contain_text("not finite at step 10")


def test_zoom_is_shared_kept_and_in_the_address(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """Zooming one panel zooms all, outlives live updates and a reload, and can be undone."""
    run = training(name="zoomed")
    run.advance(60)
    window = open_page(run_page(dashboard, run))
    page = window.page
    expect(page.locator("#panel-tail .scatterlayer .trace").first).to_be_attached()
    drag_zoom(window, "panel-gradient", 0.25, 0.5)
    page.wait_for_function("() => new URLSearchParams(location.search).get('from')")
    asked = page.evaluate("() => Object.fromEntries(new URLSearchParams(location.search))")
    ends = [int(asked["from"]), int(asked["to"])]
    assert 10 <= ends[0] <= 18
    assert 26 <= ends[1] <= 33
    page.wait_for_function(ALL_SHOW, arg=ends)
    run.advance(5)
    expect(page.locator("#run-step")).to_have_text("64")
    assert all(shown == ends for shown in page.evaluate(RANGES))
    page.reload()
    page.wait_for_function(ALL_SHOW, arg=ends)
    page.locator("#range-reset").click()
    page.wait_for_function(ALL_SHOW, arg=[0, 64])
    assert "from=" not in page.url


def test_directive_goes_from_wish_to_effect(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """A directive shows as pending, in force since a step and withdrawn, as the trainer answers."""
    run = training(name="treated")
    run.advance(20)
    page = open_page(run_page(dashboard, run)).page
    state = page.locator("#control-state")
    expect(state).to_contain_text("No directive yet")
    expect(page.locator("#control-apply")).to_be_disabled()
    page.locator("#control-focal").click()
    page.locator("#control-gamma label", has_text="γ 1").click()
    expect(page.locator("#control-plan")).to_contain_text("(1 − success rate)^1")
    page.locator("#control-apply").click()
    expect(state).to_contain_text("Focal γ 1: pending since version 1")
    run.acknowledge(1)
    expect(state).to_contain_text("acknowledged by 0")
    run.advance(3)
    expect(state).to_contain_text("in force since step 20")
    page.locator("#control-withdraw").click()
    expect(state).to_contain_text("pending since version 2")
    run.acknowledge(2)
    expect(state).to_contain_text("withdrawn", ignore_case=True)


def test_conflict_changes_nothing_and_says_so(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """When someone else was faster, the form says so and the other directive stays."""
    run = training(name="contested")
    run.advance(5)
    page = open_page(run_page(dashboard, run)).page
    expect(page.locator("#control-avspo")).to_be_enabled()
    page.locator("#control-avspo").click()
    expect(page.locator("#control-apply")).to_be_enabled()
    page.evaluate("() => { Object.defineProperty(document, 'hidden', { get: () => true }) }")
    dashboard.api.set_directive(run.run_id, {"mode": "on", "focal": {"gamma": 2.0}})
    page.locator("#control-apply").click()
    expect(page.locator("#control-answer")).to_contain_text("Nothing was changed")
    newest = dashboard.api.directives(run.run_id)[0]
    assert (newest["version"], newest["avspo"]) == (1, None)


def test_clicks_in_quick_succession_all_count(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """Two switches pressed in the same moment are both on."""
    run = training(name="quick")
    run.advance(5)
    page = open_page(run_page(dashboard, run)).page
    expect(page.locator("#control-avspo")).to_be_enabled()
    press = "name => document.querySelector(`#control-${name}`).click()"
    page.evaluate(f"() => {{ ['focal', 'avspo'].forEach({press}) }}")
    for name in ("focal", "avspo"):
        expect(page.locator(f"#control-{name}")).to_have_attribute("aria-checked", "true")


def test_groups_of_a_step_are_listed(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """The table shows the newest step's groups, and those of a step that is typed."""
    run = training(name="grouped")
    run.advance(12)
    page = open_page(run_page(dashboard, run)).page
    expect(page.locator("#groups-answer")).to_contain_text("Step 11: 32 groups")
    page.locator("#groups-step").fill("3")
    page.locator("#groups-step").press("Enter")
    expect(page.locator("#groups-answer")).to_contain_text("Step 3: 32 groups")
    expect(page.locator("#groups-grid .ag-row").first).to_contain_text("prompt-")


def test_nothing_can_be_changed_after_the_end(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """A finished run's switches are off, with the reason beside them."""
    run = training(name="over")
    run.advance(5)
    run.finish()
    page = open_page(run_page(dashboard, run)).page
    expect(page.locator("#control-plan")).to_contain_text("This run has finished")
    expect(page.locator("#control-focal")).to_be_disabled()
    expect(page.locator("#control-apply")).to_be_disabled()


def test_theme_is_followed_switched_and_remembered(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """The page follows the system's theme, the button switches it, a reload keeps the choice."""
    run = training(name="themed")
    run.advance(5)
    page = open_page(run_page(dashboard, run), color_scheme="dark").page
    theme: Any = "() => document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "dark"
    expect(page.locator(TRACES).first).to_be_attached()
    page.locator("#theme-toggle").click()
    page.wait_for_function("() => document.documentElement.dataset.theme === 'light'")
    page.reload()
    assert page.evaluate(theme) == "light"


def test_phone_has_no_sideways_scroll(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """At 390 pixels everything fits the width."""
    run = training(name="on-a-phone", collapse_at=10)
    run.advance(60)
    page = open_page(run_page(dashboard, run), width=390, height=844, has_touch=True).page
    expect(page.locator(TRACES).first).to_be_attached()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
