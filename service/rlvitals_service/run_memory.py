"""What this process remembers of a run between two batches, so as not to read it again.

A memory is good only for the revision that it was left at; otherwise it is read anew. Whoever
holds the lock on the run's row owns its memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection, select

from rlvitals.records import Scalar
from rlvitals_service.database import driver
from rlvitals_service.incident_rows import read_open
from rlvitals_service.judging import MEMORY, JudgedAttempt, rebuilt
from rlvitals_service.sparkline import Sparkline
from rlvitals_service.step_rows import read_newest_steps
from rlvitals_service.tables import attempt as attempt_table
from rlvitals_service.tables import run
from rlvitals_service.vitals import StepVitals

MOST_RUNS = 512
# A list of runs carries these; what has more names is charted all the same.
MOST_NAMES = 4_000


@dataclass(slots=True)
class Span:
    """Hold the first and the last step of an attempt, and its sources."""

    first: int | None = None
    last: int | None = None
    sources: set[str] = field(default_factory=set)

    def cover(self, step: int) -> None:
        """Widen the span to a step."""
        self.first = step if self.first is None else min(self.first, step)
        self.last = step if self.last is None else max(self.last, step)


@dataclass(slots=True)
class RunMemory:
    """Remember a run as of one revision.

    ``latest`` has the newest value of each metric, by phase; ``newest`` the place of the newest
    step of each phase; ``sparkline`` the ACR of the whole run in few points; ``spans`` its
    attempts, in the order in which they began.
    """

    revision: int
    latest: dict[str, dict[str, Scalar]]
    newest: dict[str, tuple[int, int]]
    sparkline: Sparkline
    spans: dict[int, Span]
    judged: dict[int, JudgedAttempt] = field(default_factory=dict)
    _ages: dict[int, int] = field(default_factory=dict)

    def age(self, attempt: int) -> int:
        """Give the place of an attempt among all in the order in which they began."""
        if len(self._ages) != len(self.spans):
            self._ages = {number: place for place, number in enumerate(self.spans)}
        return self._ages.get(attempt, -1)

    def note(self, step: StepVitals, rate_before: float | None = None) -> None:
        """Take a step into the summary that lists of runs show.

        ``rate_before`` is the ACR that was stored of it, when it is derived again.
        """
        attempt, at = self.newest.get(step.phase, (0, -1))
        latest = self.latest[step.phase]
        encoded = step.encoded()
        if len(latest) + len(encoded) > MOST_NAMES:
            encoded = self._known(latest, encoded)
        if (self.age(step.attempt), step.step) >= (self.age(attempt), at):
            self.newest[step.phase] = (step.attempt, step.step)
            latest.update(encoded)
        else:
            self.latest[step.phase] = encoded | latest
        if step.phase == "train":
            rate = step.values.get("acr")
            self.sparkline.add(step.attempt, step.step, rate, rate_before, self.age)

    def _known(self, latest: dict[str, Scalar], found: dict[str, Scalar]) -> dict[str, Scalar]:
        """Leave out names that would be too many for the summary of a run."""
        room = MOST_NAMES - len(latest)
        fresh = [name for name in found if name not in latest]
        left_out = set(fresh[max(0, room) :])
        return {name: value for name, value in found.items() if name not in left_out}


class Memories:
    """Keep the memories of the runs that wrote last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[UUID, RunMemory] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, run_id: UUID, revision: int) -> RunMemory | None:
        """Take the memory out, if it is of this revision; whoever fails simply keeps it out."""
        with self._lock:
            memory = self._kept.pop(run_id, None)
        return memory if memory is not None and memory.revision == revision else None

    def keep(self, run_id: UUID, memory: RunMemory) -> None:
        """Put a memory back; forget the run that has been silent for longest."""
        with self._lock:
            self._kept[run_id] = memory
            while len(self._kept) > MOST_RUNS:
                self._kept.popitem(last=False)


def read_memory(connection: Connection, run_id: UUID, revision: int) -> RunMemory:
    """Read what a memory holds, the Judges aside."""
    query = select(run.c.latest, run.c.latest_eval, run.c.sparkline).where(run.c.id == run_id)
    row = connection.execute(query).one()
    spans = read_spans(connection, run_id)
    return RunMemory(
        revision=revision,
        latest={"train": row.latest, "eval": row.latest_eval},
        newest=_newest(connection, run_id),
        sparkline=Sparkline.read(row.sparkline or {}),
        spans=spans,
    )


def read_spans(connection: Connection, run_id: UUID) -> dict[int, Span]:
    """Read which attempts a run has, in the order in which they began, and their steps."""
    query = select(attempt_table).where(attempt_table.c.run_id == run_id)
    query = query.order_by(attempt_table.c.started_at, attempt_table.c.attempt)
    return {
        row.attempt: Span(row.first_step, row.last_step, set(row.sources))
        for row in connection.execute(query)
    }


def _newest(connection: Connection, run_id: UUID) -> dict[str, tuple[int, int]]:
    found = connection.exec_driver_sql(
        "SELECT phase, attempt, step FROM (VALUES ('train'), ('eval')) AS phases (phase), LATERAL ("
        " SELECT attempt.attempt, last.step FROM attempt, LATERAL ("
        "  SELECT step FROM step WHERE step.run_id = attempt.run_id"
        "  AND step.attempt = attempt.attempt AND step.phase = phases.phase"
        "  ORDER BY step DESC LIMIT 1) AS last"
        " WHERE attempt.run_id = %s"
        " ORDER BY attempt.started_at DESC, attempt.attempt DESC LIMIT 1) AS newest",
        (run_id,),
    )
    return {phase: (attempt, step) for phase, attempt, step in found}


def judged_attempt(
    connection: Connection, run_id: UUID, memory: RunMemory, attempt: int
) -> JudgedAttempt:
    """Give the Judge of an attempt, made anew from stored steps when it is not remembered."""
    known = memory.judged.get(attempt)
    if known is None:
        steps = read_newest_steps(driver(connection), run_id, attempt, MEMORY)
        span = memory.spans.get(attempt)
        first = span.first if span else None
        known = rebuilt(steps, read_open(connection, run_id, attempt), first)
        memory.judged[attempt] = known
    return known
