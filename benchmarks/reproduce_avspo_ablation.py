"""Ablate virtual rewards: their values, the threshold that lets them act, and each side alone.

The ablation of AVSPO (arXiv 2605.21125) orders values, thresholds and sides by what they add. A
closed form says how large an advantage each kind of value gives; a simulated policy says what
comes of it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from measuring.ablation_tables import PAPER_VALUES, side_table, threshold_table, value_table
from measuring.arms import Result, compare
from measuring.avspo_figures import draw_thresholds, draw_values
from measuring.report import arguments, publish
from policies.logistic import Setting
from policies.weighing import DDOF, EPS, GRPO, Arm, remedied

from rlvitals.remedies import Avspo, Remedies, next_threshold, virtual_advantage, virtual_count
from rlvitals.remedies.avspo import (
    HIGHEST_THRESHOLD,
    LOWEST_THRESHOLD,
    closed_form_advantage,
    virtual_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go
    from policies.weighing import Floats

    from rlvitals.remedies.avspo import Values


# Name in the paper, and the kind of ``rlvitals.remedies.avspo.virtual_offsets``.
VALUES: dict[str, Values] = {
    "random uniform": "uniform",
    "fixed .5": "fixed",
    "exponential": "exponential",
    "stratified": "stratified",
}
MID = Setting(difficulty=1.0, spread=2.5)
HARD = Setting(difficulty=3.5, spread=1.5)
STAGNATION_WINDOW = 20


def weigh_with(
    values: Values, rng: np.random.Generator, advantages: Floats, rewards: Floats, threshold: float
) -> Floats:
    """Weigh as ``rlvitals.remedies.reweight`` does, with virtual rewards of another kind.

    With stratified values it is the same to the last bit; a test holds it to that.
    """
    fail, solved = rewards.max(axis=1) == 0, rewards.min(axis=1) == 1
    acr, size = float((fail | solved).mean()), rewards.shape[1]
    if acr <= threshold:
        return advantages
    weighed = advantages.copy()
    count = virtual_count(size, acr, Avspo().alpha)
    for group in np.flatnonzero(fail | solved):
        offsets = virtual_offsets(count, 1 if fail[group] else -1, values, rng)
        weighed[group] = virtual_advantage(size, offsets, eps=EPS, ddof=DDOF)
    return weighed


def value_arms(seed: int) -> list[tuple[Arm, float]]:
    """Give plain GRPO and, under the controller, each kind of virtual value."""
    avspo = Avspo()

    def move(threshold: float, effective: float, _rewards: Floats) -> float:
        return next_threshold(threshold, effective, avspo)

    kinds = [
        Arm(name, partial(weigh_with, values, np.random.default_rng([seed, 9])), 0.5, move)
        for name, values in VALUES.items()
    ]
    return [(GRPO, 1.0), *((arm, 1.0) for arm in kinds)]


def threshold_arms(_seed: int) -> list[tuple[Arm, float]]:
    """Give plain GRPO, fixed thresholds, the controller, and the rule as the paper words it."""
    fixed = {
        f"fixed at .{tenth}": Avspo(threshold=tenth / 10, adaptive=False) for tenth in (3, 5, 7)
    }
    steered = {
        "adaptive, controller": Avspo(),
        "controller, target .30": Avspo(target=0.30),
        "controller, target .05": Avspo(target=0.05),
    }
    arms = [remedied(name, Remedies(avspo=avspo)) for name, avspo in (fixed | steered).items()]
    literal = Arm("adaptive, as worded", arms[0].weigh, 0.5, lower_if_stagnating)
    return [(GRPO, 1.0), *((arm, 1.0) for arm in [*arms, literal])]


def lower_if_stagnating(threshold: float, _effective: float, rewards: Floats) -> float:
    """Move by .01: down if the mean reward of 20 steps is no better than that of the 20 before."""
    recent = rewards[-STAGNATION_WINDOW:].mean()
    before = rewards[-2 * STAGNATION_WINDOW : -STAGNATION_WINDOW]
    stagnates = len(before) == STAGNATION_WINDOW and recent <= before.mean()
    return min(HIGHEST_THRESHOLD, max(LOWEST_THRESHOLD, threshold + (-0.01 if stagnates else 0.01)))


def side_arms(_seed: int) -> list[tuple[Arm, float]]:
    """Give plain GRPO, and virtual rewards on one side or both: by the controller, and always."""
    gains = {
        "all-wrong only": {"gain_all_pass": 0.0},
        "all-right only": {"gain_all_fail": 0.0},
        "both": {},
    }
    sides = {name: Avspo(**gain) for name, gain in gains.items()}
    for name, avspo in list(sides.items()):
        sides[f"{name}, always"] = replace(avspo, threshold=0.0, adaptive=False)
    arms = [remedied(name, Remedies(avspo=avspo)) for name, avspo in sides.items()]
    return [(GRPO, 1.0), *((arm, 1.0) for arm in arms)]


def predicted(name: str, count: int, size: int = 8, *, std_division: bool = True) -> float:
    """Give the mean size of the advantage beside ``count`` virtual rewards, without eps.

    By the closed form with std division, else from the mean alone; over 4000 draws for random
    values.
    """
    rng = np.random.default_rng(0)
    draws = 4000 if VALUES[name] == "uniform" else 1
    found = []
    for _ in range(draws):
        offsets = virtual_offsets(count, 1, VALUES[name], rng)
        if std_division:
            found.append(closed_form_advantage(size, offsets, ddof=DDOF))
        else:
            found.append(virtual_advantage(size, offsets, std_division=False))
    return float(np.mean(np.abs(found)))


def value_figure(results: Sequence[Result]) -> go.Figure:
    """Draw the closed form for each kind of value, and its gain beside the paper's."""
    return draw_values(
        {name: [predicted(name, count) for count in range(1, 9)] for name in VALUES},
        {result.name: result.gains(results[0]) for result in results[1:]},
        {name: PAPER_VALUES[name][1] - PAPER_VALUES["none"][1] for name in VALUES},
    )


def main() -> None:
    """Print the tables, and leave them and the figures in --save."""
    asked = arguments(__doc__ or "")
    seeds = asked.seeds or (12 if asked.full else 2)
    values = compare(MID, value_arms, seeds)
    thresholds = compare(HARD, threshold_arms, seeds)
    sides = compare(MID, side_arms, seeds)
    foreseen = {
        name: (predicted(name, 6), predicted(name, 6, std_division=False)) for name in VALUES
    }
    publish(
        "avspo-ablation",
        {
            f"Virtual values, mid setting, {seeds} seeds": value_table(values, foreseen),
            f"Thresholds, hard setting, {seeds} seeds": threshold_table(thresholds),
            f"Sides, mid setting, {seeds} seeds": side_table(sides),
        },
        {"avspo-values": value_figure(values), "avspo-thresholds": draw_thresholds(thresholds)},
        asked.save,
    )


if __name__ == "__main__":
    main()
