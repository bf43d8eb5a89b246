"""What one update of a categorical policy moves, and what one group shows of it (F-GRPO)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Marks = NDArray[np.bool_]

RIGHT, WRONG = 1.0, -1.0  # rewards of correct and wrong actions


@dataclass(frozen=True, slots=True)
class MassChange:
    """Hold the first-order change of mass for a step eta / N of 1."""

    correct: float
    unsampled_correct: float


def logit_change(chances: Floats, correct: Marks, sampled: Marks) -> Floats:
    """Give p_i (R_i - S_R), the change of each logit for eta / N = 1; R_i is 0 if not sampled."""
    rewards = sampled * (RIGHT * correct + WRONG * ~correct)
    change: Floats = chances * (rewards - sampled_reward(chances, correct, sampled))
    return change


def sampled_reward(chances: Floats, correct: Marks, sampled: Marks) -> float:
    """Give S_R, the rewards of the sampled actions weighed by their probability."""
    return float(
        RIGHT * chances[sampled & correct].sum() + WRONG * chances[sampled & ~correct].sum()
    )


def mass_change(chances: Floats, correct: Marks, sampled: Marks) -> MassChange:
    """Give how the correct mass changes, and that of correct actions that were not sampled.

    F-GRPO (arXiv 2602.06717), its formula of the total mass and Prop. 3.2: the unsampled correct
    mass falls whenever the group did better than S_R = 0. ``sampled`` marks actions drawn at
    least once; how often does not enter.
    """
    squares = chances * chances
    reward = sampled_reward(chances, correct, sampled)
    a_2, b_2 = squares[sampled & correct].sum(), squares[sampled & ~correct].sum()
    u_correct, u_wrong = squares[~sampled & correct].sum(), squares[~sampled & ~correct].sum()
    q, unsampled = chances[correct].sum(), chances[~sampled & correct].sum()
    total = (RIGHT - reward) * (1 - q) * a_2 + (reward - WRONG) * q * b_2
    total += reward * (q * u_wrong - (1 - q) * u_correct)
    drift = (RIGHT - reward) * a_2 + (WRONG - reward) * b_2 - reward * (u_correct + u_wrong)
    return MassChange(float(total), float(-reward * u_correct - unsampled * drift))


def sampled_correct_mass(correct_chances: Floats, solved: int) -> float:
    """Give the expected correct mass that a group with so many correct rollouts has drawn.

    Lemma H.1: the sum of p (1 - (1 - p / mu)^k) over correct actions, mu being their mass.
    """
    share = correct_chances / correct_chances.sum()
    return float((correct_chances * (1.0 - (1.0 - share) ** solved)).sum())
