"""Wait at the service for a new directive, so that a click arrives within a round trip."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from rlvitals.backoff import Backoff
from rlvitals.delivery import Told
from rlvitals.transport import Refused, Transport, decode

if TYPE_CHECKING:
    from rlvitals.control import Control

WAIT_SECONDS = 25
SHORTEST_ROUND_SECONDS = 0.2


class Listener:
    """Long-poll the directive of one run on a daemon thread."""

    def __init__(self, transport: Transport, run_id: str, control: Control) -> None:
        self._transport, self._run_id, self._control = transport, run_id, control
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="rlvitals-listener", daemon=True)

    def start(self) -> None:
        """Start listening."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the present poll."""
        self._stopped.set()

    def _work(self) -> None:
        backoff = Backoff()
        while not self._stopped.is_set():
            began, before = time.monotonic(), self._control.version
            try:
                self._poll()
                backoff.reset()
            except Refused as refusal:
                if not refusal.temporary:
                    return  # the sender meets the same refusal and reports it
                self._stopped.wait(backoff.next(refusal.retry_after))
            except Exception:  # noqa: BLE001 - listening goes on whatever happened
                self._stopped.wait(backoff.next())
            # A proxy that answers at once without news must not make this a busy loop.
            if self._control.version == before:
                spent = time.monotonic() - began
                self._stopped.wait(max(SHORTEST_ROUND_SECONDS - spent, 0.0))

    def _poll(self) -> None:
        body = self._transport.call(
            "GET",
            f"/api/v1/runs/{self._run_id}/directive",
            query={"since": self._control.version, "wait": WAIT_SECONDS},
            read_seconds=WAIT_SECONDS + 10.0,
        )
        self._control.receive(decode(body, Told).directive)
