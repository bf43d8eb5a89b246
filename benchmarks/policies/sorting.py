"""A verifiable task of graded difficulty: write up to five digits in ascending order.

The reward is 1 for exactly the right answer, else 0. Long prompts are mostly answered wrongly at
first and short ones soon always rightly, so the mix of lengths decides which side of advantage
collapse a run shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BASE, LONGEST = 8, 5
BLANK = BASE  # the token that pads a short prompt


@dataclass(frozen=True)
class Mix:
    """A task: the lengths of its prompts, each equally likely, and the steps of its warm start."""

    lengths: tuple[int, ...]
    warm_steps: int


MIXES = {
    "hard": Mix(lengths=(4, 5), warm_steps=25),
    "two-sided": Mix(lengths=(1, 2, 3, 4, 5), warm_steps=40),
}


def draw(mix: Mix, n: int, dice: torch.Generator) -> Tensor:
    """Draw n prompts as rows of LONGEST tokens, digits first and then BLANK."""
    prompts = torch.randint(BASE, (n, LONGEST), generator=dice)
    which = torch.randint(len(mix.lengths), (n,), generator=dice)
    return prompts.where(torch.arange(LONGEST) < torch.tensor(mix.lengths)[which, None], BLANK)


def right_answers(prompts: Tensor) -> Tensor:
    """Give the digits of each prompt in order, then BLANK: it is the largest token."""
    return prompts.sort(dim=1).values


def verify(prompts: Tensor, answers: Tensor) -> Tensor:
    """Give 1.0 where every counted token of an answer is right, else 0.0."""
    right = right_answers(prompts)
    return ((answers == right) | (right == BLANK)).all(dim=1).float()
