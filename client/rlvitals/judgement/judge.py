"""The judge of one attempt of one run: every detector, one step at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.collapse import AdvantageCollapse, dead
from rlvitals.judgement.nonfinite import NonfiniteGradient
from rlvitals.judgement.settings import JudgeSettings
from rlvitals.judgement.shaping import ShapingOnly
from rlvitals.judgement.share import level
from rlvitals.judgement.singletons import GroupSizeOne
from rlvitals.judgement.spike import GradientSpike
from rlvitals.judgement.stagnation import Stagnation
from rlvitals.judgement.vanished import VanishedGradient
from rlvitals.judgement.verdict import Signs, sentence
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
        self.shaping = ShapingOnly(settings, open_incidents)
        self.singletons = GroupSizeOne(settings, open_incidents)
        self.nonfinite = NonfiniteGradient(settings, open_incidents)
        self.spike = GradientSpike(settings, open_incidents)
        self.vanished = VanishedGradient(settings, open_incidents)
        self.stagnation = Stagnation(settings, open_incidents, first_step)
        self.last_step: int | None = None
        self.trained_only = False

    def observe(self, observation: Observation) -> list[Change]:
        """Judge a step; a step that is still in the window replaces what was known of it."""
        step = observation.step
        self.last_step = step if self.last_step is None else max(step, self.last_step)
        if observation.tally is not None or observation.tally_trained is not None:
            self.trained_only = observation.tally is None
        added = self.window.put(observation)
        newest = self.last_step
        return [
            *self.collapse.observe(newest, self.window, added),
            *self.shaping.observe(newest, self.window),
            *self.singletons.observe(newest, observation),
            *self.nonfinite.observe(newest, observation),
            *self.spike.observe(newest, observation),
            *self.vanished.observe(newest, observation),
            *self.stagnation.observe(newest, observation, self.window),
        ]

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
        return [
            *self.collapse.finish(self.last_step, self.window),
            *self.nonfinite.finish(self.last_step),
            *self.spike.finish(self.last_step),
        ]

    def open_incidents(self) -> tuple[OpenIncident, ...]:
        """Give the open incidents as their newest changes left them."""
        detectors = (
            self.collapse,
            self.shaping,
            self.singletons,
            self.nonfinite,
            self.spike,
            self.vanished,
            self.stagnation,
        )
        held = (detector.episode.incident for detector in detectors)
        return tuple(incident for incident in held if incident is not None)

    def verdict(self) -> str:
        """Say in one sentence how the run is doing."""
        return sentence(self.window, self._signs(), self.settings)

    def _signs(self) -> Signs:
        collapse, stagnation = self.collapse.episode.incident, self.stagnation.episode.incident
        return Signs(
            warm=self.window.full,
            collapse=None if collapse is None else collapse.severity,
            cause=collapse.causes[0].name if collapse is not None and collapse.causes else "",
            nonfinite_steps=self.nonfinite.streak if self.nonfinite.episode.is_open else 0,
            vanished=self.vanished.episode.is_open,
            shaping=self.shaping.episode.is_open,
            stagnant_steps=(
                None if stagnation is None else (self.last_step or 0) - stagnation.onset_step + 1
            ),
            singletons=self.singletons.episode.is_open,
            trained_only=self.trained_only,
        )
