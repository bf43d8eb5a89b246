"""Advantages as each variant of GRPO takes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import advantage_bound
from rlvitals.metrics.advantages import advantages_beyond_bound
from rlvitals.remedies import group_advantages
from rlvitals.remedies.variants import Variant

# 1 of 4 correct, all wrong, all right, and all wrong with a shaped reward.
REWARDS = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0.1, 0, 0, 0.1]])
VARIANTS = ("grpo", "dapo", "cispo", "dr_grpo")


def test_grpo_by_hand() -> None:
    """1 of 4: mean .25, std .5 (ddof 1), so 1.5 and -.5; with ddof 0 the std is sqrt(3)/4."""
    found = group_advantages(REWARDS, eps=0.0)
    np.testing.assert_allclose(found.advantages[0], [1.5, -0.5, -0.5, -0.5])
    np.testing.assert_array_equal(found.advantages[1:3], np.zeros((2, 4)))
    population = group_advantages(REWARDS, eps=0.0, ddof=0).advantages[0, 0]
    assert population == pytest.approx(0.75 / (math.sqrt(3) / 4))
    padded = group_advantages(REWARDS).advantages[0, 0]
    assert padded == pytest.approx(0.75 / 0.5001)


def test_dr_grpo_only_centres() -> None:
    """1 of 4: .75 and -.25, without any std."""
    found = group_advantages(REWARDS, "dr_grpo")
    np.testing.assert_allclose(found.advantages[0], [0.75, -0.25, -0.25, -0.25])
    np.testing.assert_allclose(found.advantages[3], [0.05, -0.05, -0.05, 0.05])


def test_cispo_shares_the_advantage_of_grpo() -> None:
    """It clips the importance weight in the loss; the advantage is the same number."""
    grpo, cispo = group_advantages(REWARDS), group_advantages(REWARDS, "cispo")
    np.testing.assert_array_equal(grpo.advantages, cispo.advantages)
    assert grpo.kept.all()
    assert cispo.kept.all()


def test_dapo_drops_what_is_not_mixed() -> None:
    """Only 1 of 4 correct is mixed; without a success definition rewards that differ are kept."""
    found = group_advantages(REWARDS, "dapo", success_threshold=1)
    assert found.kept.tolist() == [True, False, False, False]
    np.testing.assert_array_equal(found.advantages[0], group_advantages(REWARDS).advantages[0])
    assert (found.advantages[1:] == 0).all()
    assert group_advantages(REWARDS, "dapo").kept.tolist() == [True, False, False, True]
    by_verdict = group_advantages(REWARDS, "dapo", correct=REWARDS > 0)
    assert by_verdict.kept.tolist() == [True, False, False, True]


def test_flat_rewards_in_any_order() -> None:
    """With ids, rollouts get what they get in rows; ragged rows come back flat."""
    order = np.random.default_rng(0).permutation(16)
    rows = group_advantages(REWARDS).advantages.ravel()
    ids = np.repeat(np.arange(4), 4)
    flat = group_advantages(REWARDS.ravel()[order], group_ids=ids[order])
    np.testing.assert_allclose(flat.advantages, rows[order], rtol=1e-12)
    ragged = group_advantages([[1, 0], [1], [], [0, 0, 3]], "dr_grpo")
    assert ragged.advantages.tolist() == [0.5, -0.5, 0.0, -1.0, -1.0, 2.0]


def test_a_rollout_without_reward_has_advantage_zero() -> None:
    """NaN takes no part in mean and std, and pushes nothing."""
    found = group_advantages([[1.0, math.nan, 0.0]], eps=0.0)
    np.testing.assert_allclose(found.advantages[0], [0.5**0.5, 0.0, -(0.5**0.5)])


def test_bad_arguments_are_named() -> None:
    """An unknown variant, and an eps or ddof that no trainer has."""
    with pytest.raises(ValueError, match=r"^variant: "):
        group_advantages(REWARDS, "ppo")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^eps: "):
        group_advantages(REWARDS, eps=-1.0)
    with pytest.raises(ValueError, match=r"^ddof: "):
        group_advantages(REWARDS, ddof=2)


wild = st.one_of(
    st.none(),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, 1e100, -1e100, 5e-324, 0.1, 0.0, 1.0]),
    st.floats(-10, 10),
)
wild_batches = st.lists(st.lists(wild, max_size=8), max_size=6)


@given(
    wild_batches, st.sampled_from(VARIANTS), st.sampled_from([0.0, 1e-4]), st.sampled_from([0, 1])
)
def test_advantages_are_finite_centred_and_bounded(
    batch: list[list[float | None]], variant: Variant, eps: float, ddof: int
) -> None:
    """For any rewards: finite, summing to 0 within a group, standardised ones within the bound."""
    found = group_advantages(batch, variant, success_threshold=1.0, eps=eps, ddof=ddof)
    flat = found.advantages.ravel()
    assert np.isfinite(flat).all()
    start = 0
    for rewards in batch:
        group = flat[start : start + len(rewards)]
        start += len(rewards)
        assert abs(group.sum()) <= 1e-9 * max(1.0, np.abs(group).sum())
        usable = sum(r is not None and abs(r) <= 1e100 for r in rewards)
        if variant != "dr_grpo" and usable > 1:
            assert advantages_beyond_bound(group, usable, ddof=ddof) == 0
            assert np.abs(group).max() <= 1.01 * advantage_bound(usable, ddof=ddof)
