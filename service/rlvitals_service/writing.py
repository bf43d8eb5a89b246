"""Write one batch in one transaction: merge, derive, judge, store, notify."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection

from rlvitals.judgement import Change
from rlvitals.metrics.groups import Groups
from rlvitals.records import StepAnswer, StepRecord
from rlvitals_service.alert_rows import store_alerts
from rlvitals_service.auth import Principal
from rlvitals_service.batch import Batch
from rlvitals_service.cleaning import clean_text
from rlvitals_service.database import Database, driver
from rlvitals_service.directive_rows import mark_effective, store_acknowledgements
from rlvitals_service.errors import NotFound
from rlvitals_service.incident_rows import Where, store_changes
from rlvitals_service.judging import judge_steps
from rlvitals_service.parts import Part, PartKey, StepKey, key_of, merge
from rlvitals_service.run_memory import (
    Memories,
    RunMemory,
    Span,
    judged_attempt,
    read_memory,
    read_spans,
)
from rlvitals_service.run_rows import (
    LockedRun,
    RunUpdate,
    lock_run,
    write_run,
)
from rlvitals_service.staleness import revive
from rlvitals_service.step_rows import (
    DriverConnection,
    delete_groups,
    read_groups,
    read_parts,
    read_rates,
    write_groups,
)
from rlvitals_service.vitals import StepVitals, derive

LARGEST_ATTEMPT = 2**15 - 1


@dataclass(slots=True)
class Writing:
    """Hold a batch on its way into the database."""

    connection: Connection
    raw: DriverConnection
    run: LockedRun
    memory: RunMemory
    batch: Batch
    changed: dict[PartKey, Part] = field(default_factory=dict)
    ungrouped: list[PartKey] = field(default_factory=list)
    accepted: int = 0
    duplicates: int = 0
    spans: dict[int, Span] = field(default_factory=dict)
    sources: dict[int, dict[str, None]] = field(default_factory=dict)
    known_steps: set[StepKey] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    opened: int | None = None

    @property
    def where(self) -> Where:
        """Say which run, attempt and revision changes belong to."""
        return Where(self.run.id, self.attempt, self.run.revision + 1)

    @property
    def attempt(self) -> int:
        """Give the newest attempt."""
        return self.opened or self.run.last_attempt

    @property
    def alive(self) -> bool:
        """Tell whether this is a word of the newest attempt, not what an older one left behind."""
        heard = {record.attempt for _, record in self.batch.records}
        return not heard or self.attempt in heard


def write_batch(
    database: Database, memories: Memories, principal: Principal, run_id: UUID, batch: Batch
) -> StepAnswer:
    """Write a batch; either all of it that is not rejected takes effect, or nothing does."""
    with database.transaction() as connection:
        raw = driver(connection)
        run = lock_run(raw, run_id)
        if run is None or not principal.sees(run.project_id):
            msg = f"There is no run {run_id}."
            raise NotFound(msg, field="run_id")
        memory = memories.take(run_id, run.steps_revision)
        memory = memory or read_memory(connection, run_id, run.steps_revision)
        answer = _write(Writing(connection, raw, run, memory, batch))
        # Before the commit, while the lock is held: after a failed commit the revision tells.
        memories.keep(run_id, memory)
    return answer


def _write(writing: Writing) -> StepAnswer:
    run, batch = writing.run, writing.batch
    _know_attempts(writing)
    stored = _merge_records(writing)
    steps = _derive_steps(writing, stored)
    verdict = _judge(writing, steps)
    last_step = _last_step(writing, steps)
    _meet_sources(writing)
    _take_news(writing, steps, last_step)
    state = "running" if run.state == "stale" and writing.alive else run.state
    if state != run.state and revive(writing.connection, writing.where, run.last_step):
        writing.kinds.add("incident")
    _store(writing, steps, _update_of(writing, state, last_step, verdict, bool(steps)))
    return StepAnswer(
        accepted=writing.accepted,
        duplicates=writing.duplicates,
        rejected=sorted(batch.rejected, key=lambda one: int(one["index"])),
        directive=run.directive,
        last_step=last_step,
    )


def _know_attempts(writing: Writing) -> None:
    """Read the attempts again if any was introduced since this memory was left."""
    named = {record.attempt for _, record in writing.batch.records} | {writing.run.last_attempt}
    if not named <= writing.memory.spans.keys():
        writing.memory.spans = read_spans(writing.connection, writing.run.id)


def _merge_records(writing: Writing) -> dict[PartKey, Part]:
    """Merge the records into what is stored of their keys; give all parts of the touched steps."""
    records = [(index, one) for index, one in writing.batch.records if _admit(writing, index, one)]
    stored = _read_stored(writing, [record for _, record in records])
    writing.known_steps = {part.step_key for part in stored.values()}
    for index, record in records:
        key = key_of(record)
        old = stored.get(key)
        try:
            part = merge(old, record)
        except ValueError as error:
            writing.batch.reject(index, f"records[{index}].{error}")
            continue
        if old is not None and part.content() == old.content():
            writing.duplicates += 1
            continue
        writing.accepted += 1
        stored[key] = writing.changed[key] = part
        if old is not None and old.groups_hash and not part.groups_hash:
            writing.ungrouped.append(key)
    return stored


def _admit(writing: Writing, index: int, record: StepRecord) -> bool:
    """Take records of known attempts and of the next one; anything else is a mistake."""
    spans = writing.memory.spans
    if record.attempt in spans:
        return True
    last = max(spans)
    if record.attempt == last + 1 <= LARGEST_ATTEMPT:
        writing.opened = record.attempt
        spans[record.attempt] = writing.spans[record.attempt] = Span()
        return True
    reason = f"unknown attempt {record.attempt}; the last is {last}"
    writing.batch.reject(index, f"records[{index}].attempt: {reason}")
    return False


def _read_stored(writing: Writing, records: list[StepRecord]) -> dict[PartKey, Part]:
    """Read the parts of steps that may be stored: none lies behind the end of its attempt."""
    spans = writing.memory.spans
    keys = {
        (record.attempt, str(record.phase), record.step)
        for record in records
        if record.step <= (-1 if (last := spans[record.attempt].last) is None else last)
    }
    return read_parts(writing.raw, writing.run.id, keys) if keys else {}


def _derive_steps(writing: Writing, stored: dict[PartKey, Part]) -> list[StepVitals]:
    """Derive every touched step from all its parts, ascending."""
    by_step: dict[StepKey, list[Part]] = {part.step_key: [] for part in writing.changed.values()}
    for part in stored.values():
        if part.step_key in by_step:
            by_step[part.step_key].append(part)

    def groups_of(part: Part) -> Groups:
        return part.groups or read_groups(writing.raw, writing.run.id, part)

    steps = [derive(key, parts, groups_of) for key, parts in by_step.items()]
    return sorted(steps, key=lambda step: step.key)


def _judge(writing: Writing, steps: list[StepVitals]) -> str:
    """Show the steps to the Judge of their attempt; store what it says of the newest attempt."""
    verdict = writing.run.verdict
    by_attempt: dict[int, list[StepVitals]] = {}
    for step in steps:
        by_attempt.setdefault(step.attempt, []).append(step)
    for attempt, own in sorted(by_attempt.items()):
        judged = judged_attempt(writing.connection, writing.run.id, writing.memory, attempt)
        changes: list[Change] = judge_steps(judged, own)
        # An attempt that was left behind is charted and no longer judged.
        if attempt == writing.attempt:
            verdict = judged.judge.verdict()
            if store_changes(writing.connection, writing.where, changes):
                writing.kinds.add("incident")
    return verdict


def _last_step(writing: Writing, steps: list[StepVitals]) -> int | None:
    """Cover the steps in the spans of their attempts; give the last of the newest with steps."""
    again = {step.key for step in steps} & writing.known_steps
    rates = read_rates(writing.raw, writing.run.id, again) if again else {}
    for step in steps:
        span = writing.memory.spans[step.attempt]
        span.cover(step.step)
        writing.spans[step.attempt] = span
        writing.memory.note(step, rates.get(step.key))
        writing.kinds.add("step")
    ends = [span.last for span in writing.memory.spans.values() if span.last is not None]
    return ends[-1] if ends else writing.run.last_step


def _meet_sources(writing: Writing) -> None:
    """Note sources that were not introduced: the run is not finished before they are."""
    for attempt, *_, source, _ in writing.changed:
        known = writing.memory.spans[attempt].sources
        if source not in known:
            known.add(source)
            writing.sources.setdefault(attempt, {})[source] = None


def _take_news(writing: Writing, steps: list[StepVitals], last_step: int | None) -> None:
    """Store acknowledgements and alerts, and note directives that took effect."""
    connection, batch, run_id = writing.connection, writing.batch, writing.run.id
    said = store_acknowledgements(connection, run_id, batch.acknowledgements, last_step)
    if mark_effective(connection, run_id, steps, last_step) or said:
        writing.kinds.add("directive")
    if store_alerts(connection, writing.where, batch.alerts):
        writing.kinds.add("incident")


def _update_of(
    writing: Writing, state: str, last_step: int | None, verdict: str, any_steps: bool
) -> RunUpdate:
    run = writing.run
    if state != run.state or verdict != run.verdict or writing.spans.keys() - {run.last_attempt}:
        writing.kinds.add("run")
    revision = run.revision + 1 if writing.kinds else run.revision
    return RunUpdate(
        alive=writing.alive,
        state=state,
        revision=revision,
        steps_revision=revision if any_steps else run.steps_revision,
        last_step=last_step,
        last_attempt=writing.attempt,
        verdict=verdict,
        spans=writing.spans,
        sources=writing.sources,
        kinds=writing.kinds,
        lost=_lost(writing),
        clock_skew=_clock_skew(writing),
    )


def _lost(writing: Writing) -> dict[str, dict[str, int]] | None:
    """Note what clients dropped so far, by source."""
    lost = writing.batch.lost
    if not lost:
        return None
    source = next((key[4] for key in writing.changed), "0")
    return {source: {clean_text(reason): count for reason, count in lost.items()}}


def _clock_skew(writing: Writing) -> float | None:
    """Give the newest client time minus the server's: how far ahead the client's clock is.

    What was sent late only makes it smaller, so the run keeps the greatest.
    """
    times = [part.client_time for part in writing.changed.values() if part.client_time is not None]
    return max(times) - writing.run.now if times else None


def _store(writing: Writing, steps: list[StepVitals], update: RunUpdate) -> None:
    raw, run_id = writing.raw, writing.run.id
    parts = list(writing.changed.values())
    for key in writing.ungrouped:
        delete_groups(raw, run_id, key)
    write_groups(raw, run_id, parts)
    write_run(raw, run_id, update, parts, steps, writing.memory)
    writing.memory.revision = update.steps_revision
