"""Send from a thread of our own, patiently: batch, back off, beat, and stop on time."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from rlvitals import discovery
from rlvitals.backoff import Backoff
from rlvitals.losses import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlvitals.delivery import Delivery, Registered
    from rlvitals.losses import Losses
    from rlvitals.settings import Settings
    from rlvitals.transport import Transport

GATHER_SECONDS = 0.02
FINISH_RETRY_SECONDS = 0.25
QUIET_SECONDS = 600.0  # without trouble, before trouble is news again


class Sender:
    """Run the sending thread of one run.

    `finishing` asks it to send what is left and close the run; `done` is set when the service has
    everything and knows that the run ended; `refusal` holds why the service wants no more.
    """

    def __init__(
        self, settings: Settings, make_delivery: Callable[[], Delivery], losses: Losses
    ) -> None:
        self._settings, self._make_delivery, self._losses = settings, make_delivery, losses
        self._backoff = Backoff()
        self._wake = threading.Event()
        self._stop = False
        self._nowhere = False  # no address of a service is known
        self._last_contact = self._trouble_at = time.monotonic()
        self.finishing = threading.Event()
        self.done = threading.Event()
        self.registered = threading.Event()
        self.refusal: str | None = None
        self.transport: Transport | None = None
        self.before_registering: Callable[[Transport], None] | None = None
        self.on_registered: Callable[[Registered, Transport], None] | None = None
        self._thread = threading.Thread(target=self._work, name="rlvitals-sender", daemon=True)

    def start(self) -> None:
        """Start the sending thread."""
        self._thread.start()

    def nudge(self) -> None:
        """Say that there is something to send."""
        self._wake.set()

    def finish(self) -> None:
        """Ask to send everything now, then close the run."""
        self._nowhere = False  # it may have come up since the last look
        self.finishing.set()
        self._wake.set()

    def wait_done(self, deadline: float) -> bool:
        """Wait until all is sent, nobody wants more, or a monotonic deadline passes."""
        while not self.done.wait(0.02):
            hopeless = self.refusal is not None or self._nowhere
            if hopeless or time.monotonic() > deadline:
                return False
        return True

    def stop(self) -> None:
        """Ask the thread to end after its present call."""
        self._stop = True
        self._wake.set()

    def _work(self) -> None:
        # Loading the HTTP library takes a moment, which init must not take from the trainer.
        try:
            self._delivery = self._make_delivery()
        except Exception as error:  # noqa: BLE001 - whatever is broken, training goes on
            self.refusal = describe(error)
            self._losses.add("internal", f"nothing can be sent: {self.refusal}")
        while not self._stop and not self.done.is_set() and self.refusal is None:
            pause = self._attempt()
            if pause > 0 and not self._stop:
                self._pause(pause)

    def _attempt(self) -> float:
        """Do one piece of work; give the seconds to wait before the next."""
        from rlvitals.transport import Refused, Unreachable

        try:
            pause = self._work_once()
        except Unreachable as error:
            return self._unreachable(str(error))
        except Refused as refusal:
            return self._refused(refusal)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end the thread
            if not self._stop:  # a finish that gave up has closed the spool under this thread
                self._losses.add("internal", f"sending failed: {error!r}")
            return self._backoff.next()
        self._backoff.reset()
        if time.monotonic() - self._trouble_at > QUIET_SECONDS:
            self._losses.forget("unreachable")  # the next outage is another one
        return pause

    def _work_once(self) -> float:
        transport = self.transport or self._connect()
        if self._delivery.registered is None:
            self._register(transport)
        if self._delivery.send_next(transport):
            self._last_contact = time.monotonic()
            hurry = self.finishing.is_set() or self._delivery.behind
            return 0.0 if hurry else self._settings.flush_seconds
        if self.finishing.is_set() and self._delivery.finish_seen is not None:
            return self._close(transport)
        return self._idle(transport)

    def _idle(self, transport: Transport) -> float:
        """Beat when it is time, else sleep until something comes."""
        due = self._last_contact + self._settings.heartbeat_seconds - time.monotonic()
        if due <= 0:
            self._delivery.heartbeat(transport)
            self._last_contact = time.monotonic()
            due = self._settings.heartbeat_seconds
        if self.finishing.is_set():
            self._wake.wait(GATHER_SECONDS)
        elif self._wake.wait(due):
            self.finishing.wait(GATHER_SECONDS)  # what belongs to one step comes close together
        self._wake.clear()
        return 0.0

    def _connect(self) -> Transport:
        from rlvitals.transport import Timeouts, Transport, Unreachable

        settings = self._settings
        address = discovery.find(settings.home, settings.url, settings.token)
        self._nowhere = address.url is None
        if address.url is None:
            raise Unreachable("no service is known: set RLVITALS_URL or start `rlvitals up`")
        timeouts = Timeouts(settings.connect_seconds, settings.read_seconds)
        return Transport(address.url, address.token, timeouts)

    def _register(self, transport: Transport) -> None:
        if self.before_registering is not None:
            self.before_registering(transport)
        run = self._delivery.register(transport)
        self.transport = transport
        self._last_contact = time.monotonic()
        if self.on_registered is not None:
            with self._losses.guard("internal", "the answer to the introduction was not used"):
                self.on_registered(run, transport)
        self.registered.set()

    def _close(self, transport: Transport) -> float:
        self._delivery.send_losses(transport)
        self._delivery.finish(transport)
        self.done.set()
        return 0.0

    def _unreachable(self, reason: str) -> float:
        self._trouble_at = time.monotonic()
        where = self._settings.url or "the service"
        self._losses.warn(
            "unreachable",
            f"cannot reach {where} ({reason}); training goes on, data is kept on disk "
            "and sent when it answers",
        )
        return self._backoff.next()

    def _refused(self, refusal: Any) -> float:
        if not refusal.temporary:
            self.refusal = f"{refusal.status} {refusal.message}"
            self._losses.warn("refused", _explain(refusal))
            return 0.0
        self._trouble_at = time.monotonic()
        self._losses.warn(
            "unreachable", f"the service is in trouble ({refusal.message}); trying again later"
        )
        return self._backoff.next(refusal.retry_after)

    def _pause(self, seconds: float) -> None:
        """Wait; new data does not cut a pause short, but a finish does, after a failure less so."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stop:
            if self.finishing.wait(min(left, 0.5)):
                if self._backoff.failing:
                    time.sleep(min(left, FINISH_RETRY_SECONDS))
                return


def _explain(refusal: Any) -> str:
    hints = {
        401: "check RLVITALS_TOKEN",
        403: "the token lacks the 'ingest' scope or belongs to another project",
        404: "the run or project is not known there",
        409: "resume='never' and the run exists already, or it was closed",
    }
    hint = hints.get(refusal.status, "")
    return (
        f"the service refuses this run ({refusal.status}: {refusal.message})"
        f"{'; ' + hint if hint else ''}. Nothing more is sent; data is kept on disk for "
        "`rlvitals sync`"
    )


def notice(text: str) -> None:
    """Tell the user something good on stderr; never raise."""
    with contextlib.suppress(Exception):  # stderr may be closed or replaced
        sys.stderr.write(f"rlvitals: {text}\n")
