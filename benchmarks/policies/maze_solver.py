"""A small decoder that reads a maze and writes moves, evaluated on all partial paths at once.

The prompt is a token a cell: its walls, its place, whether it is the start or the goal. Each
written move is fed back as the cell that it leads to. A rollout that is still alive stands on the
one path from the start to its cell (policies/maze.py), so two rollouts that reach a cell have
written the same moves, and one token a cell serves them all: it attends to the prompt and to the
tokens of the cells above it. That is the usual decoder with every shared prefix computed once, so
a maze costs the same for 4 rollouts and for 256, and pass@k needs no sampling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from policies.transformer import Block
from torch import Tensor, nn

if TYPE_CHECKING:
    from policies.maze import Mazes

SFT_BATCH, SFT_LR = 32, 1e-3
POWERS = 1 << np.arange(4)


class Solver(nn.Module):
    """A transformer over 2 C tokens: the C cells of the prompt, then the C paths to them."""

    def __init__(self, side: int, width: int, layers: int, heads: int = 4) -> None:
        super().__init__()
        self.cells = side * side
        self.walls, self.role = nn.Embedding(16, width), nn.Embedding(3, width)
        self.place, self.written = (
            nn.Embedding(2 * self.cells, width),
            nn.Embedding(self.cells, width),
        )
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 4)

    def forward(self, mazes: Mazes) -> Tensor:
        """Give the log-prob of each move after the path to each cell (mazes, C, 4)."""
        above = torch.from_numpy(mazes.above)
        prompt = self.walls(torch.from_numpy(mazes.open @ POWERS)) + self.role(roles(mazes))
        paths = self.written(above.sum(dim=2) - 1)
        x = torch.cat([prompt, paths], dim=1) + self.place.weight
        mask = self.mask(above)
        for block in self.blocks:
            x, _ = block(x, mask)
        logits: Tensor = self.head(self.norm(x[:, self.cells :]))
        return logits.log_softmax(dim=2)

    def mask(self, above: Tensor) -> Tensor:
        """Let the prompt see itself, and each path the prompt and the paths above it."""
        mask = torch.zeros(len(above), 1, 2 * self.cells, 2 * self.cells)
        mask[:, :, : self.cells, self.cells :] = -torch.inf
        mask[:, 0, self.cells :, self.cells :].masked_fill_(~above, -torch.inf)
        return mask


def roles(mazes: Mazes) -> Tensor:
    """Mark the start of each maze with 1 and its goal with 2 (mazes, C)."""
    role = torch.zeros(mazes.right.shape, dtype=torch.long)
    role.scatter_(1, torch.from_numpy(mazes.start)[:, None], 1)
    return role.scatter_(1, torch.from_numpy(mazes.goal)[:, None], 2)


def fine_tune(solver: Solver, mazes: Mazes, steps: int, dice: np.random.Generator) -> None:
    """Teach the solver the solutions of random mazes."""
    optimizer = torch.optim.AdamW(solver.parameters(), lr=SFT_LR, fused=True)
    for _ in range(steps):
        chosen = mazes[dice.integers(len(mazes), size=SFT_BATCH)]
        log_probs, right = solver(chosen).flatten(0, 1), torch.from_numpy(chosen.right)
        loss = nn.functional.nll_loss(log_probs, right.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def success_chance(log_probs: Tensor, mazes: Mazes) -> Tensor:
    """Give the exact chance that a rollout solves each maze (mazes,): that of its one solution."""
    right = torch.from_numpy(mazes.right)[..., None]
    each = log_probs.gather(2, right.clamp(min=0)).double()
    return each.where(right >= 0, 0.0).sum(dim=(1, 2)).exp()
