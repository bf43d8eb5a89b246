"""Hold a run of 100,000 steps and look for single odd ones in its overview."""

from __future__ import annotations

import uuid

import msgspec
import numpy as np
import pytest
import urllib3
from tests.e2e.stack import Stack

import rlvitals

STEPS = 100_000
POINTS = 2_000
NAMES = ("grad_norm", "my/own")  # a column of its own, and a name the catalog does not know


class Sender:
    """Post a run's records in batches, faster than any trainer makes them."""

    def __init__(self, stack: Stack) -> None:
        self.pool = urllib3.PoolManager(headers={"Authorization": f"Bearer {stack.token}"})
        self.address = f"{stack.url}/api/v1/runs"
        key = {"key": uuid.uuid4().hex, "attempt_key": uuid.uuid4().hex}
        answer = self.pool.request("POST", self.address, json={"project": "e2e", **key})
        self.run_id = answer.json()["id"]

    def send(self, records: list[dict[str, object]]) -> None:
        """Post one batch; all of it must be taken."""
        body = msgspec.msgpack.encode({"records": records})
        kind = {**self.pool.headers, "Content-Type": "application/msgpack"}
        address = f"{self.address}/{self.run_id}/steps"
        answer = self.pool.request("POST", address, body=body, headers=kind).json()
        assert answer["accepted"] == len(records)


@pytest.mark.slow
def test_every_spike_of_a_long_run_survives_its_overview(stack: Stack, api: rlvitals.Api) -> None:
    """Each of 300 one-step spikes at random places is among 2,000 points, the same on each call."""
    rng = np.random.default_rng(0)
    spikes = np.arange(300) * 333 + rng.integers(0, 200, 300)  # never two in one bucket
    values = np.abs(rng.normal(1.0, 0.1, STEPS))
    values[spikes] = 100.0 + np.arange(len(spikes))
    sender = Sender(stack)
    for start in range(0, STEPS, 500):
        steps = range(start, start + 500)
        sender.send([{"step": s, "scalars": dict.fromkeys(NAMES, float(values[s]))} for s in steps])
    first, second = (
        api.history(sender.run_id, metrics=list(NAMES), max_points=POINTS) for _ in range(2)
    )
    for name in NAMES:
        series = first.metrics[name]
        assert len(series["step"]) <= POINTS
        shown = dict(zip(series["step"], series["value"], strict=True))
        assert all(shown.get(int(step)) == pytest.approx(values[step]) for step in spikes)
        assert series == second.metrics[name]
        assert (series["step"][0], series["step"][-1]) == (0, STEPS - 1)
    zoomed = api.history(sender.run_id, metrics=["grad_norm"], from_step=5_000, to_step=6_000)
    assert zoomed.metrics["grad_norm"]["step"] == list(range(5_000, 6_001))
