"""Turn what a user hands over into what the wire holds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

DEEPEST = 8
LARGEST_BITS = 64  # of a whole number that msgpack holds whatever its sign
LONGEST_NAME = 200  # that the service stores


def plain(value: Any, depth: int = 0) -> Any:
    """Turn a configuration into what JSON can hold; unknown objects become their repr."""
    if isinstance(value, Enum):
        return plain(value.value, depth + 1)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float | str):
        return _scalar(value)
    if depth > DEEPEST:
        return clean_text(repr(value)[:200])
    if isinstance(value, Mapping):
        return {clean_text(str(k)): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth + 1) for item in value]
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return plain(value.to_dict(), depth + 1)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return plain(value.item(), depth + 1)
    if hasattr(value, "__dict__") and depth == 0 and not isinstance(value, type):
        shown = {k: v for k, v in vars(value).items() if not k.startswith("_")}
        return plain(shown, depth + 1)
    return clean_text(str(value)[:200])


def clean_text(text: str) -> str:
    """Replace what UTF-8 cannot carry (lone surrogates)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _scalar(value: float | str) -> int | float | str:
    """Give a number or text of exactly a built-in type: the wire knows no subclasses."""
    if isinstance(value, int):
        if value.bit_length() < LARGEST_BITS:
            return int(value)
        return hex(value)[:200]  # in decimal Python refuses to write the longest ones
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return clean_text(str(value))


def shortened(text: str, limit: int = LONGEST_NAME) -> str:
    """Cut a text that is too long; a hash of the whole keeps it apart from others."""
    text = clean_text(text)
    if len(text) <= limit:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{text[: limit - len(digest) - 1]}-{digest}"
