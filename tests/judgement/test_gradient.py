"""Gradient norms: not finite, far above their past, or exactly zero where they should not be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.judgement.observed import flat, groups, opened, watch

from rlvitals.judgement import Change, Judge, Observation

NAN = math.nan


def norms(values: list[float], **scalars: float) -> list[Observation]:
    """Observe gradient norms at consecutive steps."""
    return [flat(step, grad_norm=value, **scalars) for step, value in enumerate(values)]


def quiet(count: int, level: float = 1.0, seed: int = 0) -> list[float]:
    """Draw ordinary gradient norms, a tenth apart from their level."""
    return (level * (1 + 0.1 * np.random.default_rng(seed).standard_normal(count))).tolist()


def brief(changes: list[Change]) -> list[tuple[str, str, int]]:
    """List action, severity and step."""
    return [(change.action, change.severity, change.step) for change in changes]


def test_nan_from_the_first_step_is_critical_at_the_third_whatever_the_loss() -> None:
    """Loss 0.0 beside NaN gradients for 20 steps does not mask them."""
    changes = watch(Judge(), norms([NAN] * 20, loss=0.0))
    assert brief(changes)[:2] == [("opened", "warning", 0), ("escalated", "critical", 2)]
    assert {change.kind for change in changes} == {"gradient_nonfinite"}


def test_fifty_nan_are_one_incident_with_their_count() -> None:
    """Counts are told at each doubling and at the end, not at every step."""
    judge = Judge()
    changes = watch(judge, norms([NAN] * 50))
    assert len(opened(changes)) == 1
    assert [change.evidence["count"] for change in changes] == [1, 3, 8, 16, 32]
    (last,) = judge.finish()
    assert last.evidence["count"] == 50
    assert judge.finish() == []


def test_nan_at_the_start_closes_itself_after_20_finite_steps() -> None:
    """20 NaN then finite: opened at 0, closed at 39, with the count on record before that."""
    judge = Judge()
    changes = watch(judge, norms([NAN] * 20 + [1.0] * 30))
    assert (changes[0].action, changes[0].step) == ("opened", 0)
    assert (changes[-1].action, changes[-1].step) == ("closed", 39)
    assert changes[-1].severity == "critical"
    assert changes[-2].evidence["count"] == 20
    assert judge.open_incidents() == ()


def test_nineteen_finite_steps_do_not_end_the_incident() -> None:
    """A NaN every 20 steps is one incident."""
    changes = watch(Judge(), norms(([NAN] + [1.0] * 19) * 6))
    assert len(opened(changes)) == 1
    assert all(change.action != "closed" for change in changes)


def test_what_else_is_wrong_in_the_same_step_is_one_incident() -> None:
    """Learning rate 0, gradient NaN, KL NaN and reward 0 together: four signs, one incident."""
    row = flat(5, grad_norm=NAN, kl=NAN, learning_rate=0.0, reward_mean=0.0, loss=0.1)
    changes = watch(Judge(), [row])
    assert len(changes) == 1
    assert changes[0].evidence["symptoms"] == (
        "grad_norm nan, kl nan, learning_rate 0, reward_mean 0"
    )


@pytest.mark.parametrize("value", [NAN, math.inf, -math.inf])
def test_every_class_of_nonfinite_opens_it(value: float) -> None:
    """NaN, +Inf and -Inf alike."""
    assert opened(watch(Judge(), norms([1.0, value]))) == [("gradient_nonfinite", 1)]


def test_a_loss_of_nan_stands_in_only_where_no_norm_is_sent() -> None:
    """With a finite gradient norm a NaN loss opens nothing; without one it does."""
    assert watch(Judge(), [flat(0, loss=NAN, grad_norm=1.0)]) == []
    assert opened(watch(Judge(), [flat(0, loss=NAN)])) == [("gradient_nonfinite", 0)]


def test_a_step_seen_again_is_counted_once() -> None:
    """Two parts of one NaN step are one step."""
    judge = Judge()
    for step in range(10):
        judge.observe(flat(step, grad_norm=NAN))
        judge.observe(flat(step, groups(mixed=2), grad_norm=NAN))
    assert judge.finish()[0].evidence["count"] == 10


def test_one_spike_among_ordinary_norms_is_one_incident_that_ends() -> None:
    """60 times the usual at step 90 is flagged there and over at 110."""
    values = quiet(200)
    values[90] *= 60
    changes = watch(Judge(), norms(values))
    assert brief(changes) == [("opened", "warning", 90), ("closed", "warning", 110)]
    assert changes[0].evidence["ratio"] == pytest.approx(60, rel=0.25)


def test_spikes_within_20_steps_are_one_episode() -> None:
    """Spikes at 60, 70 and 80 are one incident with count 3, closed at 100."""
    values = quiet(130)
    for step in (60, 70, 80):
        values[step] = 5.0
    changes = watch(Judge(), norms(values))
    assert opened(changes) == [("gradient_spike", 60)]
    assert changes[-1].step == 100
    assert changes[-1].evidence["count"] == 3


def test_a_spike_does_not_blind_the_detector_for_the_next_one() -> None:
    """Spikes, NaN and zeros never enter the baseline: each of three later spikes is found."""
    values = quiet(400)
    values[60] = NAN
    values[61:120:3] = [0.0] * len(values[61:120:3])
    for step in (150, 250, 350):
        values[step] = 50.0
    found = opened(watch(Judge(), norms(values)))
    assert [step for kind, step in found if kind == "gradient_spike"] == [150, 250, 350]


def test_zeros_of_dead_steps_do_not_make_live_steps_spikes() -> None:
    """Where 60 % of norms are exactly 0 the median of all is 0, and yet nothing is a spike."""
    rng = np.random.default_rng(1)
    live = 1.3 + 0.3 * rng.standard_normal(2000)
    values = np.where(rng.random(2000) < 0.6, 0.0, np.abs(live)).tolist()
    assert watch(Judge(), norms(values)) == []


def test_fewer_than_20_norms_are_no_baseline() -> None:
    """Nothing is a spike against 19 values; against 20 it is."""
    assert watch(Judge(), norms([*quiet(19), 100.0])) == []
    assert len(watch(Judge(), norms([*quiet(20), 100.0]))) == 1


def test_a_new_level_is_no_endless_spike() -> None:
    """A norm ten times higher for good is an episode of 20 steps, then the new baseline."""
    changes = watch(Judge(), norms(quiet(60) + quiet(100, level=10.0, seed=1)))
    assert opened(changes) == [("gradient_spike", 60)]
    assert (changes[-1].action, changes[-1].step) == ("closed", 79)
    assert "new level" in changes[-1].title


def test_signal_without_gradient_is_its_own_alert() -> None:
    """Mixed groups and a norm of exactly 0 for 20 steps; no collapse, no word of AVSPO."""
    changes = watch(Judge(), [flat(s, groups(mixed=8), grad_norm=0.0) for s in range(25)])
    assert opened(changes) == [("gradient_vanished", 19)]
    assert changes[0].onset_step == 0
    assert "AVSPO" not in changes[0].advice


def test_dead_groups_explain_a_zero_gradient() -> None:
    """Without any live group a zero norm is the collapse's own and opens nothing else."""
    changes = watch(Judge(), [flat(s, groups(fail=8), grad_norm=0.0) for s in range(60)])
    assert {change.kind for change in changes} == {"advantage_collapse"}


def test_the_first_gradient_ends_the_alert() -> None:
    """One norm above 0 closes it."""
    rows = [flat(s, groups(mixed=8), grad_norm=0.0) for s in range(30)]
    changes = watch(Judge(), [*rows, flat(30, groups(mixed=8), grad_norm=1e-9)])
    assert [(c.action, c.step) for c in changes] == [("opened", 19), ("closed", 30)]
