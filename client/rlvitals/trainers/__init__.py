"""One file a trainer; each is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Load `rlvitals.trainers.trl` and its kin on first use: they need torch and more."""
    if name in ("sharpness", "torch", "trl"):
        return import_module(f"rlvitals.trainers.{name}")
    raise AttributeError(f"module 'rlvitals.trainers' has no attribute {name!r}")
