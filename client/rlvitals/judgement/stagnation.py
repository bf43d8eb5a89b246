"""Stagnation: the reward has not risen for a long time, whatever the reason.

How a stalled run is told from a healthy one that is level for a while: by patience, and by
nothing cleverer. A healthy run may well hold one level for 300 steps, and no statistic over
those steps tells it from a run that never learns; a plateau is reported when it has lasted 350
steps, which real runs that never learned (400 and 2,400 steps) exceed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlvitals.judgement.episode import Episode
from rlvitals.judgement.incidents import Cause, Change, Finding, Observation, OpenIncident, Severity
from rlvitals.judgement.series import StepSeries
from rlvitals.judgement.trend import Trend, trend
from rlvitals.judgement.window import GroupWindow, success_rate
from rlvitals.judgement.wording import finite, number, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlvitals.judgement.settings import JudgeSettings

COLLAPSED = (
    "Most groups carry no signal: follow the advice of the collapse first, since a learning rate "
    "multiplies nothing."
)
LIVE = (
    "Groups carry signal, so look at what the update does with it: learning rate, KL weight and "
    "clipping too tight, rewards too noisy or not tied to the outcome, the task out of reach."
)
FALLING = (
    "Go back to the checkpoint of the best steps; look for a length, entropy or KL shift since."
)


class Stagnation:
    """Judge whether the mean reward rises, over the last 350 steps."""

    def __init__(
        self,
        settings: JudgeSettings,
        incidents: Sequence[OpenIncident] = (),
        first_step: int | None = None,
    ) -> None:
        self.settings = settings
        self.episode = Episode("stagnation", incidents=incidents)
        self.rewards: StepSeries[float] = StepSeries(settings.stagnation_steps)
        self.first_step = first_step
        self.seen_from: int | None = None  # after a restart, where memory begins
        self.best_eval: tuple[float, int] | None = None
        self._due = -1

    def observe(self, step: int, observation: Observation, window: GroupWindow) -> list[Change]:
        """Judge one observation; ``step`` is the newest step seen so far."""
        self._evaluated(observation)
        value = _reward(observation)
        if value is None:
            return []
        at = observation.step
        self.first_step = at if self.first_step is None else min(at, self.first_step)
        self.seen_from = at if self.seen_from is None else min(at, self.seen_from)
        self.rewards.put(at, value)
        while self.rewards.steps[0] <= step - self.settings.stagnation_steps:
            self.rewards.drop_oldest()
            if not len(self.rewards):
                return []
        # Looking at fixed steps makes the outcome independent of where a restart began.
        period = step // self.settings.stagnation_every
        if period == self._due or self.episode.settled(step):
            return []
        self._due = period
        return self._judge(step, window)

    def _judge(self, step: int, window: GroupWindow) -> list[Change]:
        found = self._trend(step)
        if found is None:
            return []
        if not self.episode.is_open:
            stuck = found.t < self.settings.stagnation_open and not found.new_best
            if not stuck or self._recent_eval(step) or self._solved(window):
                return []
            return [self.episode.open(step, self._finding(found, window), self.rewards.steps[0])]
        if found.t > self.settings.stagnation_close or found.new_best or self._solved(window):
            return [self.episode.close(step, _rising(found))]
        if self.episode.severity == "info" and self._severity(found, window, step) != "info":
            return [self.episode.revise(step, self._finding(found, window))]
        return []

    def _trend(self, step: int) -> Trend | None:
        patience = self.settings.stagnation_steps
        if self.seen_from is None or step - self.seen_from + 1 < patience:
            return None
        if len(self.rewards) < self.settings.stagnation_rows:
            return None
        return trend(self.rewards.steps, self.rewards.values, self.settings.stagnation_blocks)

    def _severity(self, found: Trend, window: GroupWindow, step: int) -> Severity:
        """Warn of falling, collapsed, never improved or twice as long; else it is worth a note."""
        patience = self.settings.stagnation_steps
        falling = found.t <= -self.settings.stagnation_open
        collapsed = window.total.share("dead") > self.settings.share_open
        begun = self.rewards.steps[0] - self.settings.stagnation_every
        never = self.first_step is not None and begun <= self.first_step
        incident = self.episode.incident
        long = incident is not None and step - incident.onset_step >= 2 * patience
        return "warning" if falling or collapsed or never or long else "info"

    def _evaluated(self, observation: Observation) -> None:
        for name in self.settings.eval_metrics:
            value = finite(observation.scalars, name)
            if value is None:
                continue
            if self.best_eval is None or value > self.best_eval[0]:
                self.best_eval = (value, observation.step)
            return

    def _recent_eval(self, step: int) -> bool:
        """Say whether an evaluation set a new best within the window."""
        if self.best_eval is None or self.first_step is None:
            return False
        begun = max(self.first_step, step - self.settings.stagnation_steps)
        return self.best_eval[1] > begun

    def _solved(self, window: GroupWindow) -> bool:
        if not window.total.judged:
            return False
        success = success_rate(window.entries.values)
        return success is not None and success >= self.settings.solved_success

    def _finding(self, found: Trend, window: GroupWindow) -> Finding:
        first, last = self.rewards.steps[0], self.rewards.steps[-1]
        falling = found.t <= -self.settings.stagnation_open
        acr = window.total.share("dead") if window.total.seen else None
        reason, advice = _reason(acr, self.settings.share_open)
        return Finding(
            severity=self._severity(found, window, last),
            title=(
                f"Reward is falling since its best around step {found.best_step:.0f}"
                if falling
                else f"Reward has not risen for {last - first + 1} steps"
            ),
            text=(
                f"From step {first} to {last} the mean reward changed by "
                f"{number(100 * found.slope)} ± {number(200 * found.error)} in 100 steps "
                f"(t = {found.t:.1f}); its best stretch, around step {found.best_step:.0f}, was "
                f"{number(found.best)}, the newest {number(found.newest)}. {reason}"
            ),
            advice=FALLING if falling else advice,
            causes=_causes(acr, reason, self.settings.share_open),
            evidence={
                "slope_per_100_steps": 100 * found.slope,
                "t": max(-1e6, min(1e6, found.t)),
                "newest": found.newest,
                "best": found.best,
                "best_step": round(found.best_step),
                "rows": len(self.rewards),
                **({} if acr is None else {"acr": acr}),
            },
        )


def _reward(observation: Observation) -> float | None:
    tally = observation.tally
    if tally is not None and tally.rollouts and math.isfinite(tally.reward_mean):
        return tally.reward_mean
    return finite(observation.scalars, "reward_mean")


def _reason(acr: float | None, limit: float) -> tuple[str, str]:
    if acr is None:
        return "Without group data the reason stays open.", LIVE
    if acr > limit:
        return (
            f"{percent(acr)} of groups carry no signal: advantage collapse explains it.",
            COLLAPSED,
        )
    return f"Collapse is not the reason: {percent(1 - acr)} of groups carry signal.", LIVE


def _causes(acr: float | None, reason: str, limit: float) -> tuple[Cause, ...]:
    if acr is None:
        return ()
    if acr > limit:
        return (Cause("advantage_collapse", acr, reason),)
    return (Cause("no_collapse", 1 - acr, reason),)


def _rising(found: Trend) -> Finding:
    return Finding(
        severity="info",
        title="Reward is rising again",
        text=(
            f"The newest mean reward is {number(found.newest)}, before it was at most "
            f"{number(found.best)}; slope {number(100 * found.slope)} in 100 steps."
        ),
        evidence={"newest": found.newest, "best": found.best},
    )
