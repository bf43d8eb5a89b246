"""Make synthetic training runs: columns of metrics that behave like the real thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

GROUPS = 64
SIZE = 8
BLOCK = 64  # steps drawn at once from one random stream, so that a longer run only appends


@dataclass
class SampleRun:
    """Hold one run: its columns, and everything that is said about it."""

    id: str
    name: str
    project: str = "math"
    state: str = "running"
    steps: int = 0
    seed: int = 0
    collapse_at: int | None = None
    dense: bool = False
    tags: tuple[str, ...] = ()
    abilities: tuple[str, ...] = ("focal", "avspo")
    spike_at: int | None = None
    nonfinite: dict[int, float] = field(default_factory=dict)
    custom: tuple[str, ...] = ()
    eval_every: int = 0
    seen_seconds_ago: float = 2.0
    verdict: str = "Learning; most groups carry a signal."
    incidents: list[dict[str, Any]] = field(default_factory=list)
    directives: list[dict[str, Any]] = field(default_factory=list)
    revision: int = 1
    _kept: tuple[int, dict[str, FloatArray]] | None = None

    def columns(self) -> dict[str, FloatArray]:
        """Give every metric over all steps so far; not-a-number marks what was not finite."""
        if not self.steps:
            return {}
        if self._kept and self._kept[0] == self.steps:
            return self._kept[1]
        blocks = [self._block(start) for start in range(0, self.steps, BLOCK)]
        joined = {name: np.concatenate([b[name] for b in blocks]) for name in blocks[0]}
        self._kept = (self.steps, {n: values[: self.steps] for n, values in joined.items()})
        return self._kept[1]

    def counts(self, step: int) -> npt.NDArray[np.int64]:
        """Give the number of correct rollouts of each group of a step, shape (GROUPS,)."""
        rng = np.random.default_rng([self.seed, step // BLOCK])
        return self._draw(rng, step - step % BLOCK)[step % BLOCK]

    def _draw(self, rng: np.random.Generator, start: int) -> npt.NDArray[np.int64]:
        steps = start + np.arange(BLOCK)[:, None]
        skill = -0.4 + 1.2 * (1 - np.exp(-steps / 150))
        ability = rng.normal(0, 1.3, (BLOCK, GROUPS)) + skill
        if self.collapse_at is not None:
            pull = np.clip((steps - self.collapse_at) / 120, 0, 1)
            ability = ability * (1 - pull) + np.sign(ability) * 7 * pull
        return rng.binomial(SIZE, 1 / (1 + np.exp(-ability)))

    def _block(self, start: int) -> dict[str, FloatArray]:
        rng = np.random.default_rng([self.seed, start // BLOCK])
        counts = self._draw(rng, start)
        steps = start + np.arange(BLOCK)
        success = counts.mean(1) / SIZE
        fail, passed = (counts == 0).mean(1), (counts == SIZE).mean(1)
        constant = np.full(BLOCK, 0.08) if self.dense else np.zeros(BLOCK)
        fail = fail * (0.1 if self.dense else 1)
        acr = np.minimum(1.0, fail + passed + constant)
        grad = (0.8 * (1 - acr) + 0.06) * rng.lognormal(0, 0.18, BLOCK)
        if self.spike_at is not None:
            grad = np.where(steps == self.spike_at, grad * 60, grad)
        for step, value in self.nonfinite.items():
            grad = np.where(steps == step, value, grad)
        pooled = np.convolve(acr, np.ones(9) / 9, "same") / np.convolve(
            np.ones(BLOCK), np.ones(9) / 9, "same"
        )
        half = 1.96 * np.sqrt(np.maximum(pooled * (1 - pooled), 1e-3) / (9 * GROUPS))
        columns: dict[str, FloatArray] = {
            "acr": acr,
            "acr_trained": acr,
            "acr_effective": acr * np.where(steps < (self._treated_from() or 10**9), 1.0, 0.45),
            "acr_all_fail": fail,
            "acr_all_pass": passed,
            "acr_constant": constant,
            "acr_pooled": pooled,
            "acr_pooled_low": np.maximum(0, pooled - half),
            "acr_pooled_high": np.minimum(1, pooled + half),
            "reward_mean": success + (0.02 * rng.standard_normal(BLOCK) if self.dense else 0),
            "reward_std": np.sqrt(success * (1 - success)),
            "reward_std_within": np.sqrt(success * (1 - success)) * (1 - acr),
            "success_rate": success,
            "tail_miss_risk": 0.2 + 0.35 * acr + 0.01 * rng.standard_normal(BLOCK),
            "groups": np.full(BLOCK, float(GROUPS)),
            "rollouts": np.full(BLOCK, float(GROUPS * SIZE)),
            "grad_norm": grad,
            "loss": 0.02 * rng.standard_normal(BLOCK),
            "entropy": np.maximum(
                0.05, 1.4 * np.exp(-steps / 900) + 0.03 * rng.standard_normal(BLOCK)
            ),
            "kl": 0.002 + 2e-4 * np.sqrt(steps) + 4e-4 * np.abs(rng.standard_normal(BLOCK)),
            "response_length_mean": 400 + 40 * np.log1p(steps) + 9 * rng.standard_normal(BLOCK),
            "truncated_fraction": np.clip(0.03 + 0.01 * rng.standard_normal(BLOCK), 0, 1),
            "learning_rate": 1e-6 * np.minimum(1, (steps + 1) / 50),
            "step_seconds": 21 + 1.5 * np.abs(rng.standard_normal(BLOCK)),
        }
        for k in (1, 2, 4, 8):
            misses = np.array([comb(SIZE - c, k) / comb(SIZE, k) for c in range(SIZE + 1)])
            columns[f"pass_at_{k}"] = 1 - misses[counts].mean(1)
        for name in self.custom:
            columns[name] = np.sin(steps / 17) + 0.1 * rng.standard_normal(BLOCK)
        return columns

    def _treated_from(self) -> int | None:
        steps = [d["effective_step"] for d in self.directives if d["effective_step"] is not None]
        return min(steps, default=None)


def incident(number: int, **fields: Any) -> dict[str, Any]:
    """Give an incident as the service describes it; ``fields`` replace the defaults."""
    return {
        "id": f"incident-{number}",
        "run_id": "",
        "run_name": "",
        "kind": "advantage_collapse",
        "severity": "critical",
        "state": "open",
        "onset_step": 0,
        "last_step": 0,
        "closed_step": None,
        "opened_at": "2026-08-20T10:00:00Z",
        "closed_at": None,
        "acknowledged_by": None,
        "acknowledged_at": None,
        "title": "Most groups teach nothing",
        "text": "",
        "causes": [],
        "evidence": {},
        "advice": "",
        "reference": "",
        "changes": [],
        **fields,
    }


def directive(version: int, **fields: Any) -> dict[str, Any]:
    """Give a directive as the service describes it; ``fields`` replace the defaults."""
    return {
        "version": version,
        "mode": "on",
        "focal": {"gamma": 0.5},
        "avspo": None,
        "expires_at_step": None,
        "reason": "",
        "issued_by": "dashboard",
        "issued_at": "2026-08-20T10:05:00Z",
        "state": "pending",
        "acknowledged_step": None,
        "effective_step": None,
        "refusal": None,
        "acks": [],
        **fields,
    }
