"""A run in a real service, to be read and steered."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.serving import Service

import rlvitals

STEPS = 30


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test to a home of its own."""
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RLVITALS_SILENT", "1")
    for name in ("URL", "TOKEN", "TOKEN_FILE", "MODE"):
        monkeypatch.delenv(f"RLVITALS_{name}", raising=False)
    return tmp_path / "home"


@pytest.fixture(scope="module")
def run(service: Service, tmp_path_factory: pytest.TempPathFactory) -> rlvitals.Run:
    """Train 30 steps: half the groups fail, the gradient is NaN once, and eval runs at the end."""
    run = rlvitals.init(
        project="reading",
        name="first run",
        url=service.url,
        token=service.tokens["ingest"],
        dir=tmp_path_factory.mktemp("run"),
        success_threshold=1.0,
        config={"lr": 1e-6},
        tags=["a"],
    )
    for step in range(STEPS):
        run.log_groups([[0.0] * 4, [1.0, 0.0, 0.0, 0.0]], step=step)
        run.log({"grad_norm": math.nan if step == 10 else 1.0, "kl": step / 10}, step=step)
    run.log({"reward_mean": 0.5}, step=STEPS - 1, phase="eval")
    run.finish()
    assert run.losses == {}
    return run


@pytest.fixture
def reader(service: Service) -> rlvitals.Api:
    """Read and steer as an administrator."""
    return rlvitals.Api(service.url, service.tokens["admin"])
