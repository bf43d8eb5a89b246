"""Train with TRL for real and read what the service made of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlvitals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.trl,
    # What TRL and its libraries deprecate among themselves is theirs.
    pytest.mark.filterwarnings("ignore"),
]
pytest.importorskip("trl")
torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "trl_grpo.py"


def load_example() -> Any:
    """Load the example by its path."""
    spec = importlib.util.spec_from_file_location("trl_grpo", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(task: str, run: rlvitals.Run, folder: Path) -> list[np.ndarray]:
    """Train 200 steps with the hook; give the rewards of each generation as TRL made them."""
    import rlvitals.trainers.trl

    torch.set_num_threads(1)  # so tiny a model only waits for a second thread
    trainer = load_example().build_trainer(task, 200, 0, folder)
    rewards: list[np.ndarray] = []
    inner = trainer._calculate_rewards

    def remember(*args: Any, **kwargs: Any) -> Any:
        made = inner(*args, **kwargs)
        rewards.append(made.detach().numpy().reshape(-1, 8).copy())  # groups of 8
        return made

    trainer._calculate_rewards = remember
    rlvitals.trainers.trl.attach(trainer, run)
    trainer.train()
    run.finish()
    return rewards


def collapses(api: rlvitals.Api, run: rlvitals.Run) -> list[dict[str, Any]]:
    """Fetch a run's collapse incidents."""
    return [i for i in api.incidents(run.id) if i["kind"] == "advantage_collapse"]


def test_the_addition_run_opens_exactly_one_collapse_incident(
    new_run: Callable[..., rlvitals.Run], api: rlvitals.Api, tmp_path: Path
) -> None:
    """Its stored ACR equals a recomputation from TRL's own rewards; one incident tells of it."""
    run = new_run(success_threshold=1.0)
    rewards = train("add", run, tmp_path)
    stored = api.history(run.id, metrics=["acr", "grad_norm", "acr_effective"], max_points=1000)
    recomputed = [(made.max(1) == made.min(1)).mean() for made in rewards]
    assert stored.metrics["acr"]["value"] == pytest.approx(recomputed)
    assert stored.metrics["acr_effective"]["value"] == pytest.approx(recomputed)
    assert len(stored.metrics["grad_norm"]["value"]) == len(rewards) == 200
    assert len(collapses(api, run)) == 1


def test_the_copy_runs_late_collapse_is_called_solved(
    new_run: Callable[..., rlvitals.Run], api: rlvitals.Api, tmp_path: Path
) -> None:
    """All rollouts are right in the end: news, not a failure, and the advice says so."""
    run = new_run(success_threshold=1.0)
    train("copy", run, tmp_path)
    (collapse,) = collapses(api, run)
    assert collapse["severity"] == "info"
    assert collapse["causes"][0]["name"] == "all_pass"
    assert "solved" in collapse["title"].lower()
