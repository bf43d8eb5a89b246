"""Markdown tables, medians over rounds, and ratios within a round."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Figures = dict[str, float]
Rounds = dict[int, Figures]  # one contestant's figures, by round


def medians(rounds: Rounds) -> Figures:
    """Take the median of each figure over the rounds."""
    names = next(iter(rounds.values()))
    return {name: statistics.median(figures[name] for figures in rounds.values()) for name in names}


def ratio(mine: Rounds, base: Rounds | None, name: str, digits: int = 1) -> str:
    """Write the median, and the range, of the ratio to the base in the same round."""
    shared = mine.keys() & base.keys() if base else set()
    if base is None or not shared:
        return "-"
    found = [mine[number][name] / base[number][name] for number in shared]
    low, high = min(found), max(found)
    return f"{statistics.median(found):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def table(columns: Mapping[str, str], rows: Sequence[Sequence[str]]) -> str:
    """Lay rows out under columns, whose values are '<' for text and '>' for numbers."""
    marks = ["---:" if side == ">" else "---" for side in columns.values()]
    lines = [list(columns), marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
