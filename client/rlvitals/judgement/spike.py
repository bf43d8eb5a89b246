"""Gradient norms far above the run's own past."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.judgement.episode import Episode
from rlvitals.judgement.incidents import Change, Finding, Observation, OpenIncident, Severity
from rlvitals.judgement.series import Flags, StepSeries
from rlvitals.judgement.wording import counted, number
from rlvitals.metrics.gradient import robust_baseline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlvitals.judgement.settings import JudgeSettings

ADVICE = (
    "One spike that clipping absorbs is harmless; look at the rollouts of that step (very long or "
    "repetitive answers, one extreme advantage). If spikes come back, lower the learning rate or "
    "max_grad_norm (verl actor.grad_clip)."
)


class Baseline:
    """Hold the newest ordinary gradient norms: finite, not zero, no spikes."""

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        self.values: StepSeries[float] = StepSeries(settings.spike_baseline)
        self.ordered: list[float] = []

    def put(self, step: int, value: float) -> None:
        """Take in an ordinary value."""
        if len(self.values) >= self.values.limit:
            self._unorder(self.values.drop_oldest())
        self.values.put(step, value)
        insort(self.ordered, value)

    def remove(self, step: int) -> None:
        """Forget the value of a step, since it is about to be replaced."""
        value = self.values.get(step)
        if value is not None:
            self.values.remove(step)
            self._unorder(value)

    def restart(self, values: StepSeries[float]) -> None:
        """Begin anew from these values: the level of the norms has shifted."""
        self.values, self.ordered = StepSeries(self.settings.spike_baseline), []
        for step, value in zip(values.steps, values.values, strict=True):
            self.put(step, value)

    def _unorder(self, value: float) -> None:
        del self.ordered[bisect_left(self.ordered, value)]

    @property
    def median(self) -> float:
        """Give the upper median, at once since the values are kept in order; 0 without any."""
        return self.ordered[len(self.ordered) // 2] if self.ordered else 0.0

    def exceeded_by(self, value: float) -> bool:
        """Say whether a value is a spike: over 3 medians and over 10 robust sigma above."""
        if len(self.ordered) < self.settings.spike_minimum:
            return False
        if value <= self.settings.spike_median * self.median:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            median, sigma = robust_baseline(self.ordered)
        return value > max(
            self.settings.spike_median * median, median + self.settings.spike_sigma * sigma
        )


class GradientSpike:
    """Judge gradient norms against a baseline that spikes, zeros and NaN never enter."""

    def __init__(self, settings: JudgeSettings, incidents: Sequence[OpenIncident] = ()) -> None:
        self.settings = settings
        self.episode = Episode("gradient_spike", incidents=incidents)
        self.baseline = Baseline(settings)
        self.flags = Flags(4 * settings.gradient_quiet)
        # Of the newest norms that are not zero: their values, and which were spikes.
        self.newest: StepSeries[float] = StepSeries(settings.gradient_quiet)
        self.lifted = Flags(settings.gradient_quiet)
        self.count = int(self.episode.number("count"))
        self.peak = self.episode.number("peak")

    def observe(self, step: int, observation: Observation) -> list[Change]:
        """Judge one observation; ``step`` is the newest step seen so far."""
        value = observation.scalars.get("grad_norm")
        if value is None or not math.isfinite(value):
            return []
        at = observation.step
        before = self.flags.get(at)
        if before is not None and value == self.newest.get(at):
            return []
        self.baseline.remove(at)
        spike = self._classify(at, float(value))
        return [] if self.episode.settled(step) else self._judge(step, value, spike, before)

    def _classify(self, at: int, value: float) -> bool:
        spike = self.baseline.exceeded_by(value)
        self.flags.put(at, spike)
        if value > 0:
            self.newest.put(at, value)
            self.lifted.put(at, spike)
            if not spike:
                self.baseline.put(at, value)
        return spike

    def _judge(self, step: int, value: float, spike: bool, before: bool | None) -> list[Change]:
        if not self.episode.is_open:
            return self._opened(step, value) if spike and not before else []
        self.count += int(spike) - int(before or False)
        if spike:
            return self._more(step, value)
        if self.flags.newest(flag=False) < self.settings.gradient_quiet:
            return []
        return [*self.finish(step), self.episode.close(step, self._finding("ended"))]

    def finish(self, step: int) -> list[Change]:
        """Bring the count on record up to date, at the end of the run or of the incident."""
        if not self.episode.is_open or self.count == self.episode.number("count"):
            return []
        return [self.episode.revise(step, self._finding())]

    def _opened(self, step: int, value: float) -> list[Change]:
        self.count, self.peak = 1, value
        return [self.episode.open(step, self._finding())]

    def _more(self, step: int, value: float) -> list[Change]:
        self.peak = max(self.peak, value)
        if self._shifted():
            recorded = self.finish(step)
            self.baseline.restart(self.newest)
            return [*recorded, self.episode.close(step, self._finding("shifted"))]
        worse = self._severity() != self.episode.severity
        if not worse and self.count < 2 * self.episode.number("count"):
            return []
        return [self.episode.revise(step, self._finding())]

    def _shifted(self) -> bool:
        """Say whether the norms have stayed up: then it is a new level and no spike."""
        return self.lifted.newest(flag=True) >= self.settings.gradient_quiet

    def _severity(self) -> Severity:
        large = self.peak >= self.settings.spike_large * self.baseline.median
        return "warning" if large or self.count >= self.settings.spike_many else "info"

    def _finding(self, how: str = "open") -> Finding:
        median = self.baseline.median or self.episode.number("median")
        ratio = min(self.peak / median, sys.float_info.max) if median else 0.0
        titles = {
            "open": f"Gradient norm spiked to {number(ratio)} times its median",
            "ended": f"Gradient norm back to normal after {counted(self.count, 'spike')}",
            "shifted": f"Gradient norm has settled at a new level, {number(median)}",
        }
        return Finding(
            severity=self._severity(),
            title=titles[how],
            text=(
                f"{counted(self.count, 'spike')} up to {number(self.peak)}, where the median of "
                f"the last {len(self.baseline.ordered)} ordinary norms is {number(median)}."
            ),
            advice=ADVICE if how == "open" else "",
            evidence={
                "count": self.count,
                "peak": self.peak,
                "median": median,
                "ratio": ratio,
            },
        )
