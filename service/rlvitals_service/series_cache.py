"""Keep the columns of the long runs people look at; read only what changed since.

A chart of 100,000 steps is asked for again after every step. Reading it anew would cost the
database a scan each time; here it costs one look at the few rows with a newer revision.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from uuid import UUID

from sqlalchemy import Connection

from rlvitals_service.columns import Range, Steps, read_steps

MIB = 1024 * 1024
# A shorter run is read within milliseconds: keeping it is not worth the memory.
SHORTEST_KEPT = 5_000
MOST_BYTES = 128 * MIB

Key = tuple[UUID, str]


@dataclass
class Kept:
    """Hold a run's columns of one phase as of a revision; one reader at a time."""

    lock: Lock = field(default_factory=Lock)
    revision: int = -1
    steps: Steps | None = None

    def names(self) -> list[str]:
        """Name the metrics that are kept."""
        return [] if self.steps is None else list(self.steps.metrics)


class SeriesCache:
    """Answer reads of step data, from memory as far as nothing changed; safe between threads."""

    def __init__(self, most_bytes: int = MOST_BYTES, shortest_kept: int = SHORTEST_KEPT) -> None:
        self.most_bytes = most_bytes
        self.shortest_kept = shortest_kept
        self._lock = Lock()
        self._kept: OrderedDict[Key, Kept] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Count the bytes that are kept."""
        return sum(kept.steps.nbytes for kept in self._kept.values() if kept.steps is not None)

    def read(
        self, connection: Connection, wanted: Range, names: Sequence[str], revision: int
    ) -> Steps:
        """Read as `read_steps` does, at the run's revision or later.

        ``revision`` was read before, in the same transaction or an earlier one.
        """
        whole = wanted == Range(wanted.run_id, wanted.phase)
        kept = self._find((wanted.run_id, wanted.phase), make=whole)
        if kept is None:
            return read_steps(connection, wanted, names)
        with kept.lock:
            covered = set(names) <= set(kept.names())
            if not covered and not whole:
                return read_steps(connection, wanted, names)
            steps = _refreshed(connection, kept, wanted, names, revision)
            long = len(steps.step) >= self.shortest_kept
            kept.steps = steps if long else None
            kept.revision = revision
        if whole:
            self._make_room()
        return steps.only(names).within(wanted)

    def _find(self, key: Key, *, make: bool) -> Kept | None:
        with self._lock:
            if key not in self._kept and not make:
                return None
            kept = self._kept.setdefault(key, Kept())
            self._kept.move_to_end(key)
            return kept

    def _make_room(self) -> None:
        """Forget runs too short to keep, and those nobody asked for the longest."""
        with self._lock:
            for key in [key for key, kept in self._kept.items() if kept.steps is None]:
                if not self._kept[key].lock.locked():
                    del self._kept[key]
            while self._kept and self.nbytes > self.most_bytes:
                self._kept.popitem(last=False)


def _refreshed(
    connection: Connection, kept: Kept, wanted: Range, names: Sequence[str], revision: int
) -> Steps:
    """Bring the kept columns up to the revision, and give them with the names among them."""
    everything = Range(wanted.run_id, wanted.phase)
    known = kept.steps
    # A revision that went back means another past: a database restored from a backup.
    if known is None or revision < kept.revision:
        return read_steps(connection, everything, names).by_attempt()
    if revision > kept.revision:
        changed = replace(everything, after_revision=kept.revision)
        known = known.updated(read_steps(connection, changed, list(known.metrics)))
    new = [name for name in names if name not in known.metrics]
    if not new:
        return known
    joined = known.joined(read_steps(connection, everything, new).by_attempt())
    if joined is not None:
        return joined
    # A step came in between the reads.
    return read_steps(connection, everything, [*known.metrics, *new]).by_attempt()
