"""A synthetic RLVR run with a known pathology, drawn from a logistic model of prompts.

The order of the random draws is part of the specification: the figures quoted in the tests hold
for exactly these calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

HEALTHY: dict[str, Any] = {"start": 10**6, "spike": -1, "nan": -1}


def make(
    steps: int = 300,
    prompts: int = 64,
    group_size: int = 8,
    seed: int = 0,
    pool: int = 512,
    spike: int = 90,
    nan: int = 120,
    start: int = 150,
    mode: str = "mixed",
) -> Iterator[dict[str, Any]]:
    """Yield one row a step: binary rewards ``R`` (prompts, group_size) and a trainer's scalars.

    From ``start`` on prompts drift apart: to both sides (mixed), to solved (correct) or out of
    reach (wrong). The gradient norm is 60 times too large at ``spike``; it and the loss are NaN
    at ``nan``.
    """
    rng = np.random.default_rng(seed)
    base = rng.normal(0, 1.2, pool)
    mixed = np.where(rng.random(pool) < 0.5, 1.0, -1.0)
    drift = {"mixed": mixed, "correct": np.ones(pool), "wrong": -np.ones(pool)}[mode]
    for step in range(steps):
        ids = rng.choice(pool, prompts, replace=pool < prompts)
        progress = max(0.0, (step - start) / max(1, steps - start)) if step >= start else 0.0
        logit = base[ids] * (1 + 0.002 * step) + 0.15 * np.sin(step / 25 + ids)
        success = 1 / (1 + np.exp(-(logit + drift[ids] * 9 * progress)))
        rewards = (rng.random((prompts, group_size)) < success[:, None]).astype(float)
        std = rewards.std(1)
        dead = (std == 0).mean()
        gradient = 0.8 * (1 - dead) + 0.05 + 0.02 * rng.standard_normal() ** 2
        if step == spike:
            gradient *= 60
        elif step == nan:
            gradient = np.nan
        loss = np.nan if step == nan else 0.02 * rng.standard_normal()
        yield {
            "step": step,
            "R": rewards,
            "loss": loss,
            "grad_norm": gradient,
            "reward": rewards.mean(),
            "reward_std": std.mean(),
            "frac_reward_zero_std": dead,
            "entropy": max(0.05, 1.4 * (1 - 0.9 * progress) + 0.03 * rng.standard_normal()),
            "kl": 0.002 + 0.0002 * step + 0.001 * abs(rng.standard_normal()),
            "clip_ratio": 0.02 + 0.01 * rng.random(),
            "length": 400 + 0.3 * step + 5 * rng.standard_normal(),
            "step_time": 20.0,
        }
