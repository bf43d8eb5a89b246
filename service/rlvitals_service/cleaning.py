"""Make any text and any JSON storable in PostgreSQL; pure."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from rlvitals.records import encode_scalar

# PostgreSQL's text and jsonb refuse NUL and lone surrogates.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"
DEEPEST = 64


def clean_text(text: str) -> str:
    """Replace what PostgreSQL cannot store; most texts come back as they are."""
    return UNSTORABLE.sub(REPLACEMENT, text) if not text.isascii() or "\x00" in text else text


def clean_json(value: Any, depth: int = DEEPEST) -> Any:
    """Clean every text of a JSON value and name its non-finite numbers.

    Raises ValueError when it is nested deeper than `depth`.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return encode_scalar(value)
    if not isinstance(value, (dict, list)):
        return value
    if depth == 0:
        msg = f"nested deeper than {DEEPEST} levels"
        raise ValueError(msg)
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_json(item, depth - 1) for key, item in value.items()}
    return [clean_json(item, depth - 1) for item in value]


def _clean(value: Any) -> Any:
    # BeforeValidator would take a second parameter for its own.
    return clean_json(value)


# A field of a request model that takes any text a client may send.
CleanText = Annotated[str, BeforeValidator(_clean)]
