"""Collapse rate and its interval."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import (
    Collapse,
    Groups,
    Share,
    Tally,
    advantage_collapse_rate,
    collapse_rate_by_prompt,
    vitals,
    wilson_interval,
)


def test_collapse_rate_counts_groups_with_equal_rewards() -> None:
    """Of three groups of two or more, one has equal rewards; the singleton has no say."""
    rate = advantage_collapse_rate([[0, 0, 0], [1, 0, 0], [0.2, 0.3], [1]])
    assert rate == pytest.approx(1 / 3)


def test_collapse_rate_without_groups_is_nan() -> None:
    """No group of two means no rate: neither 0 nor 1."""
    assert math.isnan(advantage_collapse_rate([]))
    assert math.isnan(advantage_collapse_rate([[1], [0]]))


def test_collapse_rate_has_a_tolerance() -> None:
    """The tolerance is on max - min, in reward units."""
    rewards = [[0.5, 0.5005]]
    assert advantage_collapse_rate(rewards) == 0.0
    assert advantage_collapse_rate(rewards, tolerance=1e-3) == 1.0
    assert advantage_collapse_rate([1, 1], group_ids=["a", "a"]) == 1.0


def test_wilson_golden() -> None:
    """40 of 100 lies in (.309401, .497997) at 95 %."""
    assert wilson_interval(40, 100) == pytest.approx((0.309401, 0.497997), abs=5e-7)


@pytest.mark.parametrize("n", [1, 3, 7, 100, 10**6])
def test_wilson_of_none_and_of_all_includes_the_share_exactly(n: int) -> None:
    """Rounding never leaves 0 of n below its own interval, nor n of n above it."""
    assert wilson_interval(0, n)[0] == 0.0
    assert wilson_interval(n, n)[1] == 1.0


def test_wilson_at_the_edges() -> None:
    """None of none says nothing; none or all of some stays within [0, 1] and has a width."""
    assert wilson_interval(0, 0) == (0.0, 1.0)
    low, high = wilson_interval(0, 10)
    assert low == 0.0
    assert 0.2 < high < 0.4
    assert wilson_interval(10, 10) == pytest.approx((1 - high, 1.0))
    for wrong in ((-1, 4), (5, 4), (0, -1)):
        with pytest.raises(ValueError, match=r"^k: "):
            wilson_interval(*wrong)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_wilson_holds_the_share(one: int, two: int) -> None:
    """The interval lies in [0, 1] and contains k / n."""
    k, n = min(one, two), max(one, two)
    low, high = wilson_interval(k, n)
    assert 0.0 <= low <= high <= 1.0
    if n:
        assert low - 1e-12 <= k / n <= high + 1e-12


def test_wilson_half_widths_are_those_of_the_table() -> None:
    """At ACR .4 over 100 steps: .094 for 1 group a step, .048 for 4, .017 for 32, .008 for 128."""
    for groups, half in ((1, 0.094), (4, 0.048), (32, 0.017), (128, 0.0085)):
        low, high = Share(40 * groups, 100 * groups).interval()
        assert (high - low) / 2 == pytest.approx(half, abs=6e-4)


@pytest.mark.parametrize("groups", [100, 400, 3200])
def test_wilson_covers_what_it_promises(groups: int) -> None:
    """Of 20,000 pooled samples 95 % hold the share .4, within .01 for its steps of whole groups."""
    drawn = np.random.default_rng(0).binomial(groups, 0.4, 20_000)
    ends = {k: wilson_interval(k, groups) for k in set(drawn.tolist())}
    held = np.mean([ends[k][0] <= 0.4 <= ends[k][1] for k in drawn.tolist()])
    assert held == pytest.approx(0.95, abs=0.01)


def test_a_tally_says_why_groups_collapsed() -> None:
    """Each cause by hand: failed, passed, constant, filtered; shaping hides one of them."""
    rewards = [[0, 0], [1, 1], [0.5, 0.5], [0, 1], [0.1, 0.2]]
    correct = [[0, 0], [1, 1], [0, 1], [0, 1], [0, 0]]
    tally = replace(Tally.from_groups(Groups.from_rewards(rewards, correct=correct)), filtered=3)
    shares = Collapse.from_tally(tally)
    assert shares.by_rewards == (6, 8)
    causes = (shares.all_fail, shares.all_pass, shares.constant, shares.filtered)
    assert causes == ((1, 8), (1, 8), (1, 8), (3, 8))
    assert shares.by_outcome == (3, 5)
    assert (shares.outcome_all_fail, shares.outcome_all_pass) == ((2, 5), (1, 5))
    assert shares.shaping_only == (1, 5)
    assert shares.effective == (0, 0)
    assert shares.by_rewards.rate == 0.75
    assert shares.by_rewards.interval() == pytest.approx(wilson_interval(6, 8))


def test_a_share_of_nothing_is_unknown() -> None:
    """Without groups there is no rate, and the interval leaves everything open."""
    empty = Collapse.from_tally(Tally())
    assert {share.rate for share in empty} == {None}
    assert {share.interval() for share in empty} == {(0.0, 1.0)}
    assert Share(1, 4).interval(0.5) != Share(1, 4).interval(0.9)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=4), max_size=12))
def test_causes_add_up(rewards: list[list[float]]) -> None:
    """The causes of a collapse, and the sides of the outcome, add up; vitals says the same."""
    tally = Tally.from_groups(Groups.from_rewards(rewards, success_threshold=1.0))
    shares = Collapse.from_tally(tally)
    causes = (shares.all_fail, shares.all_pass, shares.constant, shares.filtered)
    assert sum(cause.part for cause in causes) == shares.by_rewards.part
    sides = (shares.outcome_all_fail, shares.outcome_all_pass)
    assert sum(side.part for side in sides) == shares.by_outcome.part
    assert shares.by_rewards.rate == vitals(tally)["acr"]
    assert shares.by_outcome.rate == vitals(tally)["acr_outcome"]


def test_the_interval_by_prompt_knows_what_comes_back() -> None:
    """One epoch after another of the same prompts adds groups, but hardly any certainty."""
    one = [[0, 0], [1, 0], [0, 1], [1, 1], [1, 0]] * 8
    names = [str(i) for i in range(len(one))]
    epochs = Groups.concat([Groups.from_rewards(one, prompt_ids=names)] * 20)
    single = collapse_rate_by_prompt(Groups.from_rewards(one, prompt_ids=names))
    pooled = collapse_rate_by_prompt(epochs)
    assert pooled == single
    assert single.value == 0.4
    low, high = wilson_interval(16, 40)
    assert single.high - single.low == pytest.approx(high - low, rel=0.15)


def test_groups_without_a_prompt_stand_alone() -> None:
    """Without ids the interval is about Wilson's for as many groups; an empty id is no id."""
    rewards = [[0, 0], [1, 0], [1, 0]] * 100
    alone = collapse_rate_by_prompt(Groups.from_rewards(rewards))
    assert alone[1:] == pytest.approx(wilson_interval(100, 300), abs=0.01)
    empty = collapse_rate_by_prompt(Groups.from_rewards(rewards, prompt_ids=[""] * 300))
    assert empty == alone


def test_where_all_groups_agree_prompts_are_the_trials() -> None:
    """Nothing but collapse on 10 prompts, seen three times each, is 10 of 10, and not 30 of 30."""
    names = [str(i % 10) for i in range(30)]
    all_failed = Groups.from_rewards([[0, 0]] * 30, prompt_ids=names)
    assert collapse_rate_by_prompt(all_failed) == pytest.approx((1.0, *wilson_interval(10, 10)))
    none_failed = Groups.from_rewards([[0, 1]] * 30, prompt_ids=names)
    assert collapse_rate_by_prompt(none_failed) == pytest.approx((0.0, *wilson_interval(0, 10)))


def test_a_rate_by_prompt_needs_groups() -> None:
    """Groups of one, or none at all, leave nothing to estimate; tolerance is passed on."""
    with pytest.raises(ValueError, match=r"^groups: "):
        collapse_rate_by_prompt(Groups.from_rewards([[1], [0]]))
    near = Groups.from_rewards([[0.5, 0.5005], [0, 1]])
    assert collapse_rate_by_prompt(near).value == 0.0
    assert collapse_rate_by_prompt(near, tolerance=1e-3).value == 0.5
