"""Advantage collapse: most groups have equal rewards, so their advantages are all zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.advice import advise
from rlvitals.judgement.causes import Grounds, ranked
from rlvitals.judgement.collapse_words import describe, sides
from rlvitals.judgement.episode import Episode
from rlvitals.judgement.incidents import Change, Finding, OpenIncident, Severity
from rlvitals.judgement.share import Level, graded, highest, level, onset
from rlvitals.judgement.window import Counts, GroupWindow, merged, truncated
from rlvitals.judgement.wording import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlvitals.judgement.settings import JudgeSettings

REFERENCE = "arXiv:2605.21125, advantage collapse rate"
SIDES = ("all_fail", "all_pass", "constant", "filtered")


def dead(counts: Counts) -> tuple[int, int]:
    """Count groups without signal among all groups."""
    return counts.dead, counts.seen


class AdvantageCollapse:
    """Judge the share of groups without signal over the window.

    Neither loss nor gradient norm has a say: with a KL term the gradient of a dead group is not
    zero, and the loss of a healthy one is zero on average.
    """

    def __init__(self, settings: JudgeSettings, incidents: Sequence[OpenIncident] = ()) -> None:
        self.settings = settings
        self.episode = Episode("advantage_collapse", REFERENCE, incidents)
        # What the run has shown so far; a new Judge finds it in the evidence.
        self.ever = Counts(*(int(self.episode.number(f"run_{n}")) for n in Counts._fields))

    def observe(self, step: int, window: GroupWindow, added: Counts) -> list[Change]:
        """Judge the window after a step that added these groups to the run."""
        if self.episode.settled(step):
            return []
        self.ever = self.ever.plus(added)
        if not window.full:
            return []
        held = highest(window, dead)
        if not self.episode.is_open:
            return self._opened(step, window, held)
        if held.share < self.settings.share_close:
            return [self.episode.close(step, self._recovered(window))]
        return self._revised(step, window, held)

    def _opened(self, step: int, window: GroupWindow, held: Level) -> list[Change]:
        if held.low <= self.settings.share_open:
            return []
        began = onset(window, dead, self.settings.share_open)
        return [self.episode.open(step, self._finding(window, held), began)]

    def _revised(self, step: int, window: GroupWindow, held: Level) -> list[Change]:
        severity = self._severity(held)
        if severity == self.episode.severity and not self._notable(step, held):
            return []
        return [self.episode.revise(step, self._finding(window, held))]

    def _severity(self, held: Level) -> Severity:
        counts = held.stretch.counts
        was_solved = self.episode.severity == "info"
        least = self.settings.solved_leave if was_solved else self.settings.solved_enter
        if counts.all_pass > least * counts.dead:
            return "info"
        return graded(held, self.episode.severity, self.settings)

    def _notable(self, step: int, held: Level) -> bool:
        """Say whether the sides moved so far since the last change that it is news."""
        incident = self.episode.incident
        if incident is None or step - incident.last_step < self.settings.update_steps:
            return False
        return any(
            abs(held.stretch.counts.share(side) - self.episode.number(side))
            >= self.settings.update_share
            for side in SIDES
        )

    def _grounds(self, window: GroupWindow, held: Level) -> Grounds:
        ever = self.ever
        silent = ever.all_fail + ever.constant + ever.filtered + ever.shaping_only
        entries = window.within(held.stretch)
        return Grounds(
            held.stretch.counts,
            merged(entries),
            truncated(entries),
            reported=window.reported,
            ever_live=ever.seen > silent,
            settings=self.settings,
        )

    def _finding(self, window: GroupWindow, held: Level) -> Finding:
        grounds = self._grounds(window, held)
        causes = ranked(grounds)
        severity = self._severity(held)
        title, text = describe(severity, causes, held)
        return Finding(
            severity=severity,
            title=title,
            text=text + grounds.disagreement(),
            advice=advise(causes),
            causes=causes,
            evidence=self._evidence(held) | grounds.evidence(),
        )

    def _evidence(self, held: Level) -> dict[str, float | int | str]:
        evidence: dict[str, float | int | str] = {
            "window_first_step": held.stretch.first,
            "window_last_step": held.stretch.last,
            "groups": held.groups,
            "acr": held.share,
            "acr_low": held.low,
            "acr_high": held.high,
        }
        evidence |= {side: held.stretch.counts.share(side) for side in SIDES}
        return evidence | {f"run_{n}": getattr(self.ever, n) for n in Counts._fields}

    def _recovered(self, window: GroupWindow) -> Finding:
        held = level(window.pooled(), dead)
        return Finding(
            severity="info",
            title=f"Recovered: {percent(1 - held.share)} of groups carry signal again",
            text=f"No more than {held.sentence()} had equal rewards.",
            evidence=self._evidence(held),
        )

    def finish(self, step: int, window: GroupWindow) -> list[Change]:
        """Say so when a run ends that had next to no group with signal."""
        ever = self.ever
        if not window.total.seen or ever.dead < self.settings.no_signal_share * ever.seen:
            return []
        finding = self._nothing_learned(window)
        if self.episode.is_open:
            return [self.episode.revise(step, finding)]
        return [self.episode.open(step, finding, window.pooled().first)]

    def _nothing_learned(self, window: GroupWindow) -> Finding:
        seen = self._finding(window, level(window.pooled(), dead))
        solved = seen.severity == "info"
        title = "Finished, no learning signal"
        return Finding(
            severity="info" if solved else "critical",
            title="Finished, nothing left to learn: every group was solved" if solved else title,
            text=(
                f"{self.ever.dead} of the {self.ever.seen} groups counted had equal rewards: "
                f"{sides(self.ever)}. There was nothing to learn from them."
            ),
            advice=seen.advice,
            causes=seen.causes,
            evidence=seen.evidence,
        )
