"""When a share of groups opens an incident, how bad it is, and when it began."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rlvitals.judgement.window import Counts, GroupWindow, Stretch
from rlvitals.judgement.wording import percent
from rlvitals.metrics.collapse import wilson_interval

if TYPE_CHECKING:
    from rlvitals.judgement.incidents import Severity
    from rlvitals.judgement.settings import JudgeSettings

# From counts to (groups with the condition, groups that could have it).
Part: TypeAlias = Callable[[Counts], tuple[int, int]]


class Level(NamedTuple):
    """Hold a share of the groups of a stretch, with its Wilson 95 % interval."""

    share: float
    low: float
    high: float
    groups: int
    stretch: Stretch

    def sentence(self) -> str:
        """Say what was counted, where, and how sure the share is."""
        held = round(self.share * self.groups)
        return (
            f"{held} of {self.groups} groups in steps {self.stretch.first} to "
            f"{self.stretch.last} ({percent(self.share)}, 95 % interval {percent(self.low)} to "
            f"{percent(self.high)})"
        )


def level(stretch: Stretch, part: Part) -> Level:
    """Estimate a share over a stretch; 0 with the interval (0, 1) where nothing was seen."""
    k, n = part(stretch.counts)
    low, high = wilson_interval(k, n)
    share = k / n if n else 0.0
    # Rounding may put an end of the interval a hair beyond a share of exactly 0 or 1.
    return Level(share, min(low, share), max(high, share), n, stretch)


def highest(window: GroupWindow, part: Part) -> Level:
    """Estimate a share over the window, or over its newest steps where that is surely higher.

    So an incident opens without lag, and closes only when window and newest steps agree.
    """
    pooled = level(window.pooled(), part)
    stretch = window.recent()
    if stretch is None:
        return pooled
    recent = level(stretch, part)
    return recent if recent.low > pooled.low or recent.share > pooled.share else pooled


def graded(held: Level, before: Severity | None, settings: JudgeSettings) -> Severity:
    """Grade a share; critical is entered by the lower bound and left by the point estimate."""
    if held.low > settings.share_critical:
        return "critical"
    if before == "critical" and held.share >= settings.share_ease:
        return "critical"
    return "warning"


def onset(window: GroupWindow, part: Part, least: float) -> int:
    """Find where in the window the share rose above ``least``: the peak of a backward CUSUM."""
    began, reached, best = window.entries.steps[-1], 0.0, 0.0
    for step, entry in zip(
        reversed(window.entries.steps), reversed(window.entries.values), strict=True
    ):
        k, n = part(entry.counts)
        reached += k - least * n
        if reached >= best:
            began, best = step, reached
    return began
