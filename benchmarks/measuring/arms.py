"""Arms of a comparison, run on the same seeds, so that a gain has a paired standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from policies.logistic import Series, Setting, simulate_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from policies.weighing import Arm


@dataclass(frozen=True, slots=True)
class Result:
    """Hold the runs of one arm, one a seed; ``pace`` is the factor on its learning rate."""

    name: str
    pace: float
    runs: list[Series]

    @property
    def path(self) -> float:
        """Give the mean length of a step: the gradient norm times ``pace``."""
        return self.pace * self.share("grad_norm")

    def share(self, name: str) -> float:
        """Give the mean of a per-step value over steps and runs."""
        return float(np.mean([getattr(run, name).mean() for run in self.runs]))

    def finals(self) -> list[float]:
        """Give the held-out success at the end of each run."""
        return [run.final for run in self.runs]

    def gains(self, base: Result) -> list[float]:
        """Give what each run ends above the run of the same seed."""
        return [run.final - other.final for run, other in zip(self.runs, base.runs, strict=True)]

    def steps_to(self, success: float) -> list[float]:
        """Give the first step of each run at which held-out success is reached, else its length."""
        return [
            float(np.argmax(run.success >= success) + 1)
            if run.success.max() >= success
            else float(len(run.success))
            for run in self.runs
        ]


def compare(
    setting: Setting,
    arms: Callable[[int], Sequence[tuple[Arm, float]]],
    seeds: int,
) -> list[Result]:
    """Run every arm (and the factor on its learning rate) that ``arms(seed)`` gives, by arm."""
    found = []
    for column in zip(*(arms(seed) for seed in range(seeds)), strict=True):
        (arm, factor), chosen = column[0], [arm for arm, _ in column]
        runs = simulate_runs([setting.faster(factor)] * seeds, range(seeds), chosen)
        found.append(Result(arm.name, factor, runs))
    return found


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Give the mean and its standard error, 0 for one value."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return float(np.mean(values)), spread / math.sqrt(len(values))


def written(values: Sequence[float], digits: int = 3, sign: str = "") -> str:
    """Write the mean and its standard error."""
    mean, error = mean_and_error(values)
    return f"{mean:{sign}.{digits}f} ± {error:.{digits}f}"
