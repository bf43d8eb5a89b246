"""The list of runs, in a real browser over a real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Dashboard, Window, served
from tests.browser.training import Training
from tests.serving import Service

import rlvitals

pytestmark = pytest.mark.browser


@pytest.fixture
def powerless(service: Service) -> Iterator[Dashboard]:
    """Serve a dashboard whose token may send steps but not read."""
    yield from served(rlvitals.Api(service.url, service.tokens["ingest"]))


@pytest.fixture
def alone() -> Iterator[Dashboard]:
    """Serve a dashboard whose service is away."""
    yield from served(rlvitals.Api("http://127.0.0.1:9", "rlv_nobody"))


def test_empty_list_tells_what_to_type(
    dashboard: Dashboard, open_page: Callable[..., Window]
) -> None:
    """Before the first run the page shows the lines that make one."""
    page = open_page(dashboard.url).page
    expect(page.locator("#runs-empty")).to_be_visible()
    expect(page.locator("#first-steps")).to_contain_text("pip install rlvitals")
    expect(page.locator("#first-steps")).to_contain_text("rlvitals demo")


def test_run_in_need_comes_first_and_opens(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """A collapsed run stands above a healthy one and leads to its page."""
    training(name="collapsed-one", collapse_at=10).advance(60)
    training(name="healthy-one").advance(30)
    page = open_page(dashboard.url).page
    rows = page.locator("#runs-grid .ag-center-cols-container .ag-row")
    expect(rows).to_have_count(2)
    expect(page.locator('#runs-grid .ag-row[row-index="0"]')).to_contain_text("collapsed-one")
    expect(page.locator('#runs-grid .ag-row[row-index="0"]')).to_contain_text("critical")
    page.locator(".run-link", has_text="collapsed-one").click()
    expect(page.locator("#run-name")).to_have_text("collapsed-one")


def test_list_stays_live_and_keeps_sort_and_search(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """A new step shows within a few seconds; the chosen sort and the search stay."""
    first = training(name="sorted-a", project="sorting")
    second = training(name="sorted-b", project="sorting")
    first.advance(3)
    second.advance(6)
    page = open_page(dashboard.url).page
    page.locator("#runs-search").fill("sorted")
    rows = page.locator("#runs-grid .ag-center-cols-container .ag-row")
    expect(rows).to_have_count(2)
    page.locator(".ag-header-cell[col-id=step] .ag-header-cell-label").click()
    expect(page.locator('#runs-grid .ag-row[row-index="0"]')).to_contain_text("sorted-a")
    first.advance(10)
    expect(page.locator('#runs-grid .ag-row[row-index="0"]')).to_contain_text("sorted-b")
    expect(rows).to_have_count(2)


def test_search_and_project_are_in_the_address_and_come_back(
    dashboard: Dashboard, open_page: Callable[..., Window], training: Callable[..., Training]
) -> None:
    """After a reload, and back from a run, the list is filtered as it was."""
    for name, project in (("kept-a", "kept"), ("kept-b", "kept"), ("kept-a2", "other")):
        training(name=name, project=project).advance(3)
    page = open_page(dashboard.url).page
    rows = page.locator("#runs-grid .ag-center-cols-container .ag-row")
    page.locator("#runs-search").fill("kept-a")
    expect(rows).to_have_count(2)
    page.locator("#runs-project").click()
    page.locator(".dash-dropdown-option", has_text="kept").click()
    expect(rows).to_have_count(1)
    page.wait_for_function("() => new URLSearchParams(location.search).get('project') === 'kept'")

    def same_as_before() -> None:
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("kept-a")
        expect(page.locator("#runs-search")).to_have_value("kept-a")
        expect(page.locator("#runs-project")).to_contain_text("kept")

    page.reload()
    same_as_before()
    page.locator(".run-link").click()
    expect(page.locator("#run-name")).to_have_text("kept-a")
    page.go_back()
    same_as_before()
    page.locator("#runs-search").fill("")
    expect(rows).to_have_count(2)
    assert "q=" not in page.url


def test_wrong_token_is_told(powerless: Dashboard, open_page: Callable[..., Window]) -> None:
    """A token that may not read gives a message that names the setting to change."""
    page = open_page(powerless.url).page
    expect(page.locator("#runs-trouble")).to_contain_text("RLVITALS_TOKEN")


def test_service_away_is_told_calmly(alone: Dashboard, open_page: Callable[..., Window]) -> None:
    """Without a service the page stands, with a banner."""
    page = open_page(alone.url).page
    expect(page.locator("#runs-trouble")).to_contain_text("does not answer")
    expect(page.locator("h1")).to_have_text("Runs")


def test_unknown_run_is_told(dashboard: Dashboard, open_page: Callable[..., Window]) -> None:
    """The page of a run that is not there says so."""
    url = f"{dashboard.url}/runs/01900000-0000-7000-8000-000000000000"
    expect(open_page(url).page.locator("#run-trouble")).to_contain_text("no such run")
