"""Many runs of the simulated policy: every ability, difficulty and group size combined."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from policies.logistic import Series, Setting, simulate_runs
from policies.weighing import GRPO

if TYPE_CHECKING:
    from collections.abc import Sequence

ABILITIES = (-1.0, -0.5, 0.0, 0.5, 1.0)
SIZES = (2, 3, 4, 5, 6, 7, 8)
DESIGNS = {
    "mixed": tuple(np.linspace(-3, 4, 7).tolist()),
    "hard": tuple(np.linspace(2, 5, 7).tolist()),
}
LR_JITTER = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Configuration:
    """Hold the settings of one run and what it recorded."""

    setting: Setting
    series: Series


def configurations(
    difficulties: Sequence[float],
    abilities: Sequence[float] = ABILITIES,
    sizes: Sequence[int] = SIZES,
    steps: int = 500,
) -> list[Configuration]:
    """Run every combination, each with prompts, luck and a learning rate of its own."""
    plan = list(itertools.product(sizes, abilities, difficulties))
    settings = [
        Setting(
            difficulty=difficulty,
            ability=ability,
            size=size,
            steps=steps,
            lr=0.03 * math.exp(np.random.default_rng([seed, 3]).normal(0, LR_JITTER)),
        )
        for seed, (size, ability, difficulty) in enumerate(plan)
    ]
    found = []
    for start in range(0, len(plan), len(plan) // len(sizes)):
        seeds = range(start, start + len(plan) // len(sizes))  # those of one group size
        chosen = [settings[seed] for seed in seeds]
        found += simulate_runs(chosen, seeds, [GRPO] * len(chosen))
    return [Configuration(*pair) for pair in zip(settings, found, strict=True)]
