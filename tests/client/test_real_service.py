"""Against the real service: hung, killed, restarted, resumed, and reached by many ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rlvitals_service")

from tests.e2e.stack import Stack

import rlvitals

pytestmark = pytest.mark.slow
GROUPS = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Run database and service as processes that may be hurt."""
    with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture
def start(stack: Stack) -> Iterator[Callable[..., rlvitals.Run]]:
    """Start runs that end with the test."""
    runs: list[rlvitals.Run] = []

    def begin(**options: Any) -> rlvitals.Run:
        given = {"project": "real", "success_threshold": 1.0, **options}
        runs.append(rlvitals.init(url=stack.url, token=stack.token, **given))
        return runs[-1]

    yield begin
    for run in runs:
        run.finish()


def train(run: rlvitals.Run, steps: range, pause: float = 0.0) -> float:
    """Log steps; give the longest time a call took, in seconds."""
    longest = 0.0
    for step in steps:
        began = time.perf_counter()
        run.log_groups(GROUPS, step=step)
        run.log({"loss": step}, step=step)
        longest = max(longest, time.perf_counter() - began)
        time.sleep(pause)
    return longest


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for something to come true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)
    return found


def assert_whole(stack: Stack, run_id: str | None, steps: int, **options: Any) -> None:
    """Check that each step is there once: its loss, and two groups of which one collapsed."""
    api = rlvitals.Api(stack.url, stack.token)
    history = api.history(str(run_id), ["loss", "acr", "groups"], **options)
    assert history.series("loss").value.tolist() == [float(step) for step in range(steps)]
    assert set(history.series("groups").value.tolist()) == {2.0}
    assert set(history.series("acr").value.tolist()) == {0.5}
    assert len(history.series("acr")) == steps


def test_a_hung_service_costs_training_nothing(stack: Stack, start: Any) -> None:
    """SIGSTOP for a while in mid-run: calls return, and afterwards every step is there once."""
    run = start()
    assert run.wait_registered(30)
    train(run, range(50), 0.005)
    stack.signal(signal.SIGSTOP)
    try:
        longest = train(run, range(50, 150), 0.005)
    finally:
        stack.signal(signal.SIGCONT)
    assert longest < 1.0  # a request would have to time out after ten seconds
    train(run, range(150, 200), 0.005)
    until(lambda: not run._outbox.store.pending)
    run.finish()
    assert run.losses == {}
    assert_whole(stack, run.id, 200)


def test_a_killed_service_gets_everything_once_it_is_back(stack: Stack, start: Any) -> None:
    """Kill -9 of the service in mid-run loses and doubles nothing."""
    run = start()
    assert run.wait_registered(30)
    train(run, range(100), 0.002)
    stack.kill()
    train(run, range(100, 200), 0.002)
    stack.start()
    until(lambda: not run._outbox.store.pending)
    run.finish()
    assert_whole(stack, run.id, 200)


def test_no_service_at_start_is_made_up_for(stack: Stack, start: Any) -> None:
    """A run that begins before the service does is there as a whole."""
    stack.kill()
    began = time.perf_counter()
    run = start()
    took = time.perf_counter() - began
    train(run, range(30))
    stack.start()
    assert run.wait_registered(60)
    run.finish()
    assert took < 1.0
    assert_whole(stack, run.id, 30)


TRAINER = """
import os, sys, time, rlvitals
run = rlvitals.init(project="real", id=sys.argv[1], success_threshold=1.0)
for step in range(int(sys.argv[2]), int(sys.argv[3])):
    run.log_groups([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], step=step)
    run.log({"loss": step}, step=step)
    print(step, flush=True)
    time.sleep(0.005)
if "hang" in sys.argv:
    time.sleep(60)
"""


def trainer(stack: Stack, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start a trainer of its own process."""
    settings = {"RLVITALS_URL": stack.url, "RLVITALS_TOKEN": stack.token, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", TRAINER, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings, **environment},
    )


def test_a_killed_trainer_is_resumed_as_a_new_attempt(stack: Stack, start: Any, home: Path) -> None:
    """Kill -9 at step 400, resume at 100: the first attempt is whole, the view shows the second."""
    with trainer(stack, "resumed", 0, 400, "hang") as first:
        assert first.stdout is not None
        for line in first.stdout:
            if line.strip() == "399":
                break
        first.send_signal(signal.SIGKILL)
    with trainer(stack, "resumed", 100, 150) as second:
        assert second.wait(60) == 0
    api = rlvitals.Api(stack.url, stack.token)
    [run] = [one for one in api.runs("real") if one["attempt"] == 2]
    other = start()
    until(lambda: not list((home / "spool").glob("*.spool")) or _only(home, other))
    attempts = [len(api.history(run["id"], "loss", attempt=n).series("loss")) for n in (1, 2)]
    assert attempts[0] >= 300  # the last moments of a killed process may be missing
    assert attempts[1] == 50
    assert api.run(run["id"])["state"] == "finished"


def _only(home: Path, run: rlvitals.Run) -> bool:
    """Say whether the only spool left is that of a living run."""
    return list((home / "spool").glob("*.spool")) == [run.spool]


def test_many_ranks_are_one_run(stack: Stack) -> None:
    """Four ranks that start at once make one run and one attempt, with the groups of all."""
    launch = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "MASTER_PORT": "12345"}
    ranks = [trainer(stack, "ranked", 0, 20, RANK=str(rank), **launch) for rank in range(4)]
    for rank in ranks:
        with rank:
            assert rank.wait(60) == 0
    api = rlvitals.Api(stack.url, stack.token)
    found = [one for one in api.all_runs(project="real") if api.run(one["id"])["step"] == 19]
    [run] = [one for one in found if len(api.groups(one["id"], 3)["groups"]) == 8]
    assert run["attempt"] == 1
    assert {group["source"] for group in api.groups(run["id"], 3)["groups"]} == set("0123")
    assert set(api.history(run["id"], "groups").series("groups").value.tolist()) == {8.0}
