"""On-policy GRPO on mazes as F-GRPO has it: one update a step, from N rollouts of every maze.

A run's start and the mazes of each step depend on its seed only, its rollouts on the seed and N
as well, so runs that differ in gamma or learning rate differ in nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from policies.grpo import DDOF, EPS, group_advantages
from policies.maze_solver import success_chance
from torch import Tensor, nn

from rlvitals.metrics import pass_at_k
from rlvitals.remedies import Remedies, reweight

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from policies.maze import Cells, Marks, Mazes
    from policies.maze_solver import Solver

MAX_NORM = 1.0
KS = (1, 16, 256)
SAMPLES = 256

Row = dict[str, float]


@dataclass(frozen=True)
class Settings:
    """Set one run; the defaults are plain GRPO."""

    seed: int
    steps: int
    lr: float
    group_size: int = 8
    mazes: int = 16
    every: int = 50
    remedies: Remedies | None = None


@dataclass(frozen=True)
class Rollouts:
    """Hold sampled walks; ``alive`` marks the moves written before a walk had ended."""

    rewards: Tensor  # (mazes, N), each 0 or 1
    cells: Cells  # (moves, mazes, N): where each move was written
    moves: Cells
    alive: Marks


def train(solver: Solver, mazes: Mazes, test: Mazes, settings: Settings) -> list[Row]:
    """Train the solver; return its exact pass@k on the test mazes every few steps."""
    optimizer = torch.optim.AdamW(solver.parameters(), lr=settings.lr, fused=True)
    order = np.random.default_rng([settings.seed, 1])
    dice = np.random.default_rng([settings.seed, 2, settings.group_size])
    rows, weights = [], []
    for step in range(settings.steps + 1):
        if step % settings.every == 0:
            rows.append({"step": float(step), **evaluate(solver, test)})
        if step == settings.steps:
            break
        chosen = mazes[order.integers(len(mazes), size=settings.mazes)]
        weights.append(update(solver, optimizer, chosen, dice, settings))
    rows[-1] |= {"mean_weight": float(np.mean(weights)), **evaluate_by_samples(solver, test, dice)}
    return rows


def update(
    solver: Solver,
    optimizer: torch.optim.Optimizer,
    mazes: Mazes,
    dice: np.random.Generator,
    settings: Settings,
) -> float:
    """Sample, verify and take one optimiser step; return the mean weight of mixed groups."""
    log_probs = solver(mazes)
    rollouts = sample(log_probs.detach().exp(), mazes, settings.group_size, dice)
    advantages, weight = group_advantages(rollouts.rewards).numpy(), 1.0
    if settings.remedies is not None:
        outcome = reweight(
            advantages,
            rollouts.rewards,
            settings.remedies,
            success_threshold=1.0,
            eps=EPS,
            ddof=DDOF,
        )
        advantages, weight = outcome.advantages, outcome.mean_weight
    loss = policy_loss(log_probs, rollouts, advantages)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(solver.parameters(), MAX_NORM)
    optimizer.step()
    return weight


def sample(chances: Tensor, mazes: Mazes, n: int, dice: np.random.Generator) -> Rollouts:
    """Walk each maze n times by the chance of each move at each cell (mazes, C, 4)."""
    limits = chances.double().cumsum(dim=2).numpy()[:, :, :3]
    rows, goal = np.arange(len(mazes))[:, None], mazes.goal[:, None]
    here = np.repeat(mazes.start[:, None], n, axis=1)
    alive, written = np.ones(here.shape, np.bool_), []
    while alive.any():
        move = (dice.random(here.shape)[..., None] > limits[rows, here]).sum(axis=2)
        written.append((here, move, alive))
        there = mazes.child[rows, here, move]
        here = np.where(alive & (there >= 0), there, here)
        alive = alive & (there >= 0) & (there != goal)
    cells, moves, was_alive = map(np.stack, zip(*written, strict=True))
    return Rollouts(torch.from_numpy(here == goal).float(), cells, moves, was_alive)


def policy_loss(log_probs: Tensor, rollouts: Rollouts, advantages: NDArray[np.float32]) -> Tensor:
    """Return the loss, a mean over written moves.

    With one update a step the ratio is 1 and the clip never acts, so the gradient of the clipped
    surrogate is that of advantage times log-prob, summed here move by move and cell by cell.
    """
    gain = np.zeros(log_probs.shape, np.float32)
    rows = np.broadcast_to(np.arange(len(gain))[:, None], rollouts.cells.shape)
    np.add.at(gain, (rows, rollouts.cells, rollouts.moves), rollouts.alive * advantages)
    return -(torch.from_numpy(gain) * log_probs).sum() / int(rollouts.alive.sum())


@torch.no_grad()
def evaluate(solver: Solver, test: Mazes) -> Row:
    """Give mean pass@k on mazes, exactly: 1 - (1-p)^k with p the chance of the one solution."""
    p = success_chance(solver(test), test).clamp(max=1 - 1e-15)
    return {f"pass@{k}": -torch.expm1(k * torch.log1p(-p)).mean().item() for k in KS}


@torch.no_grad()
def evaluate_by_samples(solver: Solver, test: Mazes, dice: np.random.Generator) -> Row:
    """Estimate the same from SAMPLES rollouts of each maze, by the unbiased estimator."""
    correct = sample(solver(test).exp(), test, SAMPLES, dice).rewards.sum(dim=1).long().numpy()
    return {f"sampled@{k}": float(pass_at_k(SAMPLES, correct, k).mean()) for k in KS}
