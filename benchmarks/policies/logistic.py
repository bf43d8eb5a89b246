"""A policy of eight numbers that solves or fails each prompt: GRPO at thousands of steps a second.

The chance to solve prompt j is sigmoid(theta . u_j - difficulty_j). The first coordinate of u_j is
1, a skill that all prompts share; seven more are drawn from N(0, 0.35). There are two outcomes
only, so to push a wrong answer down is to push the right one up: a remedy for groups in which all
failed can do no harm here, and in a language model it can.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.remedies import Remedies, next_threshold, reweight
from rlvitals.remedies.reweighting import ZERO_ADVANTAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    # (advantages, rewards, threshold) -> advantages, both of shape [groups, rollouts]
    Weigh = Callable[[Floats, Floats, float], Floats]
    # (threshold, effective collapse rate of the step, mean rewards so far) -> next threshold
    Move = Callable[[float, float, Floats], float]

OWN_SKILLS, OWN_SPREAD = 7, 0.35
EPS, DDOF = 1e-4, 0  # the std of a group is that of a population here


@dataclass(frozen=True, slots=True)
class Setting:
    """Set a run: prompts of difficulty N(difficulty, spread), and GRPO on ``size`` rollouts each.

    ``ability`` is the shared skill at the start. The policy is judged by its mean chance to solve
    prompts it never sees, of difficulty N(held_out, held_out_spread).
    """

    difficulty: float = 3.5
    spread: float = 1.5
    ability: float = 0.0
    size: int = 8
    lr: float = 0.03
    batch: int = 32
    steps: int = 500
    prompts: int = 500
    held_out: float = 2.0
    held_out_spread: float = 1.5

    def faster(self, factor: float) -> Setting:
        """Give the same setting at a learning rate ``factor`` times as large."""
        return replace(self, lr=self.lr * factor)


@dataclass(frozen=True, slots=True)
class Arm:
    """Name a way to weigh advantages, and how its threshold moves from step to step."""

    name: str
    weigh: Weigh = lambda advantages, _rewards, _threshold: advantages
    threshold: float = 0.5
    move: Move = lambda threshold, _effective, _rewards: threshold


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Hold one value a step: shares of groups, means over rollouts, and the policy after it.

    ``left_fail`` and ``left_pass`` are those of ``all_fail`` and ``all_pass`` whose advantages are
    still zero once weighed; ``signal`` is the mean size of an advantage, ``threshold`` the one in
    force, ``success`` the mean chance to solve a held-out prompt.
    """

    all_fail: Floats
    all_pass: Floats
    left_fail: Floats
    left_pass: Floats
    threshold: Floats
    reward: Floats
    signal: Floats
    grad_norm: Floats
    success: Floats

    @property
    def acr(self) -> Floats:
        """Give the raw collapse rate of each step, that of the rewards."""
        return self.all_fail + self.all_pass

    @property
    def effective(self) -> Floats:
        """Give the effective collapse rate of each step, that of the weighed advantages."""
        return self.left_fail + self.left_pass

    @property
    def final(self) -> float:
        """Give the chance to solve a held-out prompt at the end."""
        return float(self.success[-1])


GRPO = Arm("GRPO")
REWARD = [field.name for field in fields(Series)].index("reward")


def remedied(name: str, remedies: Remedies) -> Arm:
    """Weigh as the product does, with the threshold it would steer."""

    def weigh(advantages: Floats, rewards: Floats, threshold: float) -> Floats:
        return reweight(
            advantages,
            rewards,
            remedies,
            success_threshold=0.5,
            threshold=threshold,
            eps=EPS,
            ddof=DDOF,
        ).advantages

    avspo = remedies.avspo
    if avspo is None:
        return Arm(name, weigh)
    return Arm(
        name,
        weigh,
        avspo.threshold,
        lambda threshold, effective, _rewards: next_threshold(threshold, effective, avspo),
    )


def simulate(setting: Setting, seed: int, arm: Arm = GRPO) -> Series:
    """Train one policy. Every arm of a seed meets the same prompts, batches and luck."""
    prompts, held_out, luck = (np.random.default_rng([seed, stream]) for stream in range(3))
    skills, difficulty = _draw(prompts, setting.prompts, setting.difficulty, setting.spread)
    unseen, hardness = _draw(held_out, 500, setting.held_out, setting.held_out_spread)
    theta = np.zeros(1 + OWN_SKILLS)
    theta[0] = setting.ability
    threshold = arm.threshold
    rows = np.empty((setting.steps, len(fields(Series))))
    for step in range(setting.steps):
        batch = luck.choice(setting.prompts, setting.batch, replace=False)
        chance = _sigmoid(skills[batch] @ theta - difficulty[batch])
        rewards = (luck.random((setting.batch, setting.size)) < chance[:, None]).astype(float)
        advantages = arm.weigh(standardised(rewards), rewards, threshold)
        pull = advantages * (rewards - chance[:, None])  # d log pi / d logit, weighed
        gradient = pull.mean(axis=1) @ skills[batch] / setting.batch
        theta = theta + setting.lr * gradient
        fail, solved = rewards.max(axis=1) == 0, rewards.min(axis=1) == 1
        still = np.abs(advantages).max(axis=1) <= ZERO_ADVANTAGE
        rows[step] = (
            fail.mean(),
            solved.mean(),
            (fail & still).mean(),
            (solved & still).mean(),
            threshold,
            rewards.mean(),
            np.abs(advantages).mean(),
            np.linalg.norm(gradient),
            _sigmoid(unseen @ theta - hardness).mean(),
        )
        effective = float(still.mean())
        threshold = arm.move(threshold, effective, rows[: step + 1, REWARD])
    return Series(*rows.T)


def standardised(rewards: Floats) -> Floats:
    """Give the advantages of GRPO: (r - mean) / (std + 1e-4) within each row."""
    centred: Floats = rewards - rewards.mean(axis=1, keepdims=True)
    return centred / (rewards.std(axis=1, ddof=DDOF, keepdims=True) + EPS)


def _draw(
    rng: np.random.Generator, count: int, difficulty: float, spread: float
) -> tuple[Floats, Floats]:
    skills = np.ones((count, 1 + OWN_SKILLS))
    skills[:, 1:] = rng.normal(0, OWN_SPREAD, (count, OWN_SKILLS))
    return skills, rng.normal(difficulty, spread, count)


def _sigmoid(logits: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-logits))
    return chances
