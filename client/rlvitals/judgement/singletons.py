"""Groups of one rollout, which have nothing to be compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.episode import Episode
from rlvitals.judgement.incidents import Change, Finding, Observation, OpenIncident
from rlvitals.judgement.series import StepSeries
from rlvitals.judgement.wording import counted, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlvitals.judgement.settings import JudgeSettings

ADVICE = (
    "Check that all rollouts of a prompt are sent under one group id, and the number of rollouts "
    "a prompt (TRL num_generations, verl actor_rollout_ref.rollout.n)."
)


class GroupSizeOne:
    """Judge whether most groups hold a single rollout.

    No claim about their gradient is made: some trainers use the raw score as the advantage of
    such a group, others zero.
    """

    def __init__(self, settings: JudgeSettings, incidents: Sequence[OpenIncident] = ()) -> None:
        self.settings = settings
        self.episode = Episode("group_size_one", incidents=incidents)
        self.rows: StepSeries[tuple[int, int]] = StepSeries(settings.singleton_rows)

    def observe(self, step: int, observation: Observation) -> list[Change]:
        """Judge one observation; ``step`` is the newest step seen so far."""
        tally = observation.tally
        if tally is None or not tally.singletons + tally.groups:
            return []
        self.rows.put(observation.step, (tally.singletons, tally.groups))
        if self.episode.settled(step) or not (tally.singletons or self.episode.is_open):
            return []
        single, groups = (sum(column) for column in zip(*self.rows.values, strict=True))
        share = single / (single + groups)
        if self.episode.is_open:
            closed = share < self.settings.singleton_close
            return [self.episode.close(step, _finding(single, groups))] if closed else []
        if single < self.settings.singleton_minimum or share < self.settings.singleton_open:
            return []
        return [self.episode.open(step, _finding(single, groups))]


def _finding(single: int, groups: int) -> Finding:
    share = single / (single + groups)
    return Finding(
        severity="warning",
        title=f"{percent(share)} of groups hold a single rollout",
        text=(
            f"{counted(single, 'group')} of the last {single + groups} had one rollout: nothing to "
            "compare it with, so collapse cannot be judged and a group advantage is undefined."
        ),
        advice=ADVICE,
        evidence={"singletons": single, "groups": groups, "share": share},
    )
