"""Gradient norms that are NaN or infinite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlvitals.judgement.episode import Episode
from rlvitals.judgement.incidents import Change, Finding, Observation, OpenIncident, Severity
from rlvitals.judgement.series import Flags
from rlvitals.judgement.wording import counted, listed, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlvitals.judgement.settings import JudgeSettings

FIRST_UPDATE = 8
ADVICE = (
    "Look at the first step affected: learning rate and warm-up, fp16 overflow (bf16 avoids it), "
    "an empty or fully masked batch, a division by a zero std. Many optimizers skip such a step "
    "silently, so a finite loss proves nothing. Resume from a checkpoint before the onset."
)


class NonfiniteGradient:
    """Judge whether gradient norms are numbers; the loss stands in where no norm is sent."""

    def __init__(self, settings: JudgeSettings, incidents: Sequence[OpenIncident] = ()) -> None:
        self.settings = settings
        self.episode = Episode("gradient_nonfinite", incidents=incidents)
        self.flags = Flags(4 * settings.gradient_quiet)
        self.count = int(self.episode.number("count"))
        known = str(self.episode.evidence.get("symptoms", ""))
        self.symptoms = known.split(", ") if known else []

    @property
    def streak(self) -> int:
        """Count the newest steps in a row without a finite gradient norm."""
        return self.flags.newest(flag=True)

    def observe(self, step: int, observation: Observation) -> list[Change]:
        """Judge one observation; ``step`` is the newest step seen so far."""
        value = _watched(observation)
        if value is None:
            return []
        bad = not math.isfinite(value)
        before = self.flags.get(observation.step)
        self.flags.put(observation.step, bad)
        if self.episode.settled(step):
            return []
        if bad and not self.episode.is_open:
            return [] if before else self._opened(step, observation)
        if not self.episode.is_open:
            return []
        self.count += int(bad) - int(before or False)
        return self._worse(step, observation) if bad else self._better(step)

    def _opened(self, step: int, observation: Observation) -> list[Change]:
        self.count, self.symptoms = 1, _symptoms(observation)
        return [self.episode.open(step, self._finding("warning"))]

    def _worse(self, step: int, observation: Observation) -> list[Change]:
        more = [sign for sign in _symptoms(observation) if sign not in self.symptoms]
        self.symptoms += more
        worst = self.streak >= self.settings.nonfinite_critical
        severity = "critical" if worst else self.episode.severity or "warning"
        doubled = self.count >= max(FIRST_UPDATE, 2 * self.episode.number("count"))
        if not more and not doubled and severity == self.episode.severity:
            return []
        return [self.episode.revise(step, self._finding(severity))]

    def _better(self, step: int) -> list[Change]:
        if self.flags.newest(flag=False) < self.settings.gradient_quiet:
            return []
        closed = self._finding("warning", over=True)
        return [*self.finish(step), self.episode.close(step, closed)]

    def finish(self, step: int) -> list[Change]:
        """Bring the count on record up to date, at the end of the run or of the incident."""
        severity = self.episode.severity
        if severity is None or self.count == self.episode.number("count"):
            return []
        return [self.episode.revise(step, self._finding(severity))]

    def _finding(self, severity: Severity, *, over: bool = False) -> Finding:
        steps = counted(self.count, "step")
        signs = listed(self.symptoms) if self.symptoms else "none"
        quiet = f"for {self.settings.gradient_quiet} steps"
        return Finding(
            severity=severity,
            title=(
                f"Gradient finite again {quiet}, after {steps} without"
                if over
                else f"Gradient norm not finite in {steps}"
            ),
            text=(
                f"{steps} so far had a gradient norm that is NaN or infinite. "
                f"Signs seen together: {signs}."
            ),
            advice="" if over else ADVICE,
            evidence={"count": self.count, "symptoms": ", ".join(self.symptoms)},
        )


def _watched(observation: Observation) -> float | None:
    value = observation.scalars.get("grad_norm")
    return observation.scalars.get("loss") if value is None else value


def _symptoms(observation: Observation) -> list[str]:
    """List what else is wrong in the same step; a zero is no fault on its own."""
    known = dict(observation.scalars)
    if observation.tally is not None and observation.tally.rollouts:
        known.setdefault("reward_mean", observation.tally.reward_mean)
    broken = [
        f"{name} {number(known[name])}"
        for name in ("grad_norm", "loss", "kl", "entropy", "learning_rate", "reward_mean")
        if known.get(name) is not None and not math.isfinite(known[name])
    ]
    return broken + [f"{n} 0" for n in ("learning_rate", "reward_mean") if known.get(n) == 0]
