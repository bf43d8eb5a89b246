"""What a run tells the service about itself, and the spool that carries it through a crash."""

from __future__ import annotations

import os
import socket
import time
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from rlvitals.plain import plain, shortened
from rlvitals.settings import LONGEST_SOURCE, Settings
from rlvitals.spool import Header, Spool

# What the service stores of an introduction; beyond it the whole run would be refused.
LARGEST_CONFIG, MOST_TAGS, LONGEST_NOTES = 512 * 1024, 50, 20_000

if TYPE_CHECKING:
    from rlvitals.losses import Losses


def config_of(given: Any, losses: Losses) -> dict[str, Any]:
    """Read what a user calls the configuration; count it as lost when it cannot be read."""
    with losses.guard("config_unreadable", "config was dropped"):
        ready = plain(given)
        size = len(msgspec.json.encode(ready))
        if size > LARGEST_CONFIG:
            raise ValueError(f"{size} bytes of JSON; at most {LARGEST_CONFIG} are kept")
        if ready is not None:
            return ready if isinstance(ready, dict) else {"config": ready}
    return {}


def registration(settings: Settings, config: dict[str, Any], started_at: float) -> dict[str, Any]:
    """Write the body of the request that introduces a run; what is not set is left out."""
    from rlvitals import __version__

    wanted = {
        "project": shortened(settings.project),
        "key": shortened(settings.key),
        "name": shortened(settings.name) if settings.name else None,
        "config": config or None,
        "tags": [shortened(tag) for tag in settings.tags[:MOST_TAGS]] or None,
        "group": shortened(settings.group) if settings.group else None,
        "notes": shortened(settings.notes, LONGEST_NOTES) if settings.notes else None,
        "resume": settings.resume,
        "attempt_key": shortened(settings.attempt_key),
        "source": shortened(settings.source, LONGEST_SOURCE),
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
