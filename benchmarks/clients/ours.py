"""rlvitals: online with the service that RLVITALS_URL names, and offline."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.contract import Finish, Log, Open


def scalars(mode: str) -> tuple[Log, Finish]:
    """Log named numbers."""
    run = _run(mode)
    return (lambda step, row: run.log(row, step=step)), run.finish


def groups(mode: str) -> tuple[Log, Finish]:
    """Log the rewards of groups."""
    run = _run(mode)
    return (lambda step, rewards: run.log_groups(rewards, step=step)), run.finish


def _run(mode: str) -> Any:
    import rlvitals

    name = f"hook-{os.getpid()}"
    return rlvitals.init(project="bench", name=name, mode=mode, dir=".", success_threshold=1.0)


SCALARS: dict[str, Open] = {
    f"rlvitals {mode}": partial(scalars, mode) for mode in ("online", "offline")
}
GROUPS: dict[str, Open] = {
    f"rlvitals {mode}": partial(groups, mode) for mode in ("online", "offline")
}
