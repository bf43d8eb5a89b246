"""One plain sentence says how a run is doing, and never more than is known."""

from __future__ import annotations

import math

from tests.judgement.observed import flat, groups, watch

from rlvitals.judgement import Judge, Observation
from rlvitals.metrics.tally import Tally


def after(tally: Tally, steps: int = 20, **scalars: float) -> str:
    """Give the verdict after so many equal steps."""
    judge = Judge()
    watch(judge, [flat(step, tally, **scalars) for step in range(steps)])
    return judge.verdict()


def test_both_sides_of_a_collapse_and_the_rest_are_told() -> None:
    """Of 100 groups a step 47 are solved, 47 fail and 6 teach."""
    tally = groups(solved=47, fail=47, mixed=6)
    assert after(tally) == "47 % of groups are solved and 47 % out of reach: 6 % of rollouts teach."


def test_a_healthy_run_is_called_healthy_once_enough_was_seen() -> None:
    """82 of 100 groups carry signal; before 20 steps that is no judgement yet."""
    tally = groups(solved=9, fail=9, mixed=82)
    assert after(tally) == "Healthy: 82 % of groups carry signal."
    assert after(tally, steps=5) == "Too early to judge: 82 % of groups carry signal so far."


def test_a_run_near_collapse_is_not_called_healthy() -> None:
    """At 48 of 100 dead groups no incident is open, yet the word healthy is not used."""
    assert after(groups(solved=24, fail=24, mixed=52)) == "Only 52 % of groups carry signal."


def test_a_run_without_groups_has_no_verdict_on_them() -> None:
    """Scalars alone say nothing about groups, and neither does an empty tally."""
    assert Judge().verdict() == "No group data yet."
    assert after(Tally(), loss=0.0) == "No group data yet."


def test_groups_after_dynamic_sampling_alone_are_not_measurable() -> None:
    """When only the groups kept are sent, no collapse rate is made up."""
    judge = Judge()
    kept = groups(mixed=40)
    watch(judge, [Observation(step, None, kept) for step in range(30)])
    assert judge.pooled() is None
    assert "cannot be measured" in judge.verdict()


def test_broken_gradients_come_first() -> None:
    """While gradient norms are NaN that is the one thing to know."""
    verdict = after(groups(fail=64), grad_norm=math.nan)
    assert verdict == "The gradient norm has not been finite for 20 steps."


def test_groups_of_unequal_size_are_not_called_rollouts() -> None:
    """With two group sizes a share of groups is no share of rollouts."""
    tally = groups(8, fail=45, mixed=5) + groups(4, fail=45, mixed=5)
    assert after(tally) == "90 % of groups are out of reach: 10 % of groups teach."


def test_what_makes_the_sides_meaningless_is_told_instead_of_them() -> None:
    """A verifier that never accepts, and cut rollouts, outrank a split by side."""
    assert after(groups(fail=8)) == (
        "No rollout scores better than another, suspect the verifier or the answer format: "
        "0 % of groups teach."
    )
    cut = after(groups(fail=60, mixed=4), truncated_fraction=0.9)
    assert cut == "Most rollouts are cut off at the length limit: 6 % of groups teach."
