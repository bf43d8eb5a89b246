"""Send runs with a known pathology from the client to the service and read the judgement back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.judgement.synthetic import make

import rlvitals

SCALARS = {"grad_norm": "grad_norm", "loss": "loss", "entropy": "entropy", "kl": "kl"}


def replay(run: rlvitals.Run, **options: object) -> None:
    """Log a synthetic run as a trainer would."""
    for row in make(**options):
        run.log_groups(row["R"], step=row["step"])
        run.log({name: row[key] for name, key in SCALARS.items()}, step=row["step"])
    run.finish()


def incidents(api: rlvitals.Api, run: rlvitals.Run) -> dict[str, list[dict[str, object]]]:
    """Fetch a run's incidents by kind."""
    by_kind: dict[str, list[dict[str, object]]] = {}
    for incident in api.incidents(run.id):
        by_kind.setdefault(str(incident["kind"]), []).append(incident)
    return by_kind


@pytest.fixture
def mixed(new_run: Callable[..., rlvitals.Run]) -> rlvitals.Run:
    """Give a finished run that collapsed on both sides."""
    run = new_run(success_threshold=1.0)
    replay(run, mode="mixed")
    return run


def test_a_mixed_collapse_is_split_warned_of_and_nothing_else_is_alarmed(
    mixed: rlvitals.Run, api: rlvitals.Api
) -> None:
    """Both sides come out right; collapse (by step 202), spike and NaN are an incident each."""
    history = api.history(
        mixed.id, metrics=["acr_all_pass", "acr_all_fail"], from_step=225, max_points=1000
    )
    share = {name: np.mean(series["value"]) for name, series in history.metrics.items()}
    assert share["acr_all_pass"] == pytest.approx(0.475, abs=5e-4)
    assert share["acr_all_fail"] == pytest.approx(0.467, abs=5e-4)
    found = incidents(api, mixed)
    assert {kind: len(rows) for kind, rows in found.items()} == {
        "advantage_collapse": 1,
        "gradient_spike": 1,
        "gradient_nonfinite": 1,
    }
    collapse = found["advantage_collapse"][0]
    opened = [change["step"] for change in collapse["changes"] if change["action"] == "opened"]
    assert min(opened) <= 202
    assert {"all_pass", "all_fail"} <= {cause["name"] for cause in collapse["causes"]}
    assert found["gradient_spike"][0]["onset_step"] == 90
    assert found["gradient_nonfinite"][0]["onset_step"] == 120


def test_the_nan_gradient_keeps_its_class_in_the_history(
    mixed: rlvitals.Run, api: rlvitals.Api
) -> None:
    """Step 120 is reported as NaN, not as a gap or a number."""
    series = api.history(mixed.id, metrics=["grad_norm"], max_points=1000).metrics["grad_norm"]
    assert series["nonfinite"] == [[120, "NaN"]]
    assert series["value"][series["step"].index(120)] is None


@pytest.mark.parametrize(("mode", "side"), [("correct", "all_pass"), ("wrong", "all_fail")])
def test_a_one_sided_collapse_names_its_side(
    mode: str, side: str, new_run: Callable[..., rlvitals.Run], api: rlvitals.Api
) -> None:
    """The leading cause is the side that collapsed; a solved task is not called a failure."""
    run = new_run(success_threshold=1.0)
    replay(run, mode=mode, spike=-1, nan=-1)
    collapse = incidents(api, run)["advantage_collapse"]
    assert len(collapse) == 1
    assert collapse[0]["causes"][0]["name"] == side
    assert (collapse[0]["severity"] == "info") == (side == "all_pass")


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_run_opens_no_incident(
    seed: int, new_run: Callable[..., rlvitals.Run], api: rlvitals.Api
) -> None:
    """Flat reward with groups that carry signal is no reason to alarm anybody."""
    run = new_run(success_threshold=1.0)
    replay(run, start=10**6, spike=-1, nan=-1, seed=seed)
    assert incidents(api, run) == {}
