"""Keep the written pages true."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_metrics_says_what_the_catalog_says() -> None:
    """docs/metrics.md is what docs/write_metrics.py would write now."""
    spec = importlib.util.spec_from_file_location("write_metrics", ROOT / "docs/write_metrics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/metrics.md").read_text() == module.page()
