"""What becomes of live runs when the interpreter ends or the process forks."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.line import Line

live: weakref.WeakSet[Line] = weakref.WeakSet()


def finish_all() -> None:
    """Finish every live run when the interpreter ends, within one run's time in all."""
    failed = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    code = 1 if failed else None
    with contextlib.suppress(Exception):
        for run in [run for run in list(live) if run.begin_finish(code)]:
            run.complete_finish()


def abandon_all_in_child() -> None:
    """Turn the forked copies of live runs deaf."""
    for run in list(live):
        with contextlib.suppress(Exception):
            run.abandon_in_child()
    live.clear()


atexit.register(finish_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=abandon_all_in_child)
