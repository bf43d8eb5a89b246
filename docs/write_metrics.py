"""Write docs/metrics.md from the catalog, so that the page cannot say anything else.

python docs/write_metrics.py
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from rlvitals.metrics import CATALOG, Metric

PAGE = Path(__file__).with_name("metrics.md")
ARROWS = {"up": "higher", "down": "lower", None: ""}
INTRODUCTION = """# Metrics

The canonical keys, as the API, the dashboard and exports name them. Names that trainers log (TRL
old and new, verl, ms-swift) are mapped onto these; unknown names are kept as they are. Standard
deviations have ddof=1. A share whose denominator is empty is null, never 0 and never NaN. This page
is written from `rlvitals.metrics.CATALOG` by `docs/write_metrics.py`.
"""


def row(metric: Metric) -> str:
    """Give one line of a table."""
    unit = f" ({metric.unit})" if metric.unit else ""
    return (
        f"| `{metric.key}` | {metric.label}{unit} | {ARROWS[metric.better]} "
        f"| {metric.definition} | {metric.reference} |"
    )


def page() -> str:
    """Lay the whole catalog out, a table for each of its groups."""
    parts = [INTRODUCTION]
    ordered = sorted(CATALOG.values(), key=lambda metric: metric.group)
    for group, metrics in groupby(ordered, key=lambda metric: metric.group):
        head = "| key | label | better | definition | reference |\n|---|---|---|---|---|"
        parts.append("\n".join([f"## {group.capitalize()}\n", head, *map(row, metrics), ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
