"""Hold a run of 100,000 steps and look for a single odd one in its overview."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rlvitals

STEPS = 100_000
POINTS = 2_000


@pytest.mark.slow
def test_every_spike_of_a_long_run_survives_its_overview(
    new_run: Callable[..., rlvitals.Run], api: rlvitals.Api
) -> None:
    """Of 300 one-step spikes at random places each is among 2,000 points, the same on each call."""
    rng = np.random.default_rng(0)
    spikes = np.arange(300) * 333 + rng.integers(0, 200, 300)  # never two in one bucket
    names = ["grad_norm", "my/own"]
    values = np.abs(rng.normal(1.0, 0.1, STEPS))
    values[spikes] = 100.0 + np.arange(len(spikes))
    run = new_run()
    for step, value in enumerate(values.tolist()):
        run.log(dict.fromkeys(names, value), step=step)
        if step % 1_000 == 999:  # faster than any trainer: let the bounded queue drain
            assert run.flush(timeout=60)
    run.finish()
    first, second = (api.history(run.id, metrics=names, max_points=POINTS) for _ in range(2))
    for name in names:
        series = first.metrics[name]
        assert len(series["step"]) <= POINTS
        shown = dict(zip(series["step"], series["value"], strict=True))
        assert all(shown.get(int(step)) == pytest.approx(values[step]) for step in spikes)
        assert series == second.metrics[name]
        assert (series["step"][0], series["step"][-1]) == (0, STEPS - 1)
    zoomed = api.history(run.id, metrics=["grad_norm"], from_step=5_000, to_step=6_000).metrics
    assert zoomed["grad_norm"]["step"] == list(range(5_000, 6_001))
