"""What becomes of live runs when the interpreter ends or the process forks."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING

from rlvitals.exit_code import Listener

if TYPE_CHECKING:
    from rlvitals.line import Line

live: weakref.WeakSet[Line] = weakref.WeakSet()
listener = Listener()
_lock = threading.RLock()  # a signal handler may finish a run while in here


def begin(run: Line) -> None:
    """Take a run into the live ones; from the first one on, listen for the exit code."""
    with _lock:
        live.add(run)
        listener.start()


def end(run: Line) -> None:
    """Let go of a run; after the last one, `sys.exit` is what it was."""
    with _lock:
        live.discard(run)
        if not live:
            listener.stop()


def finish_all() -> None:
    """Finish every live run when the interpreter ends, within one run's time in all."""
    with contextlib.suppress(Exception):
        code = _code()
        for run in [run for run in list(live) if run.begin_finish(code)]:
            run.complete_finish()


def abandon_all_in_child() -> None:
    """Turn the forked copies of live runs deaf."""
    global _lock  # noqa: PLW0603 - the parent's may be held, and nobody here would let go of it
    _lock = threading.RLock()
    for run in list(live):
        with contextlib.suppress(Exception):
            run.abandon_in_child()
    live.clear()
    listener.stop()


def _code() -> int | None:
    """Give the code this program ends with as far as anybody said so."""
    if hasattr(sys, "ps1"):  # at a prompt an error ends nothing
        return None
    return 1 if getattr(sys, "last_value", None) is not None else listener.code()


atexit.register(finish_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=abandon_all_in_child)
