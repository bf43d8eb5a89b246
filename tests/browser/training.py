"""A training job as the service sees it: steps of groups, a directive taken up, a finish."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.serving import Api

GROUPS, SIZE = 32, 8


@dataclass
class Training:
    """Report steps of one run; from ``collapse_at`` on prompts drift to all or none solved."""

    api: Api
    name: str = "watched"
    project: str = "math"
    collapse_at: int = 10**9
    nonfinite_at: int = -1
    abilities: tuple[str, ...] = ("focal", "avspo")
    applied: int | None = None
    step: int = 0
    run_id: str = ""
    rng: Any = field(default_factory=lambda: np.random.default_rng(7))

    def __post_init__(self) -> None:
        """Introduce the run."""
        self.run_id = self.api.new_run(
            project=self.project,
            name=self.name,
            success_threshold=1.0,
            abilities=list(self.abilities),
            attempt_key="1",
            source="0",
            resume="allow",
        )

    def advance(self, steps: int) -> Any:
        """Report more steps; give the service's answer to the last batch."""
        records = [self._record(self.step + i) for i in range(steps)]
        self.step += steps
        return self.api.send(self.run_id, *records)

    def acknowledge(self, version: int) -> None:
        """Take up a directive and tell the service so."""
        self.applied = version
        news = {"version": version, "step": self.step, "status": "acknowledged", "source": "0"}
        self.api.send(self.run_id, acknowledgements=[news])

    def finish(self) -> None:
        """End the run well."""
        body = {"attempt": 1, "state": "finished"}
        assert self.api.post(f"/runs/{self.run_id}/finish", body).status == 200

    def _record(self, step: int) -> dict[str, Any]:
        pull = min(1.0, max(0.0, (step - self.collapse_at) / 20))
        ability = self.rng.normal(0.3, 1.0, GROUPS)
        ability = ability * (1 - pull) + np.sign(ability) * 9 * pull
        correct = self.rng.binomial(SIZE, 1 / (1 + np.exp(-ability)))
        mean = correct / SIZE
        columns = {
            "size": [SIZE] * GROUPS,
            "n_correct": correct.tolist(),
            "reward_mean": mean.tolist(),
            "reward_std": np.sqrt(mean * (1 - mean) * SIZE / (SIZE - 1)).tolist(),
            "reward_min": (correct == SIZE).astype(float).tolist(),
            "reward_max": (correct > 0).astype(float).tolist(),
            "prompt_id": [f"prompt-{i}" for i in range(GROUPS)],
        }
        grad: float | str = float(self.rng.lognormal(-1, 0.1))
        scalars = {"grad_norm": "NaN" if step == self.nonfinite_at else grad, "entropy": 1.0}
        record: dict[str, Any] = {"step": step, "groups": columns, "scalars": scalars}
        return record if self.applied is None else record | {"applied": self.applied}
