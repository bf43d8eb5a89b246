"""Whatever rewards arrive, remedies break no advantage and change no reward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rlvitals.remedies import Avspo, Focal, Outcome, Remedies, group_advantages, reweight

# 0.30078125 and 0.302734375 are neighbours in bfloat16; 0.1 * 3 and 0.3 are equal up to rounding.
NASTY = [
    *(None, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e100, -1e100, 5e-324, -0.0),
    *(0.0, 1.0, 0.5, -1.0, 0.30078125, 0.302734375, 0.1 * 3, 0.3, 0.9999999),
]
reward = st.sampled_from(NASTY) | st.floats()
# Many groups of one value, or collapse would never be seen.
group = st.lists(reward, min_size=1, max_size=8) | st.builds(
    lambda value, size: [value] * size, st.sampled_from([0.0, 1.0, 0.3, 1e100]), st.integers(1, 8)
)
batches = st.lists(group, min_size=1, max_size=8)
success = st.sampled_from(
    [{"success_threshold": 1.0}, {"success_threshold": 0.3, "failure_threshold": 0.3}]
)
chosen = st.builds(
    Remedies,
    st.none() | st.builds(Focal, st.floats(0, 10)),
    st.none()
    | st.builds(
        Avspo,
        alpha=st.floats(0, 10),
        threshold=st.floats(0, 1),
        gain_all_fail=st.floats(0, 10),
        gain_all_pass=st.none() | st.floats(0, 10),
        cap=st.none() | st.integers(1, 8),
    ),
)
trainer = st.fixed_dictionaries(
    {
        "std_division": st.booleans(),
        "eps": st.sampled_from([0.0, 1e-6, 1e-4]),
        "ddof": st.sampled_from([0, 1]),
        "threshold": st.none() | st.floats(0, 1),
    }
)
finite = st.floats(-65504, 65504, width=16)


def changed(outcome: Outcome, given_advantages: NDArray[Any], batch: list[list[Any]]) -> list[bool]:
    """Say for each group whether any bit of its advantages is another."""
    before = np.split(given_advantages, np.cumsum([len(group) for group in batch])[:-1])
    after = np.split(outcome.advantages, np.cumsum([len(group) for group in batch])[:-1])
    return [one.tobytes() != two.tobytes() for one, two in zip(before, after, strict=True)]


@given(batches, success, chosen, trainer, st.data())
def test_finite_advantages_stay_finite(
    batch: list[list[Any]],
    defined: dict[str, float],
    remedies: Remedies,
    own: dict[str, Any],
    data: st.DataObject,
) -> None:
    """In any float type; the groups that changed are at most those reported, and none by chance."""
    count = sum(map(len, batch))
    dtype = data.draw(st.sampled_from([np.float16, np.float32, np.float64]))
    numbers = data.draw(st.lists(finite, min_size=count, max_size=count))
    advantages = np.array(numbers, dtype)
    outcome = reweight(advantages, batch, remedies, **defined, **own)
    assert outcome.advantages.dtype == dtype
    assert np.isfinite(outcome.advantages).all()
    assert sum(changed(outcome, advantages, batch)) <= outcome.touched_focal + outcome.touched_avspo
    assert 0 < outcome.mean_weight <= 1
    assert outcome.virtual <= 8


@given(batches, success, chosen, trainer)
def test_the_caller_keeps_rewards_and_advantages(
    batch: list[list[Any]], defined: dict[str, float], remedies: Remedies, own: dict[str, Any]
) -> None:
    """Every bit of the arrays given, NaN payloads and signs of zero included, is as it was."""
    ids = np.repeat(np.arange(len(batch)), [len(group) for group in batch])
    rewards = np.array([value for group in batch for value in group], np.float64)
    advantages = np.linspace(-1, 1, len(rewards))
    held = rewards.tobytes(), advantages.tobytes(), ids.tobytes()
    reweight(advantages, rewards, remedies, group_ids=ids, **defined, **own)
    assert (rewards.tobytes(), advantages.tobytes(), ids.tobytes()) == held


@given(batches, success, chosen, st.data())
def test_only_virtual_rewards_replace_a_broken_advantage(
    batch: list[list[Any]], defined: dict[str, float], remedies: Remedies, data: st.DataObject
) -> None:
    """NaN and infinity stay what they are under focal weights; AVSPO leaves or replaces them."""
    count = sum(map(len, batch))
    broken = st.sampled_from([math.nan, math.inf, -math.inf, 0.5])
    advantages = np.array(data.draw(st.lists(broken, min_size=count, max_size=count)))
    was_broken = ~np.isfinite(advantages)
    focal = reweight(advantages, batch, Remedies(remedies.focal), **defined).advantages
    np.testing.assert_array_equal(focal[was_broken], advantages[was_broken])
    both = reweight(advantages, batch, remedies, **defined)
    still = ~np.isfinite(both.advantages)
    np.testing.assert_array_equal(both.advantages[still], advantages[still])
    assert both.touched_avspo or (still == was_broken).all()


@given(batches, success, chosen, st.sampled_from(["grpo", "dr_grpo"]))
def test_rewards_through_to_final_advantages_are_finite(
    batch: list[list[Any]], defined: dict[str, float], remedies: Remedies, variant: Any
) -> None:
    """From any rewards over a variant's advantages to the remedies, every number is finite."""
    only = {name: value for name, value in defined.items() if name == "success_threshold"}
    ids = np.repeat(np.arange(len(batch)), [len(group) for group in batch])
    flat = [value for group in batch for value in group]
    own = group_advantages(flat, variant, group_ids=ids, **only).advantages
    outcome = reweight(
        own, flat, remedies, group_ids=ids, std_division=variant == "grpo", **defined
    )
    assert np.isfinite(outcome.advantages).all()


@pytest.mark.parametrize("own", [{"eps": -1e-4}, {"eps": math.nan}, {"ddof": 2}, {"ddof": True}])
def test_what_no_trainer_divides_by_is_refused(own: dict[str, Any]) -> None:
    """An eps below 0 or a ddof beyond 1 would make numbers that are not finite."""
    (name,) = own
    with pytest.raises(ValueError, match=rf"^{name}: "):
        reweight(np.zeros((1, 2)), [[0, 0]], Remedies(avspo=Avspo()), success_threshold=1, **own)


def test_an_unknown_threshold_lifts_nothing() -> None:
    """No collapse rate is above NaN."""
    outcome = reweight(
        np.zeros((1, 2)), [[0, 0]], Remedies(avspo=Avspo()), success_threshold=1, threshold=math.nan
    )
    assert outcome.touched_avspo == 0
