"""What the trainers call things, and what they are called here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Left out on purpose: frac_reward_zero_std is not the advantage collapse rate (TRL has logged a
# whole-batch flag under it), and critic/score/* may stand beside critic/rewards/* in one log.
TRAINER_NAMES: Mapping[str, str] = {
    "reward": "reward_mean",
    "rewards/mean": "reward_mean",
    "reward/mean": "reward_mean",
    "critic/rewards/mean": "reward_mean",
    "reward/std": "reward_std",
    "completion_length": "response_length_mean",
    "completions/mean_length": "response_length_mean",
    "response_length": "response_length_mean",
    "response_length/mean": "response_length_mean",
    "completions/clipped_ratio": "truncated_fraction",
    "response_length/clip_ratio": "truncated_fraction",
    "clip_ratio": "clip_fraction",
    "clip_ratio/region_mean": "clip_fraction",
    "actor/pg_clipfrac": "clip_fraction",
    "actor/grad_norm": "grad_norm",
    "actor_grad_norm": "grad_norm",
    "optim/grad_norm": "grad_norm",
    "actor/entropy": "entropy",
    "actor/entropy_loss": "entropy",
    "actor/ppo_kl": "kl",
    "objective/kl": "kl",
    "actor/pg_loss": "loss",
    "actor/lr": "learning_rate",
    "lr": "learning_rate",
    "step_time": "step_seconds",
    "timing_s/step": "step_seconds",
    "perf/time_per_step": "step_seconds",
}

_PASS_AT = re.compile(r"pass(?:@|_at_)([1-9]\d{0,6})\Z")


def canonical(name: str) -> str:
    """Give the canonical key of a trainer's name for a metric; an unknown name is kept.

    A leading ``train/`` is dropped, since the phase is stated elsewhere.
    """
    bare = name.removeprefix("train/")
    match = _PASS_AT.match(bare)
    return f"pass_at_{match[1]}" if match else TRAINER_NAMES.get(bare, bare)
