"""Advantage collapse: what opens, grades, explains and closes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.judgement.observed import flat, groups, opened, watch

from rlvitals.judgement import Change, Judge, Observation
from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally


def names(change: Change) -> list[str]:
    """List the causes of a change in their order."""
    return [cause.name for cause in change.causes]


def of_rewards(rewards: object, **layout: object) -> Tally:
    """Count groups given by their rewards."""
    return Tally.from_groups(Groups.from_rewards(rewards, **layout))


def test_a_verifier_that_accepts_nothing_is_one_critical_incident_from_the_start() -> None:
    """8 groups of 8 zeros for 20 steps: critical, the verifier named first, no NaN anywhere."""
    tally = of_rewards(np.zeros((8, 8)), success_threshold=1.0)
    judge = Judge()
    changes = watch(judge, [flat(s, tally, loss=0.0, grad_norm=0.0) for s in range(20)])
    assert [(c.kind, c.action, c.severity) for c in changes] == [
        ("advantage_collapse", "opened", "critical")
    ]
    assert changes[0].onset_step == 0
    assert names(changes[0]) == ["verifier", "all_fail"]
    assert "verifier" in changes[0].title
    numbers = [value for value in changes[0].evidence.values() if isinstance(value, (int, float))]
    assert all(math.isfinite(value) for value in numbers)
    assert changes[0].evidence["acr"] == 1.0


def test_one_reward_for_everything_suspects_the_verifier_without_a_success_definition() -> None:
    """Zeros without declared success are constant, and the same reward everywhere is told."""
    tally = of_rewards(np.zeros((8, 8)))
    change = watch(Judge(), [flat(step, tally) for step in range(20)])[0]
    assert names(change) == ["verifier", "constant"]
    assert "the same reward, 0" in change.text


def test_a_run_that_once_succeeded_is_not_blamed_on_the_verifier() -> None:
    """One live group at the start clears the verifier; then the prompts are out of reach."""
    first = flat(0, groups(mixed=1, fail=7))
    change = watch(Judge(), [first, *(flat(s, groups(fail=8)) for s in range(1, 25))])[0]
    assert names(change) == ["all_fail"]


def test_constant_groups_of_different_level_count_as_collapsed() -> None:
    """[2]x4 and [-8]x4 have a large batch std and yet every advantage is zero."""
    tally = of_rewards([[2.0] * 4, [-8.0] * 4] * 4)
    change = watch(Judge(), [flat(s, tally, reward_std=5.345) for s in range(20)])[0]
    assert change.evidence["acr"] == 1.0
    assert names(change) == ["constant"]
    assert "not declared" in change.causes[0].text


def test_a_loss_of_zero_means_nothing() -> None:
    """Loss 0.0 with gradient .087 and differing rewards opens no incident."""
    rows = [flat(s, groups(mixed=8), loss=0.0, grad_norm=0.087) for s in range(60)]
    assert watch(Judge(), rows) == []


def test_a_gradient_above_zero_does_not_end_a_collapse() -> None:
    """A KL term moves dead groups too: all groups equal, gradient .02, and it stays open."""
    judge = Judge()
    rows = [flat(s, groups(fail=8), grad_norm=0.02, kl=0.04) for s in range(200)]
    assert [change.action for change in watch(judge, rows)] == ["opened"]
    assert judge.open_incidents()[0].severity == "critical"


def test_truncation_outranks_the_collapse_it_causes() -> None:
    """When every completion is cut, the length limit leads the same incident."""
    tally = of_rewards(np.zeros((8, 8)), success_threshold=1.0)
    changes = watch(Judge(), [flat(s, tally, truncated_fraction=1.0) for s in range(20)])
    assert len(changes) == 1
    assert names(changes[0]) == ["truncation", "all_fail"]
    assert changes[0].causes[0].share == 1.0
    assert "max_completion_length" in changes[0].advice


def test_truncation_is_no_cause_of_solved_groups() -> None:
    """Long answers that all succeed are solved, however many were cut."""
    rows = [flat(s, groups(solved=8), truncated_fraction=0.9) for s in range(20)]
    change = watch(Judge(), rows)[0]
    assert names(change) == ["all_pass"]
    assert change.severity == "info"


def test_small_groups_are_blamed_for_agreeing_by_chance() -> None:
    """200 groups of 2 at p = .18: about .70 dead, expected .04 at 16, so raise the group size."""
    rng = np.random.default_rng(7)
    rewards = (rng.random((200, 2)) < 0.18).astype(float)
    parts = [of_rewards(part, success_threshold=1.0) for part in np.split(rewards, 20)]
    change = watch(Judge(), [flat(step, tally) for step, tally in enumerate(parts)])[0]
    assert names(change)[0] == "group_size"
    assert change.evidence["acr"] == pytest.approx(0.705, abs=0.07)
    assert change.evidence["acr_by_chance"] == pytest.approx(0.705, abs=0.05)
    assert change.evidence["acr_at_larger_group_size"] < 0.15
    assert "num_generations" in change.advice


def test_groups_of_settled_prompts_are_not_blamed_on_their_size() -> None:
    """Where prompts are all or nothing, larger groups would agree too."""
    rows = [flat(s, groups(solved=30, fail=30, mixed=4)) for s in range(20)]
    change = watch(Judge(), rows)[0]
    assert "group_size" not in names(change)
    assert change.evidence["acr_at_larger_group_size"] > 0.8


def test_the_groups_outrule_the_trainers_own_flag() -> None:
    """Groups [1]x4 and [0]x4 with a reported share of 0: ACR is 1 and the contradiction is told."""
    tally = of_rewards([[1.0] * 4, [0.0] * 4] * 4, success_threshold=1.0)
    rows = [flat(s, tally, frac_reward_zero_std=0.0) for s in range(20)]
    change = watch(Judge(), rows)[0]
    assert change.evidence["acr"] == 1.0
    assert change.evidence["reported_frac_reward_zero_std"] == 0.0
    assert "frac_reward_zero_std" in change.text


def test_groups_dropped_by_dynamic_sampling_count_as_dead() -> None:
    """128 generated of which 40 were kept: ACR .6875 when the number dropped is sent."""
    tally = groups(mixed=40) + Tally(filtered=88)
    judge = Judge()
    change = watch(judge, [flat(step, tally) for step in range(20)])[0]
    pooled = judge.pooled()
    assert pooled is not None
    assert pooled[0] == 0.6875
    assert names(change) == ["filtered"]


def test_a_partial_credit_group_is_neither_solved_nor_failed() -> None:
    """0x8, 1x8 and .5x8 beside a mixed group: a quarter each."""
    tally = of_rewards([[0.0] * 8, [1.0] * 8, [0.5] * 8, [0.0, 1.0] * 4] * 2, success_threshold=1.0)
    change = watch(Judge(), [flat(step, tally) for step in range(20)])[0]
    assert {cause.name: cause.share for cause in change.causes} == {
        "all_fail": 0.25,
        "all_pass": 0.25,
        "constant": 0.25,
    }


def test_steps_without_any_reward_are_no_zero_and_no_one() -> None:
    """A step with no rewards leaves the pooled share unknown."""
    judge = Judge()
    assert watch(judge, [flat(s, Tally(dropped=4, errored=8)) for s in range(30)]) == []
    assert judge.pooled() is None


def test_nothing_opens_before_20_steps_and_64_groups() -> None:
    """1,000 dead groups in 19 steps are too few steps, 60 in 60 steps too few groups."""
    assert watch(Judge(), [flat(s, groups(fail=1000)) for s in range(19)]) == []
    assert watch(Judge(), [flat(s, groups(fail=1)) for s in range(63)]) == []
    assert len(watch(Judge(), [flat(s, groups(fail=1)) for s in range(64)])) == 1


def test_an_attempt_that_begins_late_has_a_warm_up_of_its_own() -> None:
    """An attempt resumed at step 1000 is judged from step 1019 on."""
    rows = [flat(1000 + s, groups(fail=64)) for s in range(20)]
    assert opened(watch(Judge(), rows)) == [("advantage_collapse", 1019)]


def test_collapse_recovery_collapse_is_two_incidents() -> None:
    """The second collapse is not silent."""
    kinds = [groups(fail=16)] * 40 + [groups(mixed=16)] * 60 + [groups(fail=16)] * 40
    changes = watch(Judge(), [flat(step, tally) for step, tally in enumerate(kinds)])
    actions = [c.action for c in changes if c.action in {"opened", "closed"}]
    assert actions == ["opened", "closed", "opened"]
    assert [c.onset_step for c in changes if c.action == "opened"] == [0, 100]


def test_a_share_that_wavers_around_the_threshold_does_not_flap() -> None:
    """Single-group rows at an ACR of .55 for 3,000 rows give one incident and few changes."""
    rng = np.random.default_rng(3)
    rows = [
        flat(s, groups(fail=int(d), mixed=1 - int(d))) for s, d in enumerate(rng.random(3000) < 0.6)
    ]
    changes = watch(Judge(), rows)
    assert len(opened(changes)) <= 3
    assert len(changes) <= 9


def test_critical_is_left_late_and_a_change_of_side_is_news() -> None:
    """From all failed to all solved in one episode: critical, then information, one incident."""
    rows = [groups(fail=60, mixed=4)] * 40 + [groups(solved=60, mixed=4)] * 60
    changes = watch(Judge(), [flat(step, tally) for step, tally in enumerate(rows)])
    assert len(opened(changes)) == 1
    assert changes[0].severity == "critical"
    assert changes[-1].severity == "info"
    assert names(changes[-1])[0] == "all_pass"
    assert len(changes) <= 5


def test_a_run_without_signal_does_not_end_as_a_success() -> None:
    """ACR 1 throughout: finishing says so, within the incident that is open."""
    judge = Judge()
    watch(judge, [flat(s, groups(fail=8)) for s in range(50)])
    (change,) = judge.finish()
    assert (change.kind, change.action, change.severity) == (
        "advantage_collapse",
        "updated",
        "critical",
    )
    assert change.title == "Finished, no learning signal"


def test_a_short_run_without_signal_is_told_at_its_end() -> None:
    """Ten steps are too few to open an incident while running, not to sum the run up."""
    judge = Judge()
    assert watch(judge, [flat(s, groups(fail=2)) for s in range(10)]) == []
    (change,) = judge.finish()
    assert change.action == "opened"
    assert change.title == "Finished, no learning signal"


def test_a_run_that_solved_everything_ends_without_blame() -> None:
    """Only solved groups: nothing was left to learn."""
    judge = Judge()
    watch(judge, [flat(s, groups(solved=8)) for s in range(50)])
    (change,) = judge.finish()
    assert change.severity == "info"
    assert "nothing left to learn" in change.title


def test_a_step_seen_again_replaces_what_was_known_of_it() -> None:
    """Parts of a step arrive one after the other; each step counts once, as last told."""
    whole, parts = Judge(), Judge()
    for step in range(40):
        whole.observe(flat(step, groups(fail=6, mixed=2)))
        parts.observe(flat(step, groups(fail=6)))
        parts.observe(flat(step, groups(fail=6, mixed=2)))
    for step in (25, 38, 21):
        parts.observe(flat(step, groups(mixed=8)))
        parts.observe(flat(step, groups(fail=6, mixed=2)))
    assert parts.pooled() == whole.pooled()
    assert whole.pooled() is not None
    assert whole.pooled()[0] == 0.75


def test_a_step_long_gone_from_the_window_changes_nothing() -> None:
    """A late part of an old step is charted, not judged."""
    judge = Judge()
    watch(judge, [flat(s, groups(mixed=8)) for s in range(100)])
    before = judge.pooled()
    assert judge.observe(Observation(3, groups(fail=1000))) == []
    assert judge.pooled() == before
