"""The pages of docs/science: their examples run, their links lead somewhere, their names exist."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

SCIENCE = Path(__file__).resolve().parents[2] / "docs/science"
PAGES = sorted(SCIENCE.rglob("*.md"))
PAGE_IDS = [str(page.relative_to(SCIENCE)) for page in PAGES]

_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_NAME = re.compile(r"\brlvitals(?:\.[A-Za-z_]\w*)+")


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_examples_print_what_the_page_says(page: Path) -> None:
    """Every `>>>` of a page, run in order, prints what stands below it."""
    failed, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link and figure is a file of the project."""
    targets = [link for link in _LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_names_exist(page: Path) -> None:
    """Every dotted name of rlvitals on a page can be imported."""
    missing = [name for name in set(_NAME.findall(page.read_text())) if not _exists(name)]
    assert missing == []


def test_the_index_names_every_page() -> None:
    """No page is left out of docs/science/README.md, and no figure without a page."""
    index = (SCIENCE / "README.md").read_text()
    assert [name for name in PAGE_IDS if name != "README.md" and f"({name})" not in index] == []
    shown = "".join(page.read_text() for page in PAGES)
    figures = [path.name for path in (SCIENCE / "figures").iterdir()]
    assert [name for name in figures if f"figures/{name}" not in shown] == []


def _exists(dotted: str) -> bool:
    parts = dotted.split(".")
    for stop in range(len(parts), 0, -1):
        try:
            thing: object = import_module(".".join(parts[:stop]))
        except ModuleNotFoundError:
            continue
        for name in parts[stop:]:
            if not hasattr(thing, name):
                return False
            thing = getattr(thing, name)
        return True
    return False
