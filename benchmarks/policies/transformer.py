"""A tiny decoder that learns to sort digits on one core: its samples and its warm start.

Two layers of width 32, 27 thousand parameters. A short supervised warm start stands for
pre-training; policies/grpo.py takes it from there.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from policies.sorting import BASE, BLANK, LONGEST, Mix, draw, right_answers, verify
from torch import Tensor, nn

WARM_BATCH, WARM_LR = 128, 3e-3

Past = tuple[Tensor, Tensor]  # keys and values of the tokens so far, (batch, heads, length, each)


class Block(nn.Module):
    """One pre-norm decoder layer; two small matrix products beat the fused attention here."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor, past: Past | None = None) -> tuple[Tensor, Past]:
        """Map (batch, length, width) to the same shape; return the keys and values so far too."""
        batch, length, width = x.shape
        each = width // self.heads
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, each)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        heads = (q @ k.transpose(2, 3) / each**0.5 + mask).softmax(dim=3) @ v
        x = x + self.out(heads.transpose(1, 2).reshape(batch, length, width))
        update: Tensor = self.down(nn.functional.relu(self.up(self.norm2(x))))
        return x + update, (k, v)


class Policy(nn.Module):
    """A decoder that reads LONGEST prompt tokens and then writes digits."""

    def __init__(self, width: int = 32, layers: int = 2, heads: int = 2) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(BASE + 1, width), nn.Embedding(2 * LONGEST, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, BASE)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, length) to logits of the digits that follow (batch, answer, BASE)."""
        return self.read(tokens)[0][:, LONGEST - 1 :]

    def read(self, tokens: Tensor, pasts: list[Past] | None = None) -> tuple[Tensor, list[Past]]:
        """Give the logits after each token, and what later tokens need of it; go on from pasts."""
        start = pasts[0][0].shape[2] if pasts else 0
        length = tokens.shape[1]
        mask = torch.full((length, start + length), -torch.inf).triu(start + 1)
        x = self.token(tokens) + self.place(torch.arange(start, start + length))
        presents = []
        for block, past in zip(self.blocks, pasts or [None] * len(self.blocks), strict=True):
            x, present = block(x, mask, past)
            presents.append(present)
        return self.head(self.norm(x)), presents


class Rollouts(NamedTuple):
    """One batch of sampled answers; the groups lie one after the other."""

    prompts: Tensor  # (rollouts, LONGEST)
    answers: Tensor  # (rollouts, LONGEST)
    log_probs: Tensor  # of the answers' tokens, when they were sampled
    rewards: Tensor  # (groups, group size), each 0 or 1


@torch.no_grad()
def sample(policy: Policy, prompts: Tensor, group_size: int, dice: torch.Generator) -> Rollouts:
    """Sample group_size answers to each prompt at temperature 1 and verify them."""
    logits, pasts = policy.read(prompts)  # once a prompt, not once a rollout
    log_prob = logits[:, -1].log_softmax(dim=1).repeat_interleave(group_size, dim=0)
    pasts = [tuple(x.repeat_interleave(group_size, dim=0) for x in past) for past in pasts]
    answers, log_probs = [], []
    for place in range(LONGEST):
        if place:
            logits, pasts = policy.read(answers[-1], pasts)
            log_prob = logits[:, -1].log_softmax(dim=1)
        answers.append(torch.multinomial(log_prob.exp(), 1, generator=dice))
        log_probs.append(log_prob.gather(1, answers[-1]))
    repeated, answer = prompts.repeat_interleave(group_size, dim=0), torch.cat(answers, dim=1)
    rewards = verify(repeated, answer).view(len(prompts), group_size)
    return Rollouts(repeated, answer, torch.cat(log_probs, dim=1), rewards)


def warm_start(policy: Policy, mix: Mix, dice: torch.Generator) -> None:
    """Teach the policy right answers for the few steps of its mix."""
    optimizer = torch.optim.Adam(policy.parameters(), lr=WARM_LR, fused=True)
    for _ in range(mix.warm_steps):
        prompts = draw(mix, WARM_BATCH, dice)
        right = right_answers(prompts)
        logits = policy(torch.cat([prompts, right[:, :-1]], dim=1))
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), right.flatten(), ignore_index=BLANK
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
