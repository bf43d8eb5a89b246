"""What becomes of live runs when the interpreter ends or the process forks."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.line import Line

live: weakref.WeakSet[Line] = weakref.WeakSet()


def finish_all() -> None:
    """Finish every live run when the interpreter ends, within one run's time in all."""
    failed = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    threads = [
        threading.Thread(target=run.finish, args=(1 if failed else None,), daemon=True)
        for run in list(live)[1:]
    ]
    with contextlib.suppress(RuntimeError):  # no new threads at shutdown: one after the other
        for thread in threads:
            thread.start()
    for run in list(live):
        run.finish(1 if failed else None)
    for thread in threads:
        if thread.ident is not None:
            thread.join(1.0)


def abandon_all_in_child() -> None:
    """Turn the forked copies of live runs deaf."""
    for run in list(live):
        with contextlib.suppress(Exception):
            run.abandon_in_child()
    live.clear()


atexit.register(finish_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=abandon_all_in_child)
