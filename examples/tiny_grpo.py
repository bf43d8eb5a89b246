"""GRPO from scratch on one CPU core with rlvitals attached: read it to attach your own trainer.

A two-layer transformer answers questions about the digits 0-5: 1 for the exact answer, else 0.
The prompts mix three difficulties, so that both sides of advantage collapse come by themselves:

    easy    copy a digit, name the next one      soon every rollout of a group is right
    medium  add two digits modulo 6              about half is learnt, then it stops
    hard    a secret table, a two-digit product  the policy settles on one guess, mostly wrong

A group whose rollouts are all right or all wrong has zero advantage and teaches nothing; from about
step 150 on more than half are like that. The lines that concern rlvitals are marked `# rlvitals`.

    python examples/tiny_grpo.py --steps 600 --seed 0
"""

from __future__ import annotations

import argparse
import signal
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

import rlvitals
import rlvitals.trainers.torch

if TYPE_CHECKING:
    from collections.abc import Sequence

BASE = 6  # an untrained policy is right one time in six, so early groups are mostly mixed
COPY, NEXT, ADD, LOOK, TIMES, EQUALS, BLANK = range(BASE, BASE + 7)
VOCABULARY_SIZE = BASE + 7
ANSWER_LENGTH = 2
SHARES = {"easy": 0.25, "medium": 0.20, "hard": 0.55}


class Prompt(NamedTuple):
    """One question and its one right answer, both as tokens."""

    id: str
    difficulty: str
    tokens: tuple[int, int, int, int, int]
    answer: tuple[int, ...]


def make_prompts() -> list[Prompt]:
    """List every prompt of the three difficulties."""
    # The table is random but the same in every run: nothing in it generalises from cell to cell.
    table = torch.randint(BASE, (BASE, BASE, BASE), generator=torch.Generator().manual_seed(1))
    prompts = []
    for x in range(BASE):
        prompts.append(Prompt(f"copy {x}", "easy", (COPY, x, BLANK, BLANK, EQUALS), (x,)))
        after = (x + 1) % BASE
        prompts.append(Prompt(f"next {x}", "easy", (NEXT, x, BLANK, BLANK, EQUALS), (after,)))
        for y in range(BASE):
            total, product = (x + y) % BASE, divmod(x * y, BASE)
            prompts.append(Prompt(f"add {x} {y}", "medium", (ADD, x, y, BLANK, EQUALS), (total,)))
            prompts.append(Prompt(f"times {x} {y}", "hard", (TIMES, x, y, BLANK, EQUALS), product))
            for z in range(BASE):
                cell = int(table[x, y, z])
                tokens = (LOOK, x, y, z, EQUALS)
                prompts.append(Prompt(f"look {x} {y} {z}", "hard", tokens, (cell,)))
    return prompts


def draw(prompts: Sequence[Prompt], n: int, dice: torch.Generator) -> list[Prompt]:
    """Draw n prompts: the difficulty by its share, then any prompt of that difficulty."""
    sizes = {d: sum(p.difficulty == d for p in prompts) for d in SHARES}
    weights = torch.tensor([SHARES[p.difficulty] / sizes[p.difficulty] for p in prompts])
    # With replacement: without it the twelve easy prompts would run short of their share.
    drawn = torch.multinomial(weights, n, replacement=True, generator=dice)
    return [prompts[i] for i in drawn.tolist()]


class Block(nn.Module):
    """One pre-norm decoder layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).reshape(batch, length, width))
        update: Tensor = self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return x + update


class Policy(nn.Module):
    """A decoder-only transformer that reads prompts and writes digits."""

    def __init__(self, width: int = 64, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY_SIZE, width)
        self.place = nn.Embedding(5 + ANSWER_LENGTH, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, BASE)
        nn.init.normal_(self.head.weight, std=0.02)  # near-uniform first answers

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, length) to logits over the digits (batch, length, BASE)."""
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


class Rollouts(NamedTuple):
    """One batch of sampled answers, verified."""

    tokens: Tensor  # (n_groups * group_size, prompt + answer)
    mask: Tensor  # 1 where an answer token counts
    rewards: Tensor  # (n_groups, group_size), each 0 or 1


@torch.no_grad()
def rollout(
    policy: Policy, prompts: list[Prompt], group_size: int, dice: torch.Generator
) -> Rollouts:
    """Sample group_size answers to each prompt at temperature 1 and verify them."""
    tokens = torch.tensor([p.tokens for p in prompts]).repeat_interleave(group_size, dim=0)
    for _ in range(ANSWER_LENGTH):
        chances = policy(tokens)[:, -1].softmax(dim=-1)
        tokens = torch.cat([tokens, torch.multinomial(chances, 1, generator=dice)], dim=1)
    padded = torch.tensor([(*p.answer, BLANK)[:ANSWER_LENGTH] for p in prompts])
    target = padded.repeat_interleave(group_size, dim=0)
    mask = target != BLANK
    right = ((tokens[:, -ANSWER_LENGTH:] == target) | ~mask).all(dim=1)
    return Rollouts(tokens, mask.float(), right.float().view(len(prompts), group_size))


def group_advantages(rewards: Tensor) -> Tensor:
    """Standardise rewards within each group (GRPO: sample std, ddof=1, eps 1e-4)."""
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    return centred / (rewards.std(dim=1, keepdim=True) + 1e-4)


def policy_loss(policy: Policy, batch: Rollouts, advantages: Tensor) -> tuple[Tensor, Tensor]:
    """Return the clipped surrogate, averaged over answer tokens, and the mean token entropy."""
    logits = policy(batch.tokens[:, :-1])[:, -ANSWER_LENGTH:]
    log_probs = logits.log_softmax(dim=-1)
    chosen = log_probs.gather(2, batch.tokens[:, -ANSWER_LENGTH:, None]).squeeze(2)
    ratio = (chosen - chosen.detach()).exp()  # one update per batch: on-policy, the ratio is 1
    gain = advantages.reshape(-1, 1)
    surrogate = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
    entropy = -(log_probs.exp() * log_probs).sum(dim=-1).detach()
    tokens = batch.mask.sum()
    return -(surrogate * batch.mask).sum() / tokens, (entropy * batch.mask).sum() / tokens


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="A tiny real GRPO run with rlvitals attached.")
    parser.add_argument("--steps", type=int, default=600, help="0 trains until stopped")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", type=int, default=32, help="prompts per step")
    parser.add_argument("--group-size", type=int, default=8, help="rollouts per prompt")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--eval-every", type=int, default=50, help="0 turns evaluation off")
    parser.add_argument("--eval-samples", type=int, default=16, help="rollouts per eval prompt")
    parser.add_argument("--name", default=None)
    parser.add_argument("--project", default="demo")
    return parser.parse_args(argv)


def train(args: argparse.Namespace, stop: threading.Event) -> list[dict[str, float]]:
    """Train for args.steps steps or until stop is set; return one row of numbers per step."""
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    dice, eval_dice = (torch.Generator().manual_seed(args.seed + k) for k in (1, 2))
    prompts = make_prompts()
    eval_prompts = draw(prompts, 48, torch.Generator().manual_seed(0))
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr)

    run = rlvitals.init(  # rlvitals: success_threshold says which reward counts as correct
        project=args.project, name=args.name, config=vars(args), success_threshold=1.0
    )
    history: list[dict[str, float]] = []
    step = 0
    while not stop.is_set() and (args.steps == 0 or step < args.steps):
        started = time.perf_counter()
        if args.eval_every and step % args.eval_every == 0:
            scores = rollout(policy, eval_prompts, args.eval_samples, eval_dice).rewards
            eval_ids = [p.id for p in eval_prompts]
            run.log_groups(scores, step=step, prompt_ids=eval_ids, phase="eval")  # rlvitals

        drawn = draw(prompts, args.groups, dice)
        batch = rollout(policy, drawn, args.group_size, dice)
        rewards = batch.rewards
        run.log_groups(rewards, step=step, prompt_ids=[p.id for p in drawn])  # rlvitals
        advantages = group_advantages(rewards)
        # Returns the same tensor unless somebody has switched a remedy on for this run.
        advantages = run.reweight(advantages, rewards, step=step)  # rlvitals

        loss, entropy = policy_loss(policy, batch, advantages)
        optimizer.zero_grad()
        loss.backward()
        grad_norm = rlvitals.trainers.torch.clip_grad_norm(policy.parameters(), 1.0, run, step=step)
        optimizer.step()

        numbers = {
            "loss": loss.item(),
            "entropy": entropy.item(),
            "learning_rate": args.lr,
            "response_length_mean": batch.mask.sum(dim=1).mean().item(),
            "step_seconds": time.perf_counter() - started,
        }
        run.log(numbers, step=step)  # rlvitals
        all_wrong = (rewards == 0).all(dim=1).float().mean().item()
        all_right = (rewards == 1).all(dim=1).float().mean().item()
        row = {"reward": rewards.mean().item(), "all_wrong": all_wrong, "all_right": all_right}
        history.append({"step": step, **row, "grad_norm": float(grad_norm), **numbers})
        step += 1
        if step % 25 == 0:
            print_means(history[-25:])
    run.finish()  # rlvitals
    return history


def print_means(rows: list[dict[str, float]]) -> None:
    """Print the means of the last rows on one line."""
    keys = ("reward", "all_wrong", "all_right", "grad_norm", "entropy", "step_seconds")
    means = (f"{key} {sum(row[key] for row in rows) / len(rows):.3f}" for key in keys)
    print(f"step {int(rows[-1]['step']) + 1:5d}  " + "  ".join(means), flush=True)


if __name__ == "__main__":
    stop = threading.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: stop.set())
    train(parse_args(), stop)
