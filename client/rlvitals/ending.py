"""How a run ends: the state, code and summary that the service hears of."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, get_args

from rlvitals.items import Finish
from rlvitals.plain import plain

if TYPE_CHECKING:
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


def _code(given: Any) -> int | None:
    if given is None:
        return None
    try:
        code = operator.index(given)
    except TypeError:
        return 1
    return code if -LARGEST_CODE <= code < LARGEST_CODE else 1
