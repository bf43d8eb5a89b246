"""How a run ends: what the service hears of it, and what the user does."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any, Literal, get_args

from rlvitals.items import Finish
from rlvitals.plain import plain
from rlvitals.sender import notice

if TYPE_CHECKING:
    from pathlib import Path

    from rlvitals.losses import Losses

State = Literal["finished", "failed", "crashed"]
LARGEST_CODE = 2**31


def ending(exit_code: Any, state: Any, summary: Any, losses: Losses) -> Finish:
    """Read what a trainer says about its end; what the wire does not know becomes the nearest."""
    code = _code(exit_code)
    if state not in get_args(State):
        state = "failed" if code else "finished"
    read: dict[str, Any] = {}
    with losses.guard("summary_unreadable", "the summary was dropped"):
        read = plain(dict(summary))
    return Finish(state, code, read)


def say_what_is_left(mode: str, spool: Path | None, losses: Losses) -> None:
    """Say where the records of a run are that were not sent, and how to send them."""
    where = f"in {spool}" if spool else "in memory only and are lost"
    if mode == "offline":
        if not os.environ.get("RLVITALS_SILENT"):
            notice(f"the run is recorded {where}; `rlvitals sync` sends it")
        return
    hint = " `rlvitals sync` sends them." if spool else ""
    losses.warn("unsent", f"not everything was sent; the records stay {where}.{hint}")


def _code(given: Any) -> int | None:
    if given is None:
        return None
    try:
        code = operator.index(given)
    except TypeError:
        return 1
    return code if -LARGEST_CODE <= code < LARGEST_CODE else 1
