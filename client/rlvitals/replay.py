"""Bring in the spools that dead processes left behind."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvitals.backoff import Backoff
from rlvitals.delivery import Delivery, introduce
from rlvitals.losses import Losses, describe
from rlvitals.spool import Busy, Spool
from rlvitals.store import Store
from rlvitals.transport import Refused, Transport, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """Say what became of one spool."""

    path: Path
    state: str  # sent | busy | failed
    records: int = 0
    detail: str = ""
    name: str = ""
    lost: int = 0


def spools(folder: Path) -> list[Path]:
    """List spool files, the one that was written last at the end."""
    written: dict[Path, float] = {}
    for path in folder.glob("*.spool"):
        with contextlib.suppress(OSError):  # another process brought it in meanwhile
            written[path] = path.stat().st_mtime
    return sorted(written, key=lambda path: (written[path], path.name))


def sync(
    folder: Path, connect: Callable[[str | None], Transport | None], patience_seconds: float = 20.0
) -> Iterator[Outcome]:
    """Bring in every spool of a folder; yield an outcome for each as it ends.

    `connect` maps the address a spool was meant for to a transport; None leaves it alone.
    """
    for path in spools(folder):
        try:
            spool = Spool.open(path)
        except Busy as busy:
            yield Outcome(path, "busy", detail=str(busy))
            continue
        except FileNotFoundError:
            continue  # another process brought it in meanwhile
        except (OSError, ValueError) as error:
            yield Outcome(path, "failed", detail=str(error))
            continue
        transport = connect(spool.header.url)
        if transport is None:
            spool.close()
            continue
        yield bring_in(spool, transport, patience_seconds)


def bring_in(spool: Spool, transport: Transport, patience_seconds: float) -> Outcome:
    """Send one spool to its end, then delete it; keep it when anything is missing."""
    losses = Losses()
    store = Store(losses)
    store.use(spool)
    registration = {**spool.header.registration, "resume": "allow"}
    delivery = Delivery(store, registration, losses)
    name = str(registration.get("name") or registration.get("key") or spool.path.stem)
    try:
        _patiently(lambda: _send_all(delivery, transport), patience_seconds)
    except Exception as error:  # noqa: BLE001 - of the service, the disk or what the spool holds
        spool.close()
        return Outcome(spool.path, "failed", delivery.sent_records, describe(error), name)
    lost = losses.snapshot()
    detail = ", ".join(f"{count} {reason}" for reason, count in lost.items())
    spool.delete()
    return Outcome(spool.path, "sent", delivery.sent_records, detail, name, sum(lost.values()))


def bring_in_orphans(folder: Path, transport: Transport) -> list[Outcome]:
    """Bring in what dead online runs of this machine left for this service."""
    return [
        bring_in(spool, transport, patience_seconds=60.0) for spool in _orphans(folder, transport)
    ]


def introduce_earlier(folder: Path, transport: Transport, registration: dict[str, Any]) -> None:
    """Introduce the dead attempts of a run, so that they are numbered before the one that begins.

    Their records may follow later. Raises Unreachable and Refused when trying again may help.
    """
    same = ("project", "key")
    for spool in _orphans(folder, transport):
        with contextlib.closing(spool):
            earlier = {**spool.header.registration, "resume": "allow"}
            if any(earlier.get(name) != registration.get(name) for name in same):
                continue
            try:
                introduce(transport, earlier)
            except Refused as refusal:
                if refusal.temporary:
                    raise


def _orphans(folder: Path, transport: Transport) -> Iterator[Spool]:
    """Open, one by one, the spools that dead online runs of this machine left for a service."""
    mine = socket.gethostname()
    for path in spools(folder):
        try:
            spool = Spool.open(path)
        except (OSError, ValueError):
            continue
        header = spool.header
        meant = header.url is None or header.url.strip().rstrip("/") == transport.url
        if header.mode == "online" and header.host == mine and meant:
            yield spool
        else:
            spool.close()


def _send_all(delivery: Delivery, transport: Transport) -> None:
    if delivery.registered is None:
        delivery.register(transport)
    while delivery.send_next(transport):
        pass
    if delivery.finish_seen is None:
        # The process died without a word; how, nobody saw.
        delivery.finish_seen = {"state": "crashed"}
    delivery.finish(transport)


def _patiently(action: Callable[[], None], seconds: float) -> None:
    deadline, backoff = time.monotonic() + seconds, Backoff()
    while True:
        try:
            return action()
        except Unreachable:
            pause = backoff.next()
            if time.monotonic() + pause > deadline:
                raise
        except Refused as refusal:
            pause = backoff.next(refusal.retry_after)
            if not refusal.temporary or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
