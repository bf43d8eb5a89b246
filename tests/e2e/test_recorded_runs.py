"""Replay recorded runs through the client and compare with the figures known for them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

import rlvitals
from rlvitals import metrics

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

needs_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason="the recorded runs are kept beside the project, not in it"
)


def read(name: str) -> list[dict[str, str]]:
    """Read a recorded run."""
    with (CASES / name).open() as file:
        return list(csv.DictReader(file))


def pooled(tallies: Iterable[dict[str, object]]) -> dict[str, float | None]:
    """Add stored Tallies up and derive their vitals."""
    return metrics.vitals(sum((metrics.Tally.from_dict(t) for t in tallies), metrics.Tally()))


def stored_tallies(api: rlvitals.Api, run_id: str, steps: Iterable[int]) -> list[dict[str, object]]:
    """Fetch the Tally of each step."""
    return [api.groups(run_id, step)["tally"] for step in steps]


@needs_cases
def test_group_means_of_a_g4_run_give_its_known_collapse_by_side(
    new_run: Callable[..., rlvitals.Run], api: rlvitals.Api
) -> None:
    """800 groups of four binary rewards: ACR .693, of which .546 all wrong and .146 all right."""
    rows = read("group_means_g4_s42.csv")
    steps = sorted({int(row["step"]) for row in rows})
    run = new_run(success_threshold=1.0)
    for step in steps:
        correct = [round(4 * float(r["mean_reward"])) for r in rows if int(r["step"]) == step]
        run.log_groups([[1.0] * c + [0.0] * (4 - c) for c in correct], step=step)
    run.finish()
    vitals = pooled(stored_tallies(api, run.id, steps))
    assert vitals["groups"] == len(rows) == 800
    assert vitals["acr"] == pytest.approx(0.693, abs=1e-3)
    assert vitals["acr_all_fail"] == pytest.approx(0.546, abs=1e-3)
    assert vitals["acr_all_pass"] == pytest.approx(0.146, abs=1e-3)
    kinds = [incident["kind"] for incident in api.incidents(run.id)]
    assert kinds.count("advantage_collapse") == 1


@needs_cases
def test_counts_of_degenerate_samples_give_the_known_collapse(
    new_run: Callable[..., rlvitals.Run], api: rlvitals.Api
) -> None:
    """Two groups of two a step: .806 dead; none alive in 132 steps, one in 60, two in 9."""
    rows = read("group_counts_rho070_s42.csv")
    run = new_run()
    for step, row in enumerate(rows):
        live = int(row["n_pos"])
        run.log_groups([[1.0, 0.0]] * live + [[0.5, 0.5]] * (2 - live), step=step)
    run.finish()
    history = api.history(run.id, metrics=["acr"], max_points=1000)
    acr = np.array(history.metrics["acr"]["value"], float)
    assert acr.mean() == pytest.approx(0.806, abs=1e-3)
    assert [(acr == level).sum() for level in (1.0, 0.5, 0.0)] == [132, 60, 9]
