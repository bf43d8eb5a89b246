"""The pooled counts of the newest groups: sums of groups, never averages of averages."""

from __future__ import annotations

import math
from operator import add, sub
from typing import TYPE_CHECKING, NamedTuple

from rlvitals.judgement.series import StepSeries
from rlvitals.judgement.wording import finite
from rlvitals.metrics.tally import Tally

if TYPE_CHECKING:
    from rlvitals.judgement.incidents import Observation
    from rlvitals.judgement.settings import JudgeSettings


class Counts(NamedTuple):
    """Count groups by what they teach; ``seen`` are those of n >= 2, filtered ones included.

    ``none_correct`` and ``all_correct`` go by outcome alone, whatever the rewards.
    """

    seen: int = 0
    dead: int = 0
    all_fail: int = 0
    all_pass: int = 0
    constant: int = 0
    filtered: int = 0
    shaping_only: int = 0
    judged: int = 0
    none_correct: int = 0
    all_correct: int = 0

    @classmethod
    def of(cls, tally: Tally) -> Counts:
        """Count the groups of one tally."""
        return cls(
            tally.groups + tally.filtered,
            tally.collapsed + tally.filtered,
            tally.all_fail,
            tally.all_pass,
            tally.constant,
            tally.filtered,
            tally.shaping_only,
            tally.judged,
            sum(row[0] for row in tally.counts.values()),
            sum(row[-1] for row in tally.counts.values()),
        )

    def plus(self, other: Counts) -> Counts:
        """Add field by field."""
        return Counts(*map(add, self, other))

    def minus(self, other: Counts) -> Counts:
        """Subtract field by field."""
        return Counts(*map(sub, self, other))

    def share(self, name: str) -> float:
        """Give one kind of group as a share of all, 0 without groups."""
        return float(getattr(self, name)) / self.seen if self.seen else 0.0


NOTHING = Counts()


class Entry(NamedTuple):
    """Hold what the window knows of one step."""

    counts: Counts
    tally: Tally
    truncated: float | None


class Stretch(NamedTuple):
    """Hold pooled counts and the steps they come from."""

    counts: Counts
    first: int
    last: int


class GroupWindow:
    """Hold the shortest stretch of newest steps that spans 20 steps and 64 groups."""

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        # Each step held has a group at least, so in order of step the bound is never met.
        self.entries: StepSeries[Entry] = StepSeries(
            2 * max(settings.window_steps, settings.window_groups)
        )
        self.total = NOTHING
        self.reported: float | None = None  # the trainer's own flag, newest value
        self._left_behind = -1  # the newest step that fell out of the window

    def put(self, observation: Observation) -> Counts:
        """Take in a step; give what it adds to the groups ever seen, negative if it takes back."""
        step, tally = observation.step, observation.tally
        self.reported = finite(observation.scalars, "frac_reward_zero_std")
        before = self.entries.get(step)
        new = NOTHING if tally is None else Counts.of(tally)
        if step <= self._left_behind or (before is None and not new.seen):
            return NOTHING
        added = new if before is None else new.minus(before.counts)
        self.total = self.total.plus(added)
        if tally is None or not new.seen:
            self.entries.remove(step)
        else:
            self.entries.put(step, Entry(new, tally, _truncated(observation)))
        self._trim()
        return added

    def _trim(self) -> None:
        while self._has_spare():
            self._left_behind = self.entries.steps[0]
            self.total = self.total.minus(self.entries.drop_oldest().counts)

    def _has_spare(self) -> bool:
        steps = self.entries.steps
        if len(steps) <= 1:
            return False
        span = steps[-1] - steps[1] + 1
        left = self.total.seen - self.entries.values[0].counts.seen
        return span >= self.settings.window_steps and left >= self.settings.window_groups

    @property
    def full(self) -> bool:
        """Say whether the window spans enough steps and groups to judge by."""
        steps = self.entries.steps
        if not steps or self.total.seen < self.settings.window_groups:
            return False
        return steps[-1] - steps[0] + 1 >= self.settings.window_steps

    def pooled(self) -> Stretch:
        """Pool all steps in the window."""
        steps = self.entries.steps
        return Stretch(self.total, steps[0], steps[-1]) if steps else Stretch(NOTHING, 0, 0)

    def recent(self) -> Stretch | None:
        """Pool the last few steps, if they alone hold many groups.

        Over 20 steps of a large batch the pooled share lags a fast collapse by ten steps.
        """
        counts = NOTHING
        newest = self.settings.recent_steps
        for entry in self.entries.values[-newest:]:
            counts = counts.plus(entry.counts)
        if counts.seen < self.settings.recent_groups:
            return None
        steps = self.entries.steps[-newest:]
        return Stretch(counts, steps[0], steps[-1])

    def within(self, stretch: Stretch) -> list[Entry]:
        """List the entries of a stretch."""
        entries = zip(self.entries.steps, self.entries.values, strict=True)
        return [entry for step, entry in entries if stretch.first <= step <= stretch.last]


def merged(entries: list[Entry]) -> Tally:
    """Add up the tallies of entries."""
    return sum((entry.tally for entry in entries), Tally())


def success_rate(entries: list[Entry]) -> float | None:
    """Give the share of correct rollouts in the judged groups of entries."""
    rows = [item for entry in entries for item in entry.tally.counts.items()]
    rollouts = sum(n * sum(row) for n, row in rows)
    correct = sum(c * held for _, row in rows for c, held in enumerate(row))
    return correct / rollouts if rollouts else None


def truncated(entries: list[Entry]) -> float | None:
    """Average the share of truncated rollouts over the steps that tell it."""
    known = [entry.truncated for entry in entries if entry.truncated is not None]
    return math.fsum(known) / len(known) if known else None


def _truncated(observation: Observation) -> float | None:
    value = finite(observation.scalars, "truncated_fraction")
    return None if value is None else min(1.0, max(0.0, value))
