"""A directive changes advantages as it says, once a generation, and says what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import rlvitals

NewRun = Callable[..., rlvitals.Run]

# c = 2 of 4, 1 of 4, 0 of 4
REWARDS = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
ADVANTAGES = REWARDS - REWARDS.mean(1, keepdims=True)
# weights (1 - c/n) ** 1 of the two mixed groups; the third has no advantage to weigh
FOCAL = ADVANTAGES * np.array([[0.5], [0.75], [1.0]])


@pytest.fixture
def directed(new_run: NewRun, recorder: Any) -> Callable[..., rlvitals.Run]:
    """Start a run and wait until it has heard a directive."""

    def start(directive: dict[str, Any], **settings: Any) -> rlvitals.Run:
        run = new_run(**{"success_threshold": 1.0, **settings})
        assert run.wait_registered(20)
        recorder.direct(**directive)
        recorder.wait(lambda: run.directive is not None)
        return run

    return start


def acknowledgements(recorder: Any) -> list[tuple[int, int, str]]:
    """List what the client said of directives."""
    return [(a.version, a.step, a.status) for a in recorder.acknowledgements]


def test_focal_weights_scale_mixed_groups(directed: Any, recorder: Any) -> None:
    """With gamma 1 a group with c of n correct is scaled by 1 - c/n; the record says so."""
    run = directed({"focal": {"gamma": 1.0}})
    weighed = run.reweight(ADVANTAGES, REWARDS, step=7)
    run.log_groups(REWARDS, step=7)
    run.finish()
    assert np.allclose(weighed, FOCAL)
    assert acknowledgements(recorder) == [(1, 7, "acknowledged")]
    [record] = recorder.merged.values()
    assert record.applied == 1
    assert (record.advantage_groups, record.advantage_zero) == (3, 1)
    assert record.groups.size == [4, 4, 4]
    assert record.scalars["touched_focal"] == 2.0


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_tensors_come_back_as_tensors_of_their_type(kind: torch.dtype, directed: Any) -> None:
    """Type, shape and device of the trainer's tensor are kept."""
    run = directed({"focal": {"gamma": 1.0}})
    given = torch.tensor(ADVANTAGES, dtype=kind)
    weighed = run.reweight(given, torch.tensor(REWARDS), step=0)
    assert weighed.dtype == kind
    assert torch.allclose(weighed, torch.tensor(FOCAL, dtype=kind))


def test_flat_advantages_come_back_flat_and_in_order(directed: Any) -> None:
    """Interleaved rollouts are weighed by their group's id."""
    run = directed({"focal": {"gamma": 1.0}})
    order = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    ids = [f"g{i // 4}" for i in order]
    weighed = run.reweight(
        ADVANTAGES.ravel()[order].tolist(), REWARDS.ravel()[order].tolist(), group_ids=ids, step=0
    )
    assert isinstance(weighed, list)
    assert np.allclose(weighed, FOCAL.ravel()[order])


def test_a_generation_has_one_decision(directed: Any, recorder: Any) -> None:
    """A directive that arrives between two calls for one generation waits for the next one."""
    run = directed({"mode": "off"})
    assert run.reweight(ADVANTAGES, REWARDS, step=3, generation=5) is ADVANTAGES
    recorder.direct(focal={"gamma": 1.0})
    recorder.wait(lambda: run.directive.version == 2)
    assert run.reweight(ADVANTAGES, REWARDS, step=3, generation=5) is ADVANTAGES
    assert np.allclose(run.reweight(ADVANTAGES, REWARDS, step=4, generation=6), FOCAL)
    run.finish()
    assert acknowledgements(recorder) == [(1, 3, "acknowledged"), (2, 4, "acknowledged")]


def test_a_withdrawn_directive_gives_the_same_object_again(directed: Any, recorder: Any) -> None:
    """After mode off the trainer's own advantages are untouched, and that is acknowledged."""
    run = directed({"focal": {"gamma": 1.0}})
    run.reweight(ADVANTAGES, REWARDS, step=0)
    recorder.direct(mode="off")
    recorder.wait(lambda: run.directive.version == 2)
    assert run.reweight(ADVANTAGES, REWARDS, step=1) is ADVANTAGES
    run.finish()
    assert acknowledgements(recorder) == [(1, 0, "acknowledged"), (2, 1, "acknowledged")]
    assert [r.applied for r in sorted(recorder.merged.values(), key=lambda r: r.step)] == [1, None]


def test_evaluation_is_never_touched(directed: Any) -> None:
    """Whatever is in force, eval advantages come back as they are."""
    run = directed({"focal": {"gamma": 1.0}})
    assert run.reweight(ADVANTAGES, REWARDS, step=0, phase="eval") is ADVANTAGES


def test_a_directive_expires_at_its_step(directed: Any, recorder: Any) -> None:
    """From expires_at_step on nothing is applied, and the service hears of it."""
    run = directed({"focal": {"gamma": 1.0}, "expires_at_step": 10})
    assert np.allclose(run.reweight(ADVANTAGES, REWARDS, step=9), FOCAL)
    assert run.reweight(ADVANTAGES, REWARDS, step=10) is ADVANTAGES
    assert run.reweight(ADVANTAGES, REWARDS, step=11) is ADVANTAGES
    run.finish()
    assert acknowledgements(recorder) == [(1, 9, "acknowledged"), (1, 10, "expired")]


@pytest.mark.parametrize(
    ("directive", "settings", "says"),
    [
        ({"focal": {"gamma": -1.0}}, {}, "gamma"),
        ({"focal": {"power": 1.0}}, {}, "power"),
        ({"focal": {"gamma": 1.0}}, {"abilities": ["avspo"]}, "focal"),
        ({"focal": {"gamma": 1.0}}, {"success_threshold": None}, "success"),
        ({"focal": {"gamma": 1.0}, "mode": "shadow"}, {}, "mode"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    directive: dict[str, Any], settings: dict[str, Any], says: str, directed: Any, recorder: Any
) -> None:
    """Advantages stay, and the refusal names what is wrong, once."""
    run = directed(directive, **settings)
    for step in range(3):
        assert run.reweight(ADVANTAGES, REWARDS, step=step) is ADVANTAGES
    run.finish()
    refusals = [a for a in recorder.acknowledgements if a.status == "refused"]
    assert len(refusals) == 1
    assert says in refusals[0].reason


def test_advantages_of_another_shape_are_left_alone(directed: Any, recorder: Any) -> None:
    """Trouble with the arrays is a refusal, not an exception."""
    run = directed({"focal": {"gamma": 1.0}})
    odd = np.ones((2, 3))
    assert run.reweight(odd, REWARDS, step=0) is odd
    run.finish()
    assert recorder.acknowledgements[-1].status == "refused"
    assert "advantages" in recorder.acknowledgements[-1].reason


def test_avspo_moves_its_threshold_by_what_it_saw(directed: Any, recorder: Any) -> None:
    """The threshold follows threshold + rate * (target - acr_effective)."""
    run = directed({"avspo": {"threshold": 0.9, "rate": 0.5, "target": 0.15}})
    rewards = np.zeros((4, 4))
    rewards[0, 0] = 1.0
    advantages = rewards - rewards.mean(1, keepdims=True)
    # ACR 0.75 is below 0.9: nothing is lifted, acr_effective 0.75, next 0.9 + 0.5 (0.15 - 0.75)
    assert run.reweight(advantages, rewards, step=0) is not None
    assert run._control._threshold == (1, pytest.approx(0.6))
    lifted = run.reweight(advantages, rewards, step=1)
    assert np.all(lifted[1:] < 0)
    assert np.array_equal(lifted[0], advantages[0])


def test_the_last_directive_holds_while_the_service_is_away(directed: Any, recorder: Any) -> None:
    """Remedies do not flicker with the network."""
    run = directed({"focal": {"gamma": 1.0}})
    recorder.answering.clear()
    assert np.allclose(run.reweight(ADVANTAGES, REWARDS, step=0), FOCAL)
    recorder.answering.set()


def test_an_older_version_changes_nothing(new_run: NewRun) -> None:
    """A late answer does not bring back what was replaced."""
    from rlvitals.records import Directive

    run = new_run()
    for version in (3, 2):
        run._control.receive(Directive(version=version, mode="off"))
    assert run.directive is not None
    assert run.directive.version == 3


def test_a_directive_that_arrives_in_mid_step_waits_for_the_next(
    new_run: NewRun, recorder: Any
) -> None:
    """The micro-batches of one step are weighed alike, also when the first directive comes."""
    run = new_run(success_threshold=1.0)
    assert run.wait_registered(20)
    assert run.reweight(ADVANTAGES, REWARDS, step=3) is ADVANTAGES
    recorder.direct(focal={"gamma": 1.0})
    recorder.wait(lambda: run.directive is not None)
    assert run.reweight(ADVANTAGES, REWARDS, step=3) is ADVANTAGES
    np.testing.assert_allclose(run.reweight(ADVANTAGES, REWARDS, step=4), FOCAL)
