"""Gradient from shaping only: rewards differ within groups whose outcome does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.episode import Episode
from rlvitals.judgement.incidents import Change, Finding, OpenIncident, Severity
from rlvitals.judgement.share import Level, graded, highest, level, onset
from rlvitals.judgement.wording import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlvitals.judgement.settings import JudgeSettings
    from rlvitals.judgement.window import Counts, GroupWindow

ADVICE = (
    "Make the outcome outweigh the shaping: lower the weights of length, format and style terms "
    "(TRL reward_weights), or give them only to correct rollouts. Treat these groups as dead when "
    "choosing prompts."
)


def shaped(counts: Counts) -> tuple[int, int]:
    """Count groups that only shaping keeps alive among groups with known outcome."""
    return counts.shaping_only, counts.judged


class ShapingOnly:
    """Judge the share of groups whose rewards differ although no outcome does.

    The collapse rate of the rewards calls such groups live; what they teach is the shaping.
    """

    def __init__(self, settings: JudgeSettings, incidents: Sequence[OpenIncident] = ()) -> None:
        self.settings = settings
        self.episode = Episode("shaping_only_gradient", incidents=incidents)

    def observe(self, step: int, window: GroupWindow) -> list[Change]:
        """Judge the window after a step; ``step`` is the newest seen so far."""
        if self.episode.settled(step) or not window.full:
            return []
        if not self.episode.is_open and not window.total.shaping_only:
            return []
        held = highest(window, shaped)
        if self.episode.is_open:
            return self._revised(step, window, held)
        if held.low <= self.settings.share_open or held.groups < self.settings.window_groups:
            return []
        began = onset(window, shaped, self.settings.share_open)
        return [self.episode.open(step, self._finding(held), began)]

    def _revised(self, step: int, window: GroupWindow, held: Level) -> list[Change]:
        if held.share < self.settings.share_close:
            pooled = level(window.pooled(), shaped)
            return [self.episode.close(step, self._finding(pooled))]
        if self._severity(held) == self.episode.severity:
            return []
        return [self.episode.revise(step, self._finding(held))]

    def _severity(self, held: Level) -> Severity:
        """Call it harmless where the groups are solved rather than failed."""
        was_solved = self.episode.severity == "info"
        least = self.settings.solved_leave if was_solved else self.settings.solved_enter
        if _passed_share(held) > least:
            return "info"
        return graded(held, self.episode.severity, self.settings)

    def _finding(self, held: Level) -> Finding:
        passed = _passed_share(held)
        return Finding(
            severity=self._severity(held),
            title=f"{percent(held.share)} of groups teach nothing but the shaping terms",
            text=(
                f"In {held.sentence()} all rollouts had the same outcome while their rewards "
                f"differed; of the groups with one outcome {percent(1 - passed)} had failed "
                "throughout. The policy is moved by length, format or style alone there."
            ),
            advice=ADVICE,
            evidence={
                "shaping_only": held.share,
                "shaping_only_low": held.low,
                "groups": held.groups,
                "passed_share": passed,
                "window_first_step": held.stretch.first,
                "window_last_step": held.stretch.last,
            },
        )


def _passed_share(held: Level) -> float:
    """Give the solved part of the groups with one outcome."""
    counts = held.stretch.counts
    uniform = counts.none_correct + counts.all_correct
    return counts.all_correct / uniform if uniform else 0.0
