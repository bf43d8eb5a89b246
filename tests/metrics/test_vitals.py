"""What one Tally says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlvitals.metrics import Groups, Tally, vitals
from rlvitals.metrics.vitals import pass_at_k_sizes

# k = [0, 0, 3, 8, 1, 8, 7, 0] correct of N = 8.
GOLDEN = Tally.from_counts({8: [3, 1, 0, 1, 0, 0, 0, 1, 2]})


def test_golden_counts() -> None:
    """ACR .625 (.375 wrong, .25 right), tail-miss .263412, success 27 of 64."""
    derived = vitals(GOLDEN)
    assert derived["acr"] == derived["acr_outcome"] == 0.625
    assert derived["acr_all_fail"] == 0.375
    assert derived["acr_all_pass"] == 0.25
    assert derived["acr_constant"] == 0.0
    assert derived["shaping_only"] == 0.0
    assert derived["success_rate"] == derived["reward_mean"] == derived["pass_at_1"] == 27 / 64
    assert derived["pass_at_8"] == 0.625
    assert derived["tail_miss_risk"] == pytest.approx(0.263412, abs=5e-7)
    assert derived["acr_effective"] is None


def test_pass_at_k_of_a_recorded_evaluation() -> None:
    """248 problems with 10 rollouts each; the unbiased values, not 1 - (1 - c/n)^k."""
    recorded = [0, 26, 13, 9, 7, 12, 11, 14, 25, 40, 91]
    derived = vitals(Tally.from_counts({10: recorded}))
    assert [derived[f"pass_at_{k}"] for k in (1, 2, 8, 10)] == pytest.approx(
        [0.726210, 0.834498, 0.977867, 1.0], abs=5e-7
    )


def test_a_recorded_run_splits_its_collapse() -> None:
    """800 groups of 4: ACR .693, of which .546 all wrong and .146 all right."""
    derived = vitals(Tally.from_counts({4: [437, 95, 89, 62, 117]}))
    assert derived["acr"] == pytest.approx(0.6925)
    assert derived["acr_all_fail"] == pytest.approx(0.546, abs=5e-4)
    assert derived["acr_all_pass"] == pytest.approx(0.146, abs=5e-4)


def test_group_sizes_share_the_k_all_of_them_have() -> None:
    """With groups of 8 and 7, k goes 1, 2, 4, 7; each group counts once in every mean."""
    derived = vitals(Tally.from_counts({8: [0, 1, *[0] * 7], 7: [1, *[0] * 7]}))
    assert [key for key in derived if key.startswith("pass")] == [
        f"pass_at_{k}" for k in (1, 2, 4, 7)
    ]
    assert derived["pass_at_4"] == pytest.approx(0.25)
    assert pass_at_k_sizes(8) == (1, 2, 4, 8)
    assert pass_at_k_sizes(2) == (1, 2)


def test_histograms_without_groups_do_not_limit_k() -> None:
    """A group size that was counted 0 times has no say in which k are given."""
    assert "pass_at_8" in vitals(GOLDEN + Tally(counts={3: (0, 0, 0, 0)}))


def test_an_empty_tally_says_nothing() -> None:
    """Everything but the counts is None: neither 0 nor 1 nor NaN."""
    derived = vitals(Tally())
    assert {key for key, value in derived.items() if value is not None} == {
        "groups",
        "rollouts",
        "singletons",
    }


def test_effective_collapse_comes_from_seen_advantages() -> None:
    """3 of 12 groups with nothing but zero advantages are .25."""
    seen = replace(GOLDEN, advantage_groups=12, advantage_zero=3)
    assert vitals(seen)["acr_effective"] == 0.25


def test_reward_spread_within_and_between() -> None:
    """[0, 2] and [10, 12]: std within is sqrt 2 in both, over all four it is sqrt(104 / 3)."""
    derived = vitals(Tally.from_groups(Groups.from_rewards([[0, 2], [10, 12]])))
    assert derived["reward_std_within"] == pytest.approx(2**0.5)
    assert derived["reward_std"] == pytest.approx((104 / 3) ** 0.5)
    assert vitals(Tally.from_groups(Groups.from_rewards([[1.0]])))["reward_std"] is None


def test_rare_share_can_be_chosen() -> None:
    """Rho = .2 takes .8^3 from a group with 3 correct of 8."""
    one = Tally.from_counts({8: [0, 0, 0, 1, 0, 0, 0, 0, 0]})
    assert vitals(one, rho=0.2)["tail_miss_risk"] == pytest.approx(0.512)
