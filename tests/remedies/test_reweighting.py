"""The order in which remedies act, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rlvitals.remedies import Avspo, Focal, Remedies, reweight, virtual_count

BOTH = Remedies(Focal(1.0), Avspo(gain_all_pass=0.5))
# Three of four groups collapsed: ACR .75, K = ceil(4 sqrt .75) = 4.
REWARDS = np.array([[0] * 4, [0.5] * 4, [1] * 4, [1, 0, 0, 1]], float)


def grpo(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give group-relative advantages with ddof=1 and eps 1e-4."""
    std = rewards.std(axis=1, ddof=1, keepdims=True)
    return np.asarray((rewards - rewards.mean(axis=1, keepdims=True)) / (std + 1e-4))


def by_hand(reward: float, side: int, size: int = 4, count: int = 4) -> float:
    """Recompute a collapsed group's advantage from rewards joined with virtual ones."""
    virtual = [reward + side * 0.1 * j / count for j in range(1, count + 1)]
    joined = np.array([reward] * size + virtual)
    return float((reward - joined.mean()) / (joined.std(ddof=1) + 1e-4))


def test_each_group_gets_its_own_remedy() -> None:
    """All fail and all pass get virtual rewards, constant none, mixed its focal weight."""
    given = grpo(REWARDS)
    outcome = reweight(given, REWARDS, BOTH, success_threshold=1.0)
    np.testing.assert_allclose(outcome.advantages[0], by_hand(0.0, 1), rtol=1e-12)
    np.testing.assert_array_equal(outcome.advantages[1], given[1])
    np.testing.assert_allclose(outcome.advantages[2], 0.5 * by_hand(1.0, -1), rtol=1e-12)
    np.testing.assert_allclose(outcome.advantages[3], 0.5 * given[3], rtol=1e-12)
    assert (outcome.touched_focal, outcome.touched_avspo, outcome.virtual) == (1, 2, 4)
    assert (outcome.advantage_groups, outcome.advantage_zero) == (4, 1)


def test_beside_focal_the_solved_group_is_left_alone() -> None:
    """By default virtual rewards do not push a solved prompt that focal weighting would mute."""
    given = grpo(REWARDS)
    outcome = reweight(given, REWARDS, Remedies(Focal(1.0), Avspo()), success_threshold=1.0)
    np.testing.assert_array_equal(outcome.advantages[2], given[2])
    assert outcome.touched_avspo == 1
    assert outcome.advantage_zero == 2


def test_below_the_threshold_nothing_collapsed_is_touched() -> None:
    """ACR .75 is not above .75, and is above .74."""
    given = grpo(REWARDS)
    for threshold, touched in ((0.75, 0), (0.74, 2)):
        outcome = reweight(
            given, REWARDS, Remedies(avspo=Avspo()), success_threshold=1.0, threshold=threshold
        )
        assert outcome.touched_avspo == touched
    settled = Remedies(avspo=Avspo(threshold=0.8))
    assert reweight(given, REWARDS, settled, success_threshold=1.0).virtual == 0


def test_without_remedies_the_same_array_comes_back() -> None:
    """Nothing in force: the caller's own array, and the count of dead groups."""
    given = grpo(REWARDS)
    outcome = reweight(given, REWARDS, Remedies(), success_threshold=1.0)
    assert outcome.advantages is given
    assert (outcome.advantage_groups, outcome.advantage_zero) == (4, 3)
    assert outcome.mean_weight == 1.0


def test_unknown_success_is_never_pushed() -> None:
    """A group with one unknown verdict is not touched, since the direction is a guess."""
    given = grpo(REWARDS)
    verdicts = [[None] + [False] * 3 for _ in REWARDS]
    assert reweight(given, REWARDS, BOTH, correct=verdicts).advantages is given


def test_a_remedy_without_a_definition_of_success_is_refused() -> None:
    """It could touch no group ever, so it says so instead of doing nothing."""
    for remedies in (Remedies(Focal(1.0)), Remedies(avspo=Avspo())):
        with pytest.raises(ValueError, match=r"^success_threshold: "):
            reweight(grpo(REWARDS), REWARDS, remedies)
    assert reweight(grpo(REWARDS), REWARDS, Remedies()).advantage_zero == 3


def test_shaped_groups_are_not_collapsed() -> None:
    """All wrong with differing rewards has advantages of its own; virtual rewards stay away."""
    rewards = np.array([[0.1, 0.2, 0.0, 0.1], [0.0] * 4])
    given = grpo(rewards)
    outcome = reweight(
        given, rewards, Remedies(avspo=Avspo(threshold=0.4)), correct=np.zeros((2, 4))
    )
    np.testing.assert_array_equal(outcome.advantages[0], given[0])
    assert outcome.touched_avspo == 1


def test_centred_trainers_get_centred_advantages() -> None:
    """Without std division the advantage is the distance to the joined mean."""
    outcome = reweight(
        np.zeros((1, 4)),
        [[0] * 4],
        Remedies(avspo=Avspo()),
        success_threshold=1.0,
        std_division=False,
    )
    assert outcome.advantages[0, 0] == pytest.approx(-(0.025 + 0.05 + 0.075 + 0.1) / 8)


def test_groups_of_different_size_get_their_own_count() -> None:
    """K follows each group's size; the largest is reported; singletons are left alone."""
    rewards = [[0] * 8, [0] * 4, [0], [1, 0]]
    outcome = reweight(np.zeros(15), rewards, Remedies(avspo=Avspo()), success_threshold=1.0)
    eight, four = virtual_count(8, 2 / 3, 0.5), virtual_count(4, 2 / 3, 0.5)
    assert outcome.virtual == eight == 7
    assert outcome.advantages[0] == pytest.approx(by_hand(0.0, 1, 8, eight))
    assert outcome.advantages[8] == pytest.approx(by_hand(0.0, 1, 4, four))
    assert outcome.advantages[12:].tolist() == [0.0, 0.0, 0.0]
    assert outcome.advantage_groups == 3


def test_a_rollout_without_reward_keeps_its_advantage() -> None:
    """In a collapsed group only rollouts that have a reward are pushed."""
    outcome = reweight(
        np.zeros((1, 4)), [[0, 0, None, 0]], Remedies(avspo=Avspo()), success_threshold=1.0
    )
    assert outcome.advantages[0, 2] == 0.0
    assert (outcome.advantages[0, [0, 1, 3]] < 0).all()


def test_flat_interleaved_is_the_same_as_rows() -> None:
    """Rollouts in any order with ids get what they get in rows."""
    given, order = grpo(REWARDS), np.random.default_rng(1).permutation(16)
    rows = reweight(given, REWARDS, BOTH, success_threshold=1.0)
    flat = reweight(
        given.ravel()[order],
        REWARDS.ravel()[order],
        BOTH,
        group_ids=np.repeat(np.arange(4), 4)[order],
        success_threshold=1.0,
    )
    np.testing.assert_array_equal(flat.advantages, rows.advantages.ravel()[order])
    assert flat.virtual == rows.virtual


def test_tensors_keep_their_float_type() -> None:
    """float32 and float64 tensors come back as arrays of the same type and shape."""
    torch = pytest.importorskip("torch")
    for dtype, kind in ((torch.float32, np.float32), (torch.float64, np.float64)):
        outcome = reweight(
            torch.zeros((4, 4), dtype=dtype), torch.tensor(REWARDS), BOTH, success_threshold=1.0
        )
        assert outcome.advantages.dtype == kind
        assert outcome.advantages.shape == (4, 4)


@pytest.mark.parametrize("shape", [(4, 3), (15,), (2, 8), (4, 4, 1)])
def test_advantages_must_match_the_rewards(shape: tuple[int, ...]) -> None:
    """A shape that fits no layout of the rewards is refused by name."""
    with pytest.raises(ValueError, match=r"^advantages: "):
        reweight(np.zeros(shape), REWARDS, BOTH, success_threshold=1.0)


def test_nothing_at_all_is_no_error() -> None:
    """A batch without groups comes back as it is."""
    outcome = reweight(np.zeros(0), [], BOTH, success_threshold=1.0)
    assert outcome.advantages.shape == (0,)
    assert outcome.advantage_groups == 0


def test_a_broken_advantage_is_not_called_zero() -> None:
    """NaN advantages pass through untouched and do not count as zero."""
    given = np.array([[np.nan, 0.0], [0.0, 0.0]])
    outcome = reweight(given, [[1, 0], [1, 0]], Remedies(Focal(1.0)), success_threshold=1.0)
    assert outcome.advantage_zero == 1


groups = st.lists(
    st.lists(st.sampled_from([0.0, 1.0]), min_size=4, max_size=4), min_size=1, max_size=10
)


@given(groups, st.sampled_from([0.0, 0.5, 2.0]), st.floats(0, 1), st.booleans())
def test_untouched_groups_are_bit_identical(
    batch: list[list[float]], gamma: float, threshold: float, focal: bool
) -> None:
    """What changed is exactly the touched groups, and every advantage stays within sqrt(K/G)."""
    rewards = np.array(batch)
    advantages = grpo(rewards).astype(np.float32)
    remedies = Remedies(Focal(gamma) if focal else None, Avspo(threshold=threshold))
    outcome = reweight(advantages, rewards, remedies, success_threshold=1.0)
    dead = np.ptp(rewards, axis=1) == 0
    changed = (outcome.advantages != advantages).any(axis=1)
    assert (changed & dead).sum() == outcome.touched_avspo
    assert not (changed & ~dead).any() or (focal and gamma > 0)
    assert outcome.touched_focal == ((~dead).sum() if focal else 0)
    lifted = np.abs(outcome.advantages[dead])
    assert not lifted.size or lifted.max() <= np.sqrt(outcome.virtual / 4) + 1e-6
    assert outcome.advantage_zero == dead.sum() - outcome.touched_avspo
