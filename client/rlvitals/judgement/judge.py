"""The judge of one attempt of one run: every detector, one step at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.collapse import AdvantageCollapse, dead
from rlvitals.judgement.settings import JudgeSettings
from rlvitals.judgement.share import level
from rlvitals.judgement.verdict import group_verdict
from rlvitals.judgement.window import GroupWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlvitals.judgement.incidents import Change, Observation, OpenIncident

DEFAULTS = JudgeSettings()


class Judge:
    """Turn the steps of one attempt into changes of incidents, in bounded memory.

    A Judge can be made anew at any time: give it the incidents that are open and let
    ``rebuild`` see the newest 512 observations. It takes what those incidents say as settled up
    to their last change. For a new attempt, whose steps may go back, close the old incidents or
    hand them over with a ``last_step`` before the first step of the attempt. ``first_step`` is
    the first step of the attempt where the observations do not begin there.
    """

    def __init__(
        self,
        settings: JudgeSettings = DEFAULTS,
        open_incidents: Sequence[OpenIncident] = (),
        *,
        first_step: int | None = None,
    ) -> None:
        self.settings = settings
        self.window = GroupWindow(settings)
        self.collapse = AdvantageCollapse(settings, open_incidents)
        self.first_step = first_step
        self.last_step: int | None = None

    def observe(self, observation: Observation) -> list[Change]:
        """Judge a step; a step that is still in the window replaces what was known of it."""
        step = observation.step
        self.first_step = step if self.first_step is None else min(step, self.first_step)
        self.last_step = step if self.last_step is None else max(step, self.last_step)
        added = self.window.put(observation)
        return self.collapse.observe(self.last_step, self.window, added, self._warm())

    def rebuild(self, observations: Iterable[Observation]) -> None:
        """Take in past observations whose changes are on record already."""
        for observation in observations:
            self.observe(observation)

    def pooled(self) -> tuple[float, float, float] | None:
        """Give the collapse rate over the window with its Wilson 95 % interval."""
        if not self.window.total.seen:
            return None
        pooled = level(self.window.pooled(), dead)
        return pooled.share, pooled.low, pooled.high

    def finish(self) -> list[Change]:
        """Sum up the run at its end."""
        if self.last_step is None:
            return []
        return self.collapse.finish(self.last_step, self.window)

    def open_incidents(self) -> tuple[OpenIncident, ...]:
        """Give the open incidents as their newest changes left them."""
        incident = self.collapse.episode.incident
        return () if incident is None else (incident,)

    def verdict(self) -> str:
        """Say in one sentence how the run is doing."""
        return group_verdict(self.window, self.collapse.episode.severity)

    def _warm(self) -> bool:
        """Say whether attempt and window are long enough to judge a share of groups."""
        if self.first_step is None or self.last_step is None:
            return False
        begun = self.last_step - self.first_step + 1
        return (
            begun >= self.settings.window_steps
            and self.window.total.seen >= self.settings.window_groups
        )
