"""One process's line to the service: what goes out over it, what it knows, and how it ends."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from rlvitals import exits
from rlvitals.control import Control
from rlvitals.ending import State, ending, say_what_is_left
from rlvitals.exit_code import exit_code
from rlvitals.identity import Identity
from rlvitals.introduction import config_of, open_spool, registration
from rlvitals.losses import Losses
from rlvitals.outbox import Outbox
from rlvitals.sender import Sender, notice
from rlvitals.store import Store

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from rlvitals.delivery import Delivery, Registered
    from rlvitals.items import Item
    from rlvitals.listener import Listener
    from rlvitals.records import Directive
    from rlvitals.reduction import Reducer
    from rlvitals.settings import Settings
    from rlvitals.spool import Spool
    from rlvitals.transport import Transport


class Line(Identity):
    """Hold the threads that write and send, and what the service answered about the run."""

    def __init__(self, settings: Settings, config: Any = None) -> None:
        self.settings = settings
        self._losses = Losses()
        self.config: dict[str, Any] = config_of(config, self._losses)
        self.summary: dict[str, Any] = {}
        self._closed = settings.mode == "disabled"
        self._deaf = ""  # why calls are ignored, once they are
        self._finish_lock = threading.RLock()  # a signal handler may finish while in here
        self._registered: Registered | None = None
        self._listener: Listener | None = None
        self._started_at = time.time()
        self._deadline = math.inf  # of the end, once it has begun
        self._control = Control(self._put, settings.source, settings.abilities)
        self._outbox: Outbox | None = None
        self._sender: Sender | None = None
        if settings.mode != "disabled":
            self._begin()

    @property
    def directive(self) -> Directive | None:
        """Give the newest directive heard of, without asking anybody."""
        return self._control.directive

    @property
    def spool(self) -> Path | None:
        """Give the file that holds what is still to be sent."""
        held = self._outbox.store.spool if self._outbox else None
        return held.path if held else None

    @property
    def losses(self) -> dict[str, int]:
        """Count what was dropped in this process, by reason."""
        return self._losses.snapshot()

    def wait_registered(self, seconds: float = 5.0) -> bool:
        """Wait until the service knows this run; False when it did not answer in time."""
        return self._sender is not None and self._sender.registered.wait(seconds)

    def finish(self, exit_code: int | None = None, *, state: State | None = None) -> None:
        """Send what is left and close the run, within 5 seconds in all.

        What could not be sent by then stays on disk, and a line says how to send it. Calling it
        again does nothing.
        """
        with self._losses.guard("internal", "finish failed"), self._finish_lock:
            if self.begin_finish(exit_code, state=state):
                self.complete_finish()

    def begin_finish(self, exit_code: int | None = None, *, state: State | None = None) -> bool:
        """Close the run to further calls and let its end be sent; False when it is closed."""
        outbox = self._outbox
        if self._closed or outbox is None:
            return False
        self._closed, self._deaf = True, "after_finish"
        self._deadline = time.monotonic() + self.settings.finish_seconds
        outbox.put(ending(exit_code, state, self.summary, self._losses))
        if self._sender is not None:
            self._sender.finish()
        return True

    def complete_finish(self) -> None:
        """Wait for what was begun, up to its deadline, and say what could not be sent."""
        outbox, sender = self._outbox, self._sender
        if outbox is None:
            return
        written = outbox.finished.wait(max(self._deadline - time.monotonic(), 0.0))
        complete = written and sender is not None and sender.wait_done(self._deadline)
        for thread in (sender, self._listener):
            if thread is not None:
                thread.stop()
        exits.end(self)
        outbox.leave(keep=not complete)
        if not complete:
            say_what_is_left(self.settings.mode, self.spool, self._losses)

    def __enter__(self) -> Self:
        """Use the run as a block; an exception in it marks the run failed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the run and let the exception through."""
        self.finish(_code(kind, error))

    def abandon_in_child(self) -> None:
        """Turn a forked copy deaf without touching the parent's file, lock or sockets."""
        self._closed, self._deaf = True, "forked"
        self._finish_lock = threading.RLock()
        self._losses = Losses()
        spool = self._outbox.store.spool if self._outbox else None
        if spool is not None:
            spool.abandon_in_child()
        self._outbox = self._sender = self._listener = None

    def _begin(self) -> None:
        settings = self.settings
        self._outbox = Outbox(self._reducer, self._open_spool, self._losses, settings.queue_items)
        if settings.mode == "online":
            self._sender = Sender(settings, self._delivery, self._losses)
            self._sender.before_registering = self._introduce_earlier
            self._sender.on_registered = self._on_registered
            self._outbox.on_write = self._sender.nudge
        try:
            if self._sender is not None:
                self._sender.start()
            self._outbox.start()
        except RuntimeError as error:  # out of threads, or the interpreter is ending
            return self._give_up(str(error))
        exits.begin(self)
        return None

    def _give_up(self, reason: str) -> None:
        if self._sender is not None:
            self._sender.stop()
        self._outbox = self._sender = None
        self._closed, self._deaf = True, "no_threads"
        self._losses.add(self._deaf, f"nothing is recorded: {reason}")

    def _reducer(self) -> Reducer:
        from rlvitals.reduction import Reducer

        settings = self.settings
        return Reducer(
            self._losses, settings.source, settings.success_threshold, settings.failure_threshold
        )

    def _delivery(self) -> Delivery:
        from rlvitals.delivery import Delivery

        store = self._outbox.store if self._outbox else Store(self._losses)
        return Delivery(store, self._introduction(), self._losses, self._control.receive)

    def _open_spool(self) -> Spool:
        return open_spool(self.settings, self._introduction(), self._started_at)

    def _introduction(self) -> dict[str, Any]:
        return registration(self.settings, self.config, self._started_at)

    def _put(self, item: Item) -> None:
        if self._outbox is not None:
            self._outbox.put(item)

    def _introduce_earlier(self, transport: Transport) -> None:
        from rlvitals.replay import introduce_earlier

        if self.settings.resume != "never":
            introduce_earlier(self.settings.home / "spool", transport, self._introduction())

    def _on_registered(self, registered: Registered, transport: Transport) -> None:
        from rlvitals.listener import Listener

        self._registered = registered
        if not os.environ.get("RLVITALS_SILENT"):
            where = registered.dashboard_url or transport.url
            notice(f"run {registered.name or self.key!r} is at {where}")
        if self.settings.abilities:
            self._listener = Listener(transport, registered.id, self._control)
            self._listener.start()
        bring_in = threading.Thread(
            target=_bring_in_orphans,
            args=(self.settings.home / "spool", transport),
            name="rlvitals-replay",
            daemon=True,
        )
        bring_in.start()


def _code(kind: type[BaseException] | None, error: BaseException | None) -> int:
    if isinstance(error, SystemExit):
        return exit_code(error.code)
    return 0 if kind is None else 1


def _bring_in_orphans(folder: Path, transport: Transport) -> None:
    from rlvitals.replay import bring_in_orphans

    with contextlib.suppress(Exception):  # they stay on disk, and `rlvitals sync` says why
        bring_in_orphans(folder, transport)
