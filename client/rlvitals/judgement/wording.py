"""Small pieces of sentences that all detectors share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Where rounding would hide that a share is not quite all or nothing.
ALMOST_ALL = 0.995
ALMOST_NONE = 0.005


def percent(share: float) -> str:
    """Write a share as a whole percentage, never rounding a remainder away to 0 or 100."""
    if ALMOST_ALL <= share < 1:
        return "over 99 %"
    if 0 < share < ALMOST_NONE:
        return "under 1 %"
    return f"{round(100 * share)} %"


def number(value: float) -> str:
    """Write a number with three significant digits."""
    return f"{value:.3g}"


def finite(scalars: Mapping[str, float], name: str) -> float | None:
    """Give a scalar as a finite float, None where it is missing or not finite."""
    value = scalars.get(name)
    return float(value) if value is not None and math.isfinite(value) else None


def listed(parts: list[str]) -> str:
    """Join phrases with commas and a final "and"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
