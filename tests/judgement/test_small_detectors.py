"""Shaping, singletons, silence, and what another group size would give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.judgement.observed import flat, groups, opened, watch

from rlvitals.judgement import Judge, stale_change
from rlvitals.judgement.group_size import collapse_at_size
from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally

SHAPED = [-0.1, -0.3, 0.0, 0.0, -0.2, 0.0, 0.0, -0.1]


def of_outcomes(correct: list[list[int]], rewards: list[list[float]]) -> Tally:
    """Count groups whose success is given beside the reward."""
    return Tally.from_groups(Groups.from_rewards(rewards, correct=correct))


def test_gradient_from_shaping_only_is_told_where_the_collapse_rate_is_zero() -> None:
    """All rollouts wrong, rewards apart by length: reward-ACR 0, and yet an alert."""
    tally = of_outcomes([[0] * 8] * 4, [SHAPED] * 4)
    judge = Judge()
    changes = watch(judge, [flat(s, tally) for s in range(20)])
    assert opened(changes) == [("shaping_only_gradient", 19)]
    assert changes[0].severity == "critical"
    assert judge.pooled() is not None
    assert judge.pooled()[0] == 0.0
    assert "shaping" in judge.verdict()


def test_the_worst_recorded_shaping_case_is_found() -> None:
    """78 of 108 groups all wrong with differing rewards: .722 of groups, a warning at least."""
    row = of_outcomes([[0] * 8] * 2, [SHAPED] * 2)
    live = groups(mixed=2)
    parts = [live if step % 18 in {0, 3, 7, 11, 15} else row for step in range(54)]
    changes = watch(Judge(), [flat(step, tally) for step, tally in enumerate(parts)])
    assert [kind for kind, _ in opened(changes)] == ["shaping_only_gradient"]
    assert changes[0].evidence["passed_share"] == 0.0


def test_solved_groups_with_shaping_are_information() -> None:
    """Where the groups are solved, shaping on top of success is not alarming."""
    tally = of_outcomes([[1] * 8] * 4, [[1 + x for x in SHAPED]] * 4)
    changes = watch(Judge(), [flat(s, tally) for s in range(20)])
    assert [(c.kind, c.severity) for c in changes] == [("shaping_only_gradient", "info")]


def test_singletons_are_told_and_leave_the_collapse_undefined() -> None:
    """Ten groups of one: a warning on the group size, no collapse rate."""
    tally = Tally.from_groups(Groups.from_rewards([[1.0]] * 5 + [[0.0]] * 5))
    judge = Judge()
    changes = watch(judge, [flat(0, tally)])
    assert opened(changes) == [("group_size_one", 0)]
    assert judge.pooled() is None


def test_a_few_partial_groups_are_no_alert() -> None:
    """Sizes 8, 7, 1 and 0 at every step: one singleton in three groups."""
    rewards = [[0.0, 1.0] * 4, [0.0, 1.0] * 3 + [1.0], [1.0], []]
    tally = Tally.from_groups(Groups.from_rewards(rewards))
    assert watch(Judge(), [flat(s, tally) for s in range(40)]) == []


def test_the_singleton_alert_ends_when_groups_are_whole() -> None:
    """Fixed grouping closes it."""
    single = Tally.from_groups(Groups.from_rewards([[1.0]] * 8))
    rows = [flat(0, single), *(flat(s, groups(mixed=8)) for s in range(1, 30))]
    assert [change.action for change in watch(Judge(), rows)] == ["opened", "closed"]


def test_a_silent_run_is_stale_once_and_heard_once() -> None:
    """Open past the limit, closed on return, and nothing while the state stays."""
    opened_change = stale_change(1000.0, 1301.0, 300.0, False, last_step=42)
    assert opened_change is not None
    assert (opened_change.kind, opened_change.action) == ("stale", "opened")
    assert opened_change.step == 42
    assert "5 min" in opened_change.title
    closed = stale_change(2000.0, 2001.0, 300.0, True)
    assert closed is not None
    assert closed.action == "closed"
    assert stale_change(1000.0, 1300.0, 300.0, False) is None
    assert stale_change(1000.0, 1301.0, 300.0, True) is None
    assert stale_change(1000.0, 900.0, 300.0, False) is None


def test_a_smaller_group_size_is_predicted_exactly() -> None:
    """Counts [0,0,3,8,1,8,7,0] + none at 8 rollouts: known shares at 2 and 4 rollouts."""
    row = [0] * 9
    for correct in [0, 0, 3, 8, 1, 8, 7, 0]:
        row[correct] += 1
    assert collapse_at_size({8: row}, 2) == pytest.approx(0.513393 + 0.357143, abs=1e-6)
    assert collapse_at_size({8: row}, 4) == pytest.approx(0.446429 + 0.3125, abs=1e-6)
    assert collapse_at_size({8: row}, 8) == pytest.approx((3 + 2) / 8)


def test_a_larger_group_size_is_predicted_for_smooth_difficulty() -> None:
    """Beta(.4, .6) prompts at 8 rollouts predict .3046 at 16 within .02."""
    rng = np.random.default_rng(5)
    correct = rng.binomial(8, rng.beta(0.4, 0.6, 20_000))
    counts = {8: np.bincount(correct, minlength=9).tolist()}
    assert collapse_at_size(counts, 8) == pytest.approx(0.287958528 + 0.127531008, abs=0.01)
    assert collapse_at_size(counts, 16) == pytest.approx(0.2198625805 + 0.0847757711, abs=0.02)


def test_a_single_difficulty_is_predicted_by_the_binomial() -> None:
    """Where all prompts have p = .5, groups of 16 agree 2 in 65,536 times."""
    row = [math.comb(8, c) for c in range(9)]
    assert collapse_at_size({8: row}, 16) == pytest.approx(2**-15, rel=1e-6)


def test_without_judged_groups_there_is_no_prediction() -> None:
    """No counts, no number."""
    assert collapse_at_size({}, 16) is None
    assert collapse_at_size({8: [0] * 9}, 16) is None
