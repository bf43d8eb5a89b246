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
from policies.weighing import GRPO, Arm, standardised

from rlvitals.remedies.reweighting import ZERO_ADVANTAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OWN_SKILLS, OWN_SPREAD = 7, 0.35
HELD_OUT_PROMPTS = 500


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


_NAMES = [field.name for field in fields(Series)]
REWARD = _NAMES.index("reward")
LEFT = [_NAMES.index("left_fail"), _NAMES.index("left_pass")]


def simulate(setting: Setting, seed: int, arm: Arm = GRPO) -> Series:
    """Train one policy."""
    return simulate_runs([setting], [seed], [arm])[0]


def simulate_runs(
    settings: Sequence[Setting], seeds: Sequence[int], arms: Sequence[Arm]
) -> list[Series]:
    """Train a policy for each setting, seed and arm, side by side.

    A seed fixes prompts, batches and luck, whatever the arm. Group size, batch, prompts and steps
    must be the same for all, else ValueError.
    """
    shapes = {(one.size, one.batch, one.prompts, one.steps) for one in settings}
    if len(shapes) != 1:
        raise ValueError("settings: size, batch, prompts and steps must be the same for all runs")
    worlds = [_World.of(*pair) for pair in zip(settings, seeds, strict=True)]
    skills, difficulty, unseen, hardness, batches, luck = (
        np.stack([getattr(world, field.name) for world in worlds]) for field in fields(_World)
    )
    rates = np.array([[one.lr] for one in settings])
    theta = np.zeros((len(settings), 1 + OWN_SKILLS))
    theta[:, 0] = [one.ability for one in settings]
    threshold = np.array([arm.threshold for arm in arms])
    rows = np.empty((len(settings), settings[0].steps, len(fields(Series))))
    each = np.arange(len(settings))[:, None]
    for step in range(settings[0].steps):
        met = skills[each, batches[:, step]]
        logits = np.einsum("rbd,rd->rb", met, theta) - difficulty[each, batches[:, step]]
        chance = _sigmoid(logits)
        rewards = (luck[:, step] < chance[..., None]).astype(float)
        advantages = standardised(rewards)
        for run, arm in enumerate(arms):
            if arm.weigh is not None:
                advantages[run] = arm.weigh(advantages[run], rewards[run], threshold[run])
        pull = (advantages * (rewards - chance[..., None])).mean(axis=2)  # d log pi / d logit
        gradient = np.einsum("rb,rbd->rd", pull, met) / batches.shape[2]
        theta = theta + rates * gradient
        success = _sigmoid(np.einsum("rpd,rd->rp", unseen, theta) - hardness).mean(axis=1)
        norm = np.linalg.norm(gradient, axis=1)
        rows[:, step] = _measure(rewards, advantages, threshold, norm, success)
        for run, arm in enumerate(arms):
            if arm.move is not None:
                effective = rows[run, step, LEFT].sum()
                threshold[run] = arm.move(threshold[run], effective, rows[run, : step + 1, REWARD])
    return [Series(*run.T) for run in rows]


def _measure(
    rewards: Floats, advantages: Floats, threshold: Floats, norm: Floats, success: Floats
) -> Floats:
    """Give the columns of Series for one step of every run."""
    fail, solved = rewards.max(axis=2) == 0, rewards.min(axis=2) == 1
    size = np.abs(advantages)
    still = size.max(axis=2) <= ZERO_ADVANTAGE
    return np.stack(
        [
            fail.mean(axis=1),
            solved.mean(axis=1),
            (fail & still).mean(axis=1),
            (solved & still).mean(axis=1),
            threshold,
            rewards.mean(axis=(1, 2)),
            size.mean(axis=(1, 2)),
            norm,
            success,
        ],
        axis=1,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _World:
    """Hold all that chance decides about a run, drawn before it starts."""

    skills: Floats
    difficulty: Floats
    unseen: Floats
    hardness: Floats
    batches: NDArray[np.intp]
    luck: Floats

    @classmethod
    def of(cls, setting: Setting, seed: int) -> _World:
        prompts, held_out, luck = (np.random.default_rng([seed, stream]) for stream in range(3))
        order = luck.random((setting.steps, setting.prompts))
        return cls(
            *_draw(prompts, setting.prompts, setting.difficulty, setting.spread),
            *_draw(held_out, HELD_OUT_PROMPTS, setting.held_out, setting.held_out_spread),
            np.argpartition(order, setting.batch - 1, axis=1)[:, : setting.batch],
            luck.random((setting.steps, setting.batch, setting.size)),
        )


def _draw(
    rng: np.random.Generator, count: int, difficulty: float, spread: float
) -> tuple[Floats, Floats]:
    skills = np.ones((count, 1 + OWN_SKILLS))
    skills[:, 1:] = rng.normal(0, OWN_SPREAD, (count, OWN_SKILLS))
    return skills, rng.normal(difficulty, spread, count)


def _sigmoid(logits: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-logits))
    return chances
