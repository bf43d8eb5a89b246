"""Send what real trainers send when things go wrong; nothing may be lost, invented or refused."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import rlvitals

NewRun = Callable[..., rlvitals.Run]

CASES: dict[str, tuple[Any, dict[str, float | None]]] = {
    # name: (rewards, what the step's vitals must be)
    "missing": ([[1, None, 0, 1]], {"reward_mean": 2 / 3, "acr": 0.0, "groups": 1}),
    "all missing": ([[None, None]], {"acr": None, "reward_mean": None, "groups": 0}),
    "boolean": ([[True, False], [True, True]], {"acr": 0.5, "acr_all_pass": 0.5}),
    "integer": (torch.tensor([[0, 0], [1, 0]]), {"acr": 0.5, "acr_all_fail": 0.5}),
    "bfloat16 is alive": (
        torch.tensor([[1, 1, 1, 1.0078125]], dtype=torch.bfloat16),
        {"acr": 0.0, "reward_std_within": 0.00390625},
    ),
    "equal in float32": (np.full((1, 7), 0.2, np.float32), {"acr": 1.0, "acr_constant": 1.0}),
    "ragged": ([[1, 0, 0], [1, 1]], {"acr": 0.5, "groups": 2, "success_rate": 0.6}),
    "group of one": ([[1.0], [0.0]], {"acr": None, "groups": 0, "singletons": 2}),
    "sizes 8, 7, 1 and 0": (
        [[1, 0] * 4, [0] * 7, [1], []],
        {"acr": 0.5, "acr_all_fail": 0.5, "groups": 2, "singletons": 1},
    ),
    "partial credit": (
        [[0] * 8, [1] * 8, [0.5] * 8, [1, 0] * 4],
        {"acr": 0.75, "acr_all_fail": 0.25, "acr_all_pass": 0.25, "acr_constant": 0.25},
    ),
    "infinite reward": ([[math.inf, 1.0, 0.0]], {"acr": 0.0, "reward_mean": 0.5}),
}


@pytest.mark.parametrize("name", CASES)
def test_odd_rewards_reach_the_history_as_they_should(
    name: str, new_run: NewRun, api: rlvitals.Api
) -> None:
    """Vitals of the stored step equal the values worked out by hand; unknown is null."""
    rewards, expected = CASES[name]
    run = new_run(success_threshold=1.0)
    run.log_groups(rewards, step=0)
    run.finish()
    metrics = api.history(run.id, metrics=list(expected)).metrics
    for key, value in expected.items():
        stored = metrics[key]["value"]
        assert stored == ([] if value is None else [pytest.approx(value)]) or (
            value is None and stored == [None]
        ), key


def test_nonfinite_scalars_keep_their_class_through_api_and_exports(
    new_run: NewRun, api: rlvitals.Api
) -> None:
    """NaN, +Inf and -Inf stay what they are in known and unknown metrics, JSON, CSV and Parquet."""
    values = [1.0, math.nan, math.inf, -math.inf, 2.0]
    run = new_run()
    for step, value in enumerate(values):
        run.log({"grad_norm": value, "my/own": value}, step=step)
    run.finish()
    history = api.history(run.id, metrics=["grad_norm", "my/own"])
    for name in ("grad_norm", "my/own"):
        series = history.metrics[name]
        assert series["value"] == [1.0, None, None, None, 2.0]
        assert series["nonfinite"] == [[1, "NaN"], [2, "Infinity"], [3, "-Infinity"]]
    parquet = pd.read_parquet(io.BytesIO(api.export(run.id, format="parquet")))
    text = pd.read_csv(io.BytesIO(api.export(run.id, format="csv")), keep_default_na=False)
    for name in ("grad_norm", "my/own"):
        assert np.array_equal(parquet[name].to_numpy(), values, equal_nan=True)
        assert np.array_equal(text[name].astype(float), values, equal_nan=True)


def test_a_json_export_is_whole(new_run: NewRun, api: rlvitals.Api) -> None:
    """Three thousand steps come out as three thousand points, not as a chart's two thousand."""
    run = new_run()
    for step in range(3_000):
        run.log({"loss": float(step)}, step=step)
    run.finish()
    exported = json.loads(api.export(run.id, format="json"))
    assert exported["metrics"]["loss"]["step"] == list(range(3_000))


def test_a_run_of_nothing_but_nan_has_a_chart_and_one_incident(
    new_run: NewRun, api: rlvitals.Api
) -> None:
    """Fifty NaN gradients in a row are one incident that counts fifty."""
    run = new_run()
    for step in range(50):
        run.log({"grad_norm": math.nan, "loss": 0.0}, step=step)
    run.finish()
    found = api.incidents(run.id)
    assert [incident["kind"] for incident in found] == ["gradient_nonfinite"]
    assert found[0]["severity"] == "critical"
    assert found[0]["evidence"]["count"] == 50
