"""Vital signs of RL-with-verifiable-rewards training."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvitals.api import Api, ApiError, History
    from rlvitals.run import Run
    from rlvitals.session import alert, finish, init, log, log_groups, reweight

__version__ = "0.1.0"
__all__ = [
    "Api",
    "ApiError",
    "History",
    "Run",
    "__version__",
    "alert",
    "finish",
    "init",
    "log",
    "log_groups",
    "reweight",
]

# Loaded on first use: the formulas in rlvitals.metrics need NumPy alone, a trainer never needs
# the reading client, and the reading client needs no trainer's hook.
_HOMES = {
    "Api": "rlvitals.api",
    "ApiError": "rlvitals.api",
    "History": "rlvitals.api",
    "Run": "rlvitals.run",
    "alert": "rlvitals.session",
    "finish": "rlvitals.session",
    "init": "rlvitals.session",
    "log": "rlvitals.session",
    "log_groups": "rlvitals.session",
    "reweight": "rlvitals.session",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use and keep it."""
    home = _HOMES.get(name)
    if home is None:
        if name in ("metrics", "remedies", "judgement", "trainers"):
            return import_module(f"rlvitals.{name}")
        raise AttributeError(f"module 'rlvitals' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(set(globals()) | set(__all__))
