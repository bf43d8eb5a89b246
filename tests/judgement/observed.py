"""Observations for the tests: of synthetic rows, of bare counts, of recorded runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlvitals.judgement import Change, Judge, Observation
from rlvitals.metrics.tally import Tally

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

needs_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason="the recorded runs are kept beside the project, not in it"
)

SCALARS = ("grad_norm", "loss", "entropy", "kl")


def binary(rewards: np.ndarray) -> Tally:
    """Count 0/1 rewards of shape (groups, rollouts)."""
    size = rewards.shape[1]
    correct = rewards.sum(1).astype(int)
    return Tally.from_counts({size: np.bincount(correct, minlength=size + 1).tolist()})


def of_row(row: Mapping[str, Any]) -> Observation:
    """Observe a synthetic row as the service would show it."""
    scalars = {name: float(row[name]) for name in SCALARS}
    return Observation(int(row["step"]), binary(row["R"]), None, scalars)


def groups(size: int = 8, **kinds: int) -> Tally:
    """Count groups of one size: ``fail`` and ``solved`` ones, and ``mixed`` ones, half correct."""
    row = [0] * (size + 1)
    row[0], row[size] = kinds.get("fail", 0), kinds.get("solved", 0)
    row[size // 2] += kinds.get("mixed", 0)
    return Tally.from_counts({size: row})


def flat(step: int, tally: Tally | None = None, **scalars: float) -> Observation:
    """Observe one step."""
    return Observation(step, tally, None, scalars)


def watch(judge: Judge, observations: Iterable[Observation]) -> list[Change]:
    """Show observations in order; give all changes."""
    return [change for one in observations for change in judge.observe(one)]


def opened(changes: Iterable[Change]) -> list[tuple[str, int]]:
    """List kind and step of what was opened."""
    return [(change.kind, change.step) for change in changes if change.action == "opened"]


def recorded(name: str) -> list[dict[str, Any]]:
    """Read the rows of a recorded run, whatever its format."""
    path = CASES / name
    if path.suffix == ".csv":
        with path.open() as file:
            return list(csv.DictReader(file))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [row for row in json.loads(path.read_text())["log_history"] if "reward" in row]


def trainer_log(name: str, groups_a_row: int, steps_a_row: int = 1) -> list[Observation]:
    """Observe a trainer's log, whose share of zero-std groups is all that is known of groups."""
    return [
        _of_log(row, groups_a_row, (number + 1) * steps_a_row)
        for number, row in enumerate(recorded(name))
    ]


def _of_log(row: Mapping[str, Any], groups_a_row: int, step: int) -> Observation:
    dead = row.get("frac_reward_zero_std", float(row["reward_std"]) == 0)
    tally = Tally(groups=groups_a_row, constant=round(float(dead) * groups_a_row))
    names = {
        "reward": "reward_mean",
        "grad_norm": "grad_norm",
        "loss": "loss",
        "completions/clipped_ratio": "truncated_fraction",
    }
    scalars = {ours: float(row[theirs]) for theirs, ours in names.items() if theirs in row}
    return Observation(int(row.get("step", step)), tally, None, scalars)
