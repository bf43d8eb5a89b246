"""Traps met in real training runs, each as the smallest input that shows it."""

from __future__ import annotations

import numpy as np
import pytest

from rlvitals.metrics import Groups, Tally, advantage_collapse_rate, canonical, pass_at_k, vitals


def tally(rewards: object, **layout: object) -> Tally:
    """Sum up rewards."""
    return Tally.from_groups(Groups.from_rewards(rewards, **layout))


def test_all_wrong_for_twenty_steps() -> None:
    """8 groups of 8 zeros, 20 steps: ACR 1, all of it all-fail, and no undefined vital is NaN."""
    derived = vitals(sum([tally(np.zeros((8, 8)), success_threshold=1.0)] * 20, Tally()))
    assert derived["acr"] == derived["acr_all_fail"] == derived["acr_outcome"] == 1.0
    assert derived["groups"] == 160
    assert derived["reward_std_within"] == 0.0


def test_spread_between_groups_is_not_signal() -> None:
    """[2]x4 and [-8]x4: the batch std is 5.345, yet both groups are collapsed."""
    derived = vitals(tally([[2] * 4, [-8] * 4]))
    assert derived["acr"] == 1.0
    assert derived["reward_std"] == pytest.approx(5.345, abs=5e-4)
    assert derived["reward_std_within"] == 0.0


def test_shaping_hides_an_all_wrong_group() -> None:
    """All wrong but rewards differ: reward ACR 0, outcome ACR 1, gradient from shaping only."""
    derived = vitals(tally([[-0.1, -0.3, 0, 0, -0.2, 0, 0, -0.1]], correct=[[0] * 8]))
    assert derived["acr"] == 0.0
    assert derived["acr_outcome"] == 1.0
    assert derived["shaping_only"] == 1.0


def test_small_groups_collapse_by_chance() -> None:
    """Groups of 2 at p = .18 collapse with chance p^2 + (1-p)^2 = .7048; the counts show it."""
    p, groups = 0.18, 10_000
    held = [round(groups * share) for share in ((1 - p) ** 2, 2 * p * (1 - p), p**2)]
    derived = vitals(Tally.from_counts({2: held}))
    assert derived["acr"] == pytest.approx(p**2 + (1 - p) ** 2, abs=1e-9)
    assert derived["acr_all_fail"] == pytest.approx(0.6724)


def test_four_kinds_of_group() -> None:
    """Zeros, ones, halves and a mixed group: a quarter each, and halves are not a pass."""
    derived = vitals(tally([[0] * 8, [1] * 8, [0.5] * 8, [1, 0] * 4], success_threshold=1.0))
    assert [derived[f"acr_{side}"] for side in ("all_fail", "all_pass", "constant")] == [0.25] * 3
    assert derived["acr"] == 0.75


@pytest.mark.parametrize("nothing", [[], [[]], [[None, None]]])
def test_a_step_without_rewards_has_no_rate(nothing: object) -> None:
    """No rewards: the rate is undefined, neither 0 nor 1."""
    assert vitals(tally(nothing))["acr"] is None


def test_dynamic_sampling_hides_dead_groups() -> None:
    """128 generated, 40 live ones kept: ACR .6875 when the other 88 are reported."""
    kept = tally([[1, 0]] * 40, success_threshold=1.0)
    assert vitals(kept + Tally(filtered=88))["acr"] == 0.6875


def test_components_with_equal_totals_cancel() -> None:
    """Rewards (1, 0) and (0, 1) have one total, so the group is collapsed on it."""
    components = np.array([[[1, 0], [0, 1], [1, 0], [0, 1]]])
    assert advantage_collapse_rate(components.sum(axis=2)) == 1.0
    assert [advantage_collapse_rate(components[:, :, part]) for part in (0, 1)] == [0.0, 0.0]


@pytest.mark.parametrize(("value", "n"), [(0.2, 7), (0.1, 7), (0.35, 7), (1 / 3, 12)])
def test_equal_float32_rewards_are_collapsed(value: float, n: int) -> None:
    """Their float32 std is not 0, but they are equal."""
    rewards = np.full((1, n), value, np.float32)
    assert advantage_collapse_rate(rewards) == 1.0
    assert Groups.from_rewards(rewards).reward_std[0] == 0.0


def test_three_equal_rewards_have_no_negative_variance() -> None:
    """[.1, .1, .1]: std 0, collapsed, also after a merge of parts."""
    groups = Groups.from_rewards([[0.1, 0.1], [0.1]], group_ids=["a", "a"]).merged()
    assert groups.reward_std.tolist() == [0.0]
    assert advantage_collapse_rate([[0.1, 0.1, 0.1]]) == 1.0


def test_seven_equal_and_one_apart_are_live() -> None:
    """7 x .35 and 1 x -.25 is a live group with std .6 / sqrt 8."""
    groups = Groups.from_rewards([[0.35] * 7 + [-0.25]])
    assert Tally.from_groups(groups).collapsed == 0
    assert groups.reward_std[0] == pytest.approx(0.6 / 8**0.5)


def test_bfloat16_neighbours_are_live() -> None:
    """1, 1, 1, 1.0078125 in bfloat16: std .0039, not collapsed."""
    torch = pytest.importorskip("torch")
    rewards = torch.tensor([[1, 1, 1, 1.0078125]], dtype=torch.bfloat16)
    assert advantage_collapse_rate(rewards) == 0.0
    assert Groups.from_rewards(rewards).reward_std[0] == pytest.approx(0.0039, abs=5e-5)


def test_integer_and_boolean_rewards_are_taken() -> None:
    """Integers and booleans, in lists and arrays, mean what they say."""
    for rewards in ([[True, False]], [[1, 0]], np.array([[1, 0]]), np.array([[True, False]])):
        assert vitals(tally(rewards, success_threshold=1))["success_rate"] == 0.5


def test_one_generation_has_no_std() -> None:
    """A group of one: std undefined, not in the denominator, counted as a singleton."""
    derived = vitals(tally([[1.0], [0, 0], [1, 0]]))
    assert derived["acr"] == 0.5
    assert derived["singletons"] == 1
    assert Groups.from_rewards([[1.0]]).to_columns()["reward_std"] == [None]


def test_a_missing_reward_is_not_zero() -> None:
    """[1, null, 0, 1]: n = 3 and mean .667; the missing one is counted as errored."""
    groups = Groups.from_rewards([[1, None, 0, 1]], success_threshold=1)
    assert groups.size.tolist() == [3]
    assert groups.reward_mean[0] == pytest.approx(2 / 3)
    assert groups.errored == 1


def test_a_reward_function_that_does_not_apply() -> None:
    """A column half null: the mean is over the rollouts it applies to, None if to none."""
    assert vitals(tally([[None, 1.0, None, 0.5]]))["reward_mean"] == 0.75
    assert vitals(tally([[None, None]]))["reward_mean"] is None


def test_one_nan_does_not_poison_a_window() -> None:
    """.5, NaN, .7 have mean .6 with n = 2."""
    window = sum((tally([[value]]) for value in (0.5, float("nan"), 0.7)), Tally())
    assert vitals(window)["reward_mean"] == pytest.approx(0.6)
    assert (window.rollouts, window.errored) == (2, 1)


def test_no_average_of_averages() -> None:
    """Mean 1.0 of one rollout and 0.0 of nine make .1, not .5."""
    assert vitals(tally([[1.0]]) + tally([[0.0] * 9]))["reward_mean"] == pytest.approx(0.1)


def test_interleaved_rollouts_are_grouped_by_id() -> None:
    """P1, P2, P1, P2, …: by id both groups are equal inside; a reshape would mix them."""
    rewards, ids = [1, 0] * 4, ["P1", "P2"] * 4
    assert advantage_collapse_rate(rewards, group_ids=ids) == 1.0
    assert advantage_collapse_rate(np.reshape(rewards, (2, 4))) == 0.0


def test_an_id_for_each_rollout_makes_only_singletons() -> None:
    """8 ids with one rollout each: no rate, 8 groups of one."""
    summed = tally([1, 0] * 4, group_ids=range(8))
    assert summed.singletons == 8
    assert vitals(summed)["acr"] is None


def test_a_group_split_over_ranks() -> None:
    """Two of four from each rank, in either order, merge to the whole group."""
    ranks = [
        Groups.from_rewards([row], success_threshold=1, group_ids=["g"]) for row in ([1, 1], [0, 0])
    ]
    whole = tally([[1, 1, 0, 0]], success_threshold=1, group_ids=["g"])
    for parts in (ranks, ranks[::-1]):
        assert Tally.from_groups(Groups.concat(parts).merged()) == whole


def test_partial_groups() -> None:
    """Sizes 8, 7, 1, 0: ACR over two groups, one singleton, one dropped."""
    summed = tally([[0] * 8, [1, 0, 0, 0, 0, 0, 0], [1], []])
    assert (summed.groups, summed.singletons, summed.dropped) == (2, 1, 1)
    assert vitals(summed)["acr"] == 0.5


def test_the_same_prompt_twice_in_a_batch() -> None:
    """Two groups of four with one prompt id are two groups; pooled by prompt they are one of 8."""
    groups = Groups.from_rewards([[1] * 4, [0] * 4], prompt_ids=["p", "p"], success_threshold=1)
    assert vitals(Tally.from_groups(groups))["acr"] == 1.0
    by_prompt = Groups.from_rewards([[1] * 4, [0] * 4], group_ids=["p", "p"]).merged()
    assert by_prompt.size.tolist() == [8]


def test_wrong_is_minus_one() -> None:
    """With rewards in {-1, 1} an all-fail group is [-1]xG."""
    summed = tally([[-1] * 4, [1] * 4, [1, -1, 1, -1]], success_threshold=1.0)
    assert (summed.all_fail, summed.all_pass) == (1, 1)
    assert vitals(summed)["success_rate"] == 0.5


def test_a_format_bonus_on_top() -> None:
    """1.1, 1.0, .1, 0 with threshold 1: two correct although the largest reward is 1.1."""
    summed = tally([[1.1, 1.0, 0.1, 0]], success_threshold=1.0)
    assert summed.counts == {4: (0, 0, 1, 0, 0)}
    assert summed.shaping_only == 0


def test_best_of_four_with_one_correct() -> None:
    """N = 4, c = 1, k = 4 is 1.0 exactly; k > n is refused with the reason."""
    assert pass_at_k(4, 1, 4) == 1.0
    with pytest.raises(ValueError, match="k <= n"):
        pass_at_k(4, 1, 8)


def test_renamed_keys_are_one_series() -> None:
    """Old, new and prefixed names of the mean length are one key; an unknown one is kept."""
    names = ("completion_length", "completions/mean_length", "train/completion_length")
    assert set(map(canonical, names)) == {"response_length_mean"}
    assert canonical("my/own_metric") == "my/own_metric"
