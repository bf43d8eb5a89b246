"""Print rows as a plain table that a person reads and `cut` or `awk` takes apart."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Lay out rows under headings; numbers to the right, texts to the left."""
    body = [list(row) for row in rows]
    cells = [list(headings), *([cell(value) for value in row] for row in body)]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    right = [
        any(isinstance(row[i], int | float) for row in body)
        and not any(isinstance(row[i], str) for row in body)
        for i in range(len(headings))
    ]
    return "\n".join(_line(row, widths, right) for row in cells)


def cell(value: Any) -> str:
    """Write one value: four significant digits, a dash for nothing."""
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    return " ".join(str(value).split())


def width(text: str) -> int:
    """Count terminal columns."""
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        " " * (size - width(text)) + text if flush else text + " " * (size - width(text))
        for text, size, flush in zip(row, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()
