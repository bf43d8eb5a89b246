"""Settings checked where they are made, with a message that names the field."""

from __future__ import annotations

from typing import Any


def check_number(value: Any, field: str, low: float, high: float) -> None:
    """Refuse what is not a real number within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"{field}: want a number from {low:g} to {high:g}, got {value!r}")


def check_flag(value: Any, field: str) -> None:
    """Refuse what is not true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{field}: want true or false, got {value!r}")  # noqa: TRY004


def check_count(value: Any, field: str, low: int) -> None:
    """Refuse what is not a whole number of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{field}: want a whole number of at least {low}, got {value!r}")


def check_trainer(eps: Any, ddof: Any) -> None:
    """Refuse what no trainer adds to a standard deviation or takes from its count."""
    check_number(eps, "eps", 0, 1)
    if isinstance(ddof, bool) or ddof not in (0, 1):
        raise ValueError(f"ddof: want 0 or 1, got {ddof!r}")
