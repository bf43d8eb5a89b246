"""Switch remedies of a running job over REST and follow them into the trainer and back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rlvitals

NewRun = Callable[..., rlvitals.Run]

# Two groups fail, one passes, one is mixed: ACR .75.
REWARDS = np.array([[0] * 4, [0] * 4, [1] * 4, [1, 0, 0, 0]], np.float64)
MIXED = 3


def plain_advantages(rewards: np.ndarray) -> np.ndarray:
    """Standardise within groups, as GRPO does."""
    centred = rewards - rewards.mean(1, keepdims=True)
    return centred / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)


class Job:
    """A trainer that makes one generation when told to."""

    def __init__(self, run: rlvitals.Run) -> None:
        self.run = run
        self.step = 0
        self.given = plain_advantages(REWARDS)

    def generate(self) -> np.ndarray:
        """Make one generation; give the advantages to train with."""
        self.run.log_groups(REWARDS, step=self.step)
        used: np.ndarray = self.run.reweight(self.given, REWARDS, step=self.step)
        self.step += 1
        return used

    def hears_of(self, version: int) -> None:
        """Wait until the client knows of a directive."""
        until(lambda: self.run.directive is not None and self.run.directive.version >= version)


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait for a condition; give what met it."""
    deadline = time.monotonic() + seconds
    while not (met := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)
    return met


@pytest.fixture
def job(new_run: NewRun) -> Job:
    """Give a job that the service knows."""
    run = new_run(success_threshold=1.0)
    assert run.wait_registered(30)
    return Job(run)


def test_a_directive_is_in_force_from_the_next_generation_until_it_is_withdrawn(
    job: Job, api: rlvitals.Api
) -> None:
    """Pending, acknowledged at the very next step, effective with ACR lowered; then off again."""
    assert [job.generate() is job.given for _ in range(3)] == [True] * 3
    asked = api.set_directive(job.run.id, {"mode": "on", "focal": {"gamma": 0.5}, "avspo": {}})
    assert asked["state"] == "pending"
    job.hears_of(asked["version"])
    switched_on = job.step
    used = job.generate()

    directive = until(lambda: in_state(api, job, "effective"))
    assert directive["acknowledged_step"] == directive["effective_step"] == switched_on
    assert used[MIXED] == pytest.approx(job.given[MIXED] * (1 - 1 / 4) ** 0.5)
    assert (used[:2] < 0).all()  # AVSPO: all-fail groups are pushed away from what they did
    assert not used[2].any()  # with focal weighting on, AVSPO leaves all-pass groups alone

    withdrawn = api.withdraw_directive(job.run.id)
    job.hears_of(withdrawn["version"])
    assert job.generate() is job.given
    assert until(lambda: in_state(api, job, "withdrawn"))["acknowledged_step"] == job.step - 1

    job.run.finish()
    series = api.history(job.run.id, metrics=["acr", "acr_effective"]).metrics
    assert series["acr"]["value"] == [0.75] * 5
    assert series["acr_effective"]["value"] == [0.75] * 3 + [0.25] + [0.75]


def in_state(api: rlvitals.Api, job: Job, state: str) -> dict[str, Any] | None:
    """Give the newest directive once it is in a state."""
    newest: dict[str, Any] = api.directives(job.run.id)[0]
    return newest if newest["state"] == state else None


def test_a_directive_ends_by_itself_at_its_step(job: Job, api: rlvitals.Api) -> None:
    """It applies up to the step before expires_at_step and is then shown as expired."""
    wish = {"mode": "on", "focal": {"gamma": 1.0}, "expires_at_step": 2}
    job.hears_of(api.set_directive(job.run.id, wish)["version"])
    assert [job.generate() is job.given for _ in range(4)] == [False, False, True, True]
    until(lambda: in_state(api, job, "expired"))


def test_a_trainer_without_success_refuses_and_says_why(new_run: NewRun, api: rlvitals.Api) -> None:
    """Nothing is changed and the reason reaches whoever asked."""
    run = new_run()
    assert run.wait_registered(30)
    job = Job(run)
    job.hears_of(api.set_directive(run.id, {"mode": "on", "focal": {"gamma": 1.0}})["version"])
    assert job.generate() is job.given
    refused = until(lambda: in_state(api, job, "refused"))
    assert "success_threshold" in refused["refusal"]


def test_of_two_people_who_press_at_once_one_is_told(job: Job, api: rlvitals.Api) -> None:
    """The second change against the same version is refused as a conflict, and changes nothing."""
    wish = {"mode": "on", "focal": {"gamma": 0.5}, "expected_version": 0}
    first = api.set_directive(job.run.id, wish)
    with pytest.raises(rlvitals.ApiError) as conflict:
        api.set_directive(job.run.id, wish | {"focal": {"gamma": 2.0}})
    assert conflict.value.status == 409
    assert api.directive(job.run.id)["version"] == first["version"]


def test_evaluation_is_never_reweighted(job: Job, api: rlvitals.Api) -> None:
    """With a directive on, advantages of an evaluation come back untouched."""
    job.hears_of(api.set_directive(job.run.id, {"mode": "on", "focal": {"gamma": 1.0}})["version"])
    assert job.run.reweight(job.given, REWARDS, step=0, phase="eval") is job.given
