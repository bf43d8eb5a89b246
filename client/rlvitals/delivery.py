"""Bring frames to the service: register, post, split what is too large, finish."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from rlvitals import frames
from rlvitals.records import (
    Acknowledgement,
    AlertRecord,
    Directive,
    StepAnswer,
    StepBatch,
    StepRecord,
)
from rlvitals.reduction import Key, key_of, merge
from rlvitals.transport import MSGPACK, Refused, Transport, decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlvitals.frames import Frame
    from rlvitals.losses import Losses

BATCH_RECORDS = 100
BATCH_BYTES = 2**20
TOO_LARGE = 413


class Registered(msgspec.Struct):
    """Answer a registration."""

    id: str
    attempt: int
    name: str | None = None
    resumed: bool = False
    last_step: int | None = None
    directive: Directive | None = None
    dashboard_url: str | None = None


class Told(msgspec.Struct):
    """Answer a heartbeat or a question for the directive."""

    directive: Directive | None = None


class Frames(Protocol):
    """Whatever keeps frames until they are acknowledged."""

    def read(self, limit: int) -> list[Frame]:
        """Give the next frames."""

    def acknowledge(self, frame: Frame) -> None:
        """Forget a frame and those before it."""


def introduce(transport: Transport, registration: dict[str, Any]) -> bytes:
    """Introduce a run; with the time of sending the service can tell how long ago it began."""
    body = msgspec.json.encode({**registration, "sent_at": time.time()})
    return transport.call("POST", "/api/v1/runs", body)


class Delivery:
    """Carry the frames of one run to one service; no waiting and no retrying in here.

    Every method may raise Unreachable or Refused; calling it again is always safe, since the
    service merges by key.
    """

    def __init__(
        self,
        store: Frames,
        registration: dict[str, Any],
        losses: Losses,
        on_directive: Callable[[Directive | None], None] | None = None,
    ) -> None:
        self._store, self._registration, self._losses = store, registration, losses
        self._hear = on_directive
        self._batch_records = BATCH_RECORDS
        self._reported: dict[str, int] = {}
        self._spooled_lost: dict[str, int] = {}
        self.registered: Registered | None = None
        self.finish_seen: dict[str, Any] | None = None
        self.sent_records = 0
        self.behind = False  # the last batch was full, or the next one is already

    def register(self, transport: Transport) -> Registered:
        """Introduce the run; the same introduction again gets the same answer."""
        self.registered = decode(introduce(transport, self._registration), Registered)
        self._on_directive(self.registered.directive)
        return self.registered

    def send_next(self, transport: Transport) -> bool:
        """Post the next batch; False when nothing waits to be sent."""
        found = self._store.read(BATCH_BYTES)
        if not found:
            return False
        batch, last = self._batch(found)
        try:
            self._post(transport, batch)
        except Refused as refusal:
            if refusal.status not in (400, TOO_LARGE, 422):
                raise
            self._shrink(transport, refusal, batch, last)
            return True
        full = len(batch.records) >= self._batch_records
        self._batch_records = BATCH_RECORDS
        self.sent_records += len(batch.records)
        self._store.acknowledge(last)
        # A small batch may have been under way, or held up, while a full one came together.
        self.behind = full or _is_full(self._store.read(BATCH_BYTES))
        return True

    def send_losses(self, transport: Transport) -> None:
        """Report losses that no batch has carried yet."""
        if self._lost() != self._reported:
            self._post(transport, StepBatch())

    def heartbeat(self, transport: Transport) -> None:
        """Say that the process is alive, and hear the directive."""
        run = self._run()
        body = {"attempt": run.attempt, "source": self._source}
        answer = transport.call(
            "POST", f"/api/v1/runs/{run.id}/heartbeat", msgspec.json.encode(body)
        )
        self._on_directive(decode(answer, Told).directive)

    def finish(self, transport: Transport) -> None:
        """Tell how this source of the attempt ended, as the finish frame said."""
        run, end = self._run(), self.finish_seen or {}
        body = {"attempt": run.attempt, "source": self._source}
        body["state"] = end.get("state", "finished")
        for name in ("exit_code", "summary"):
            if end.get(name):
                body[name] = end[name]
        transport.call("POST", f"/api/v1/runs/{run.id}/finish", msgspec.json.encode(body))

    @property
    def _source(self) -> Any:
        return self._registration.get("source", "0")

    def _run(self) -> Registered:
        if self.registered is None:
            raise RuntimeError("the run is not registered yet")
        return self.registered

    def _batch(self, found: list[Frame]) -> tuple[StepBatch, Frame]:
        records: dict[Key, StepRecord] = {}
        batch, last = StepBatch(), found[0]
        for frame in found:
            if frame.kind == frames.RECORD and len(records) >= self._batch_records:
                break
            with self._losses.guard("unreadable", "a spooled record cannot be read"):
                self._take(frame, batch, records)
            last = frame
        batch.records = [msgspec.Raw(msgspec.msgpack.encode(record)) for record in records.values()]
        return batch, last

    def _take(self, frame: Frame, batch: StepBatch, records: dict[Key, StepRecord]) -> None:
        if frame.kind == frames.RECORD:
            record = msgspec.msgpack.decode(frame.body, type=StepRecord)
            record.attempt = self._run().attempt
            key = key_of(record)
            records[key] = merge(records[key], record) if key in records else record
        elif frame.kind == frames.ACKNOWLEDGEMENT:
            batch.acknowledgements.append(msgspec.msgpack.decode(frame.body, type=Acknowledgement))
        elif frame.kind == frames.ALERT:
            batch.alerts.append(msgspec.msgpack.decode(frame.body, type=AlertRecord))
        elif frame.kind == frames.LOST:
            self._spooled_lost = msgspec.msgpack.decode(frame.body, type=dict[str, int])
        elif frame.kind == frames.FINISH:
            self.finish_seen = msgspec.msgpack.decode(frame.body, type=dict[str, Any])

    def _post(self, transport: Transport, batch: StepBatch) -> None:
        lost = batch.lost = self._lost()
        empty = not (batch.records or batch.acknowledgements or batch.alerts)
        if empty and lost == self._reported:
            return
        path = f"/api/v1/runs/{self._run().id}/steps"
        body = transport.call("POST", path, msgspec.msgpack.encode(batch), kind=MSGPACK)
        answer = decode(body, StepAnswer)
        self._reported = lost
        for rejection in answer.rejected:
            reason = rejection.get("reason")
            self._losses.add("rejected", f"the service rejected a record: {reason}")
        self._on_directive(answer.directive)

    def _shrink(
        self, transport: Transport, refusal: Refused, batch: StepBatch, last: Frame
    ) -> None:
        """Halve a batch that was refused whole; a single refused record is given up."""
        if len(batch.records) > 1:
            self._batch_records = max(1, len(batch.records) // 2)
            return
        reason = "too_large" if refusal.status == TOO_LARGE else "rejected"
        self._losses.add(reason, f"the service refused a record: {refusal.message}")
        if batch.records:
            batch.records = []
            self._post(transport, batch)
        self._store.acknowledge(last)
        self._batch_records = BATCH_RECORDS

    def _on_directive(self, directive: Directive | None) -> None:
        if self._hear is not None:
            self._hear(directive)

    def _lost(self) -> dict[str, int]:
        lost = dict(self._spooled_lost)
        for reason, count in self._losses.snapshot().items():
            lost[reason] = max(lost.get(reason, 0), count)
        return lost


def _is_full(found: list[Frame]) -> bool:
    size = sum(len(frame.body) for frame in found)
    return len(found) >= BATCH_RECORDS or size >= BATCH_BYTES // 2
