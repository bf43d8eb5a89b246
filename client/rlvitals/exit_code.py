"""Know the code a program ends with, without changing how it ends.

Python says nothing of a SystemExit when the interpreter ends, so `sys.exit` is listened to while a
run is live. What it raised ended the program only if it was raised in the main thread and that
thread's outermost frame was left by an exception: a SystemExit of another thread ends that thread,
and one that was caught ends nothing.
"""

from __future__ import annotations

import functools
import opcode
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


@dataclass(frozen=True)
class Heard:
    """Hold what `sys.exit` raised last in the main thread, and that thread's outermost frame."""

    code: Any
    outermost: FrameType


class Listener:
    """Stand in for `sys.exit` from `start` to `stop`."""

    def __init__(self) -> None:
        self.heard: Heard | None = None
        self._own: Callable[..., Any] | None = None
        self._before: Callable[..., Any] | None = None

    def start(self) -> None:
        """Listen to `sys.exit`, whatever stands there now; again changes nothing."""
        if self._own is not None:
            return
        self.heard = None
        self._before = before = sys.exit

        @functools.wraps(before)
        def exit(*args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in a traceback
            try:
                return before(*args, **kwargs)
            except SystemExit as error:
                if self._own is exit:
                    self._hear(error.code)
                raise

        self._own = sys.exit = exit

    def stop(self) -> None:
        """Put back what stood there; below somebody else's wrapper ours stays and does nothing."""
        if self._own is not None and sys.exit is self._own:
            sys.exit = self._before  # type: ignore[assignment]
        self._own = self._before = self.heard = None

    def code(self) -> int | None:
        """Give the code of the `sys.exit` that is ending the program; None when none is."""
        if self.heard is None or not left_by_exception(self.heard.outermost):
            return None
        return exit_code(self.heard.code)

    def _hear(self, code: Any) -> None:
        if threading.get_ident() == threading.main_thread().ident:
            self.heard = Heard(code, outermost_frame())


def exit_code(code: Any) -> int:
    """Give the number Python makes of what SystemExit holds: 0 for None, 1 for what is no int."""
    if code is None:
        return 0
    return int(code) if isinstance(code, int) else 1


def outermost_frame() -> FrameType:
    """Give the frame at the bottom of this thread's stack."""
    frame = sys._getframe()  # noqa: SLF001 - inspect.currentframe is the same and may be None
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def left_by_exception(frame: FrameType) -> bool:
    """Tell of a frame that has ended whether an exception ended it: it did not come to a return."""
    if frame.f_lasti < 0:
        return False
    return not opcode.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN_")
