"""What a run tells the service about itself, and the spool that carries it through a crash."""

from __future__ import annotations

import os
import socket
import time
import uuid
from typing import TYPE_CHECKING, Any

from rlvitals.settings import Settings, clean_text, plain
from rlvitals.spool import Header, Spool

if TYPE_CHECKING:
    from rlvitals.losses import Losses


def config_of(given: Any, losses: Losses) -> dict[str, Any]:
    """Read what a user calls the configuration; count it as lost when it cannot be read."""
    with losses.guard("config_unreadable", "config was dropped"):
        ready = plain(given)
        if ready is not None:
            return ready if isinstance(ready, dict) else {"config": ready}
    return {}


def registration(settings: Settings, config: dict[str, Any], started_at: float) -> dict[str, Any]:
    """Write the body of the request that introduces a run; what is not set is left out."""
    from rlvitals import __version__

    wanted = {
        "project": clean_text(settings.project),
        "key": clean_text(settings.key),
        "name": settings.name and clean_text(settings.name),
        "config": config or None,
        "tags": [clean_text(tag) for tag in settings.tags] or None,
        "group": settings.group and clean_text(settings.group),
        "notes": settings.notes and clean_text(settings.notes),
        "resume": settings.resume,
        "attempt_key": settings.attempt_key,
        "source": clean_text(settings.source),
        "success_threshold": settings.success_threshold,
        "failure_threshold": settings.failure_threshold,
        "abilities": list(settings.abilities),
        "started_at": started_at,
        "rlvitals_version": __version__,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def open_spool(settings: Settings, introduced_as: dict[str, Any], started_at: float) -> Spool:
    """Start the spool of a run; its name sorts by the time the run started."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(started_at))
    name = f"{stamp}-{os.getpid()}-{uuid.uuid4().hex[:8]}.spool"
    header = Header(
        url=settings.url or os.environ.get("RLVITALS_URL"),
        mode=settings.mode,
        host=socket.gethostname(),
        pid=os.getpid(),
        attempt_key=settings.attempt_key,
        registration=introduced_as,
    )
    return Spool.create(settings.home / "spool" / name, header, settings.spool_bytes)
