"""A single-solution task: walk from the start to the goal of a perfect maze.

A perfect maze is a spanning tree of its grid, so exactly one path that never visits a cell twice
joins two cells. The reward is 1 for writing the moves of that path, else 0: a move into a wall or
onto a visited cell ends a rollout, and so does the goal. Hence every rollout that is still alive
stands on the one path from the start to its cell, and a maze of C cells has only C states.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Cells = NDArray[np.int64]  # a cell is row * side + column; -1 is no cell
Marks = NDArray[np.bool_]

NORTH, EAST, SOUTH, WEST = range(4)
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # rows and columns that each move adds


@dataclass(frozen=True, eq=False)
class Mazes:
    """Hold n mazes of C cells, and what each cell is when it is reached from the start.

    ``child`` gives the cell that a move leads to, or -1 where it ends the rollout; ``above`` marks
    the cells on the path from the start to each cell, both ends included; ``right`` gives the
    move of the solution, or -1 off its path and on the goal.
    """

    open: Marks  # (n, C, 4): no wall in the way of the move
    start: Cells  # (n,)
    goal: Cells  # (n,)
    child: Cells  # (n, C, 4)
    above: Marks  # (n, C, C)
    right: Cells  # (n, C)

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, chosen: slice | Cells) -> Mazes:
        return Mazes(*(getattr(self, field.name)[chosen] for field in fields(self)))


def make_mazes(n: int, side: int, dice: np.random.Generator) -> Mazes:
    """Carve n mazes by randomised depth-first search; start and goal are any two cells."""
    near = neighbours(side)
    cells, rows = len(near), np.arange(n)
    inside = np.broadcast_to(near >= 0, (n, cells, 4))
    parent, _ = explore(inside, near, dice.integers(cells, size=n), dice)
    down = leads_to_child(parent, near)
    passages = down | np.stack([down[:, near[:, m], (m + 2) % 4] for m in range(4)], 2) & inside
    start = dice.integers(cells, size=n)
    goal = (start + dice.integers(1, cells, size=n)) % cells
    parent, above = explore(passages, near, start, dice)
    child = np.where(leads_to_child(parent, near), near, -1)
    onward = (child >= 0) & above[rows, goal][rows[:, None, None], child]
    right = np.where(onward.any(axis=2), onward.argmax(axis=2), -1)
    return Mazes(passages, start, goal, child, above, right)


def neighbours(side: int) -> Cells:
    """Give the cell next to each cell in the direction of each move (C, 4), or -1."""
    row, column = np.divmod(np.arange(side * side), side)
    near = np.full((side * side, 4), -1)
    for move, (down, along) in enumerate(STEPS):
        r, c = row + down, column + along
        inside = (r >= 0) & (r < side) & (c >= 0) & (c < side)
        near[inside, move] = (r * side + c)[inside]
    return near


def leads_to_child(parent: Cells, near: Cells) -> Marks:
    """Mark the moves that lead from a cell to one whose parent it is (n, C, 4)."""
    return (near >= 0) & (parent[:, near] == np.arange(len(near))[:, None])


def explore(
    allowed: Marks, near: Cells, root: Cells, dice: np.random.Generator
) -> tuple[Cells, Marks]:
    """Visit every cell depth-first by allowed moves in random order, all mazes at once.

    Returns the parent of each cell, -1 of the root, and ``above`` as in ``Mazes``.
    """
    n, cells, _ = allowed.shape
    rows, top = np.arange(n), np.zeros(n, np.int64)
    parent, stack = np.full((n, cells), -1), np.zeros((n, cells), np.int64)
    above, seen = np.zeros((n, cells, cells), np.bool_), np.zeros((n, cells), np.bool_)
    stack[:, 0] = root
    seen[rows, root] = above[rows, root, root] = True
    while not seen.all():
        here = stack[rows, top]
        free = allowed[rows, here] & ~seen[rows[:, None], near[here]]
        (go,) = free.any(axis=1).nonzero()
        move = (free * dice.random((n, 4))).argmax(axis=1)[go]
        cell, new = here[go], near[here[go], move]
        parent[go, new], seen[go, new] = cell, True
        above[go, new] = above[go, cell]
        above[go, new, new] = True
        deeper = top[go] + 1
        top = np.maximum(top - 1, 0)
        top[go], stack[go, deeper] = deeper, new
    return parent, above


def without(mazes: Mazes, others: Mazes) -> Mazes:
    """Leave out the mazes that are among the others too."""
    taken = set(keys(others))
    return mazes[np.array([key not in taken for key in keys(mazes)]).nonzero()[0]]


def keys(mazes: Mazes) -> list[bytes]:
    """Give each maze a key that equal mazes share."""
    ends = np.stack([mazes.start, mazes.goal], axis=1)
    return [o.tobytes() + e.tobytes() for o, e in zip(mazes.open, ends, strict=True)]


def reaches_goal(mazes: Mazes, which: int, moves: Sequence[int]) -> bool:
    """Say whether moves walk from start to goal through no wall and onto no cell twice."""
    cells = len(mazes.right[which])
    near = neighbours(round(cells**0.5))
    here, seen = int(mazes.start[which]), {int(mazes.start[which])}
    for move in moves:
        if here == mazes.goal[which] or not mazes.open[which, here, move]:
            return False
        here = int(near[here, move])
        if here in seen:
            return False
        seen.add(here)
    return here == mazes.goal[which]


def solution(mazes: Mazes, which: int) -> list[int]:
    """Give the moves of the one path from start to goal."""
    here, moves = mazes.start[which], []
    while here != mazes.goal[which]:
        moves.append(int(mazes.right[which, here]))
        here = mazes.child[which, here, moves[-1]]
    return moves
