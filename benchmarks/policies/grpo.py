"""GRPO with remedies and token weights: settings in, one record a step and the policy out.

A step is the one of most trainers: sample groups, verify, standardise rewards within each group,
apply the remedies, then one Adam update of the clipped surrogate for each part of the batch, so
that the ratio leaves 1 after the first. Prompts come from a generator of their own: runs of one
mix and seed start from the same policy and see the same prompts in the same order, whatever else
is set.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from policies.sorting import BLANK, MIXES, draw, right_answers
from policies.transformer import Policy, Rollouts, sample, warm_start
from torch import Tensor, nn

from rlvitals.remedies import Remedies, Sharpness, next_threshold, reweight
from rlvitals.trainers.sharpness import token_weights

EPS, DDOF = 1e-4, 1  # of a group's standard deviation, as TRL has them

TOKENS = ("silenced", "weight", "at_low", "at_high")  # shares or means over active tokens

Record = dict[str, float]


@dataclass(frozen=True)
class Settings:
    """Set one run; the defaults are plain GRPO.

    Of the token weights, ``score`` says what they are made of: the chosen "logit" or its
    "log-prob". ``inside`` multiplies the ratio within min and clip, as GRPO-SG has it; otherwise
    the clipped surrogate is multiplied.
    """

    mix: str
    seed: int
    steps: int = 300
    groups: int = 16
    group_size: int = 8
    parts: int = 2
    lr: float = 5e-4
    clip: float = 0.2
    max_norm: float = 1.0
    remedies: Remedies = field(default_factory=Remedies)
    sharpness: Sharpness | None = None
    score: str = "logit"
    inside: bool = True


def train(settings: Settings) -> tuple[list[Record], Policy]:
    """Warm a policy up and train it; return a record of each step, and the policy."""
    prompt_dice, dice, policy = start(settings)
    optimizer = torch.optim.Adam(policy.parameters(), lr=settings.lr, fused=True)
    avspo = settings.remedies.avspo
    threshold = avspo.threshold if avspo else 1.0
    records = []
    for step in range(settings.steps):
        prompts = draw(MIXES[settings.mix], settings.groups, prompt_dice)
        batch = sample(policy, prompts, settings.group_size, dice)
        record = {"step": float(step), "threshold": threshold, **reward_record(batch.rewards)}
        advantages, zero = apply_remedies(batch.rewards, settings.remedies, threshold)
        threshold = next_threshold(threshold, zero, avspo) if avspo else threshold
        updates = update(policy, optimizer, batch, advantages, settings)
        records.append({**record, "acr_effective": zero, **updates})
    return records, policy


def start(settings: Settings) -> tuple[torch.Generator, torch.Generator, Policy]:
    """Make the generators of prompts and of rollouts, and the warm policy of a seed."""
    prompt_dice, dice, warm_dice = (
        torch.Generator().manual_seed(3 * settings.seed + k) for k in range(3)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        policy = Policy()
    warm_start(policy, MIXES[settings.mix], warm_dice)
    return prompt_dice, dice, policy


def reward_record(rewards: Tensor) -> Record:
    """Say what a batch was rewarded with, and how many of its groups collapsed to either side."""
    mean = rewards.mean(dim=1)
    return {
        "reward": mean.mean().item(),
        "all_fail": (mean == 0).float().mean().item(),
        "all_pass": (mean == 1).float().mean().item(),
    }


def apply_remedies(rewards: Tensor, remedies: Remedies, threshold: float) -> tuple[Tensor, float]:
    """Return the advantages of the rollouts, and the effective collapse rate of the batch."""
    outcome = reweight(
        group_advantages(rewards),
        rewards,
        remedies,
        success_threshold=1.0,
        threshold=threshold,
        eps=EPS,
        ddof=DDOF,
    )
    zero = outcome.advantage_zero / outcome.advantage_groups
    return torch.from_numpy(outcome.advantages).flatten(), zero


def group_advantages(rewards: Tensor) -> Tensor:
    """Standardise rewards within each group."""
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    return centred / (rewards.std(dim=1, keepdim=True, correction=DDOF) + EPS)


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    batch: Rollouts,
    advantages: Tensor,
    settings: Settings,
) -> Record:
    """Take one optimiser step for each part of the batch; say what happened to norms and tokens.

    The gradient norm, before it is clipped, is the mean over the parts; tokens count where they
    have an advantage.
    """
    norms, tokens = [], []
    for part in torch.arange(len(batch.prompts)).chunk(settings.parts):
        loss, counts = part_loss(policy, batch, advantages, part, settings)
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(policy.parameters(), settings.max_norm))
        optimizer.step()
        tokens.append(counts)
    norm = torch.stack(norms)
    active, *sums = torch.stack(tokens).sum(dim=0).tolist()
    shares = {name: total / max(active, 1) for name, total in zip(TOKENS, sums, strict=True)}
    return {
        "grad_norm": norm.mean().item(),
        "grad_clipped": (norm > settings.max_norm).float().mean().item(),
        "active": active,
        **shares,
    }


def part_loss(
    policy: Policy, batch: Rollouts, advantages: Tensor, part: Tensor, settings: Settings
) -> tuple[Tensor, Tensor]:
    """Return the loss of some rollouts, a mean over tokens, and sums over their active tokens."""
    prompts, answers = batch.prompts[part], batch.answers[part]
    counted = right_answers(prompts) != BLANK
    logits = policy(torch.cat([prompts, answers[:, :-1]], dim=1))
    logit = logits.gather(2, answers[..., None]).squeeze(2)
    log_prob = logit - logits.logsumexp(dim=2)
    ratio = (log_prob - batch.log_probs[part]).exp()
    gain = advantages[part, None].expand_as(ratio)
    active = counted & (gain != 0)
    surrogate, sums = weighed(ratio, gain, logit, log_prob, active, settings)
    return -surrogate[counted].mean(), torch.stack([active.sum(), *sums])


def weighed(
    ratio: Tensor,
    gain: Tensor,
    logit: Tensor,
    log_prob: Tensor,
    active: Tensor,
    settings: Settings,
) -> tuple[Tensor, list[Tensor]]:
    """Return the surrogate of each token under the token weights, and the sums of TOKENS."""
    if settings.sharpness is None:
        surrogate, silent = clipped(ratio, gain, settings.clip)
        count = active.sum()
        return surrogate, [(silent & active).sum(), count, 0 * count, 0 * count]
    score = logit if settings.score == "logit" else log_prob
    given = token_weights(score, settings.sharpness, active)
    weight = given.weights
    if settings.inside:
        surrogate, silent = clipped(weight * ratio, gain, settings.clip)
    else:
        surrogate, silent = clipped(ratio, gain, settings.clip)
        surrogate = weight * surrogate
    shares = (given.mean_weight, given.share_low, given.share_high)
    return surrogate, [(silent & active).sum(), *(share * active.sum() for share in shares)]


def clipped(ratio: Tensor, gain: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """Return the clipped surrogate, and which tokens it leaves without a gradient."""
    surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    silent = ((ratio > 1 + clip) & (gain > 0)) | ((ratio < 1 - clip) & (gain < 0))
    return surrogate, silent
