"""Focal weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import Groups
from rlvitals.remedies import (
    Focal,
    Remedies,
    focal_weight,
    group_advantages,
    mean_update_scale,
    reweight,
)
from rlvitals.remedies.variants import Variant

GROUPS = [[1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]


def test_weight_is_the_failure_rate_to_the_gamma() -> None:
    """1 and 3 of 4 correct at gamma .5: sqrt .75 and .5; groups without signal keep weight 1."""
    groups = Groups.from_rewards(GROUPS, success_threshold=1)
    assert focal_weight(groups, 0.5).tolist() == pytest.approx([0.75**0.5, 0.5, 1.0, 1.0])
    assert focal_weight(groups, 0.0).tolist() == [1.0] * 4
    unknown = Groups.from_rewards(GROUPS)
    assert focal_weight(unknown, 1.0).tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("gamma", "standardised", "centred"),
    [(0.0, 1.0, 1.0), (0.5, 0.679, 24 / 35), (1.0, 0.5, 0.5), (2.0, 0.3125, 0.3)],
)
def test_mean_update_scale(gamma: float, standardised: float, centred: float) -> None:
    """The paper's .679, .5 and .3125; centred 6 / ((g+2)(g+3)), the same at gamma 1."""
    assert mean_update_scale(gamma) == pytest.approx(standardised, abs=5e-4)
    assert mean_update_scale(gamma, std_division=False) == pytest.approx(centred)


@given(st.floats(0, 10), st.booleans())
def test_mean_update_scale_is_what_the_weights_do(gamma: float, std_division: bool) -> None:
    """Over groups of 2,000 with every success rate, what is left of sum |A| is the formula."""
    n = 2000
    c = np.arange(1, n)
    columns = {f"reward_{name}": np.zeros(n - 1) for name in ("mean", "std", "min", "max")}
    groups = Groups.from_columns({"size": [n] * (n - 1), "n_correct": c, **columns})
    signal = c / n * (1 - c / n)
    signal = np.sqrt(signal) if std_division else signal
    kept = (focal_weight(groups, gamma) * signal).sum() / signal.sum()
    assert kept == pytest.approx(mean_update_scale(gamma, std_division=std_division), abs=2e-3)


def test_mean_update_scale_needs_a_gamma() -> None:
    """A gamma below 0 is refused by name."""
    with pytest.raises(ValueError, match=r"^gamma: "):
        mean_update_scale(-0.5)


@pytest.mark.parametrize("variant", ["grpo", "dapo", "cispo", "dr_grpo"])
def test_weight_multiplies_the_advantage_of_any_variant(variant: Variant) -> None:
    """1 and 3 of 4 correct at gamma 2: (3/4)^2 and (1/4)^2 times whatever the variant gave."""
    given_advantages = group_advantages(GROUPS, variant, success_threshold=1).advantages
    outcome = reweight(
        given_advantages,
        GROUPS,
        Remedies(Focal(2.0)),
        success_threshold=1,
        std_division=variant != "dr_grpo",
    )
    expected = given_advantages * [[9 / 16], [1 / 16], [1], [1]]
    np.testing.assert_allclose(outcome.advantages, expected, rtol=1e-12)
    assert np.abs(outcome.advantages[:2]).min() > 0
    assert outcome.mean_weight == pytest.approx(5 / 16)


def test_only_mixed_groups_are_touched() -> None:
    """Mixed groups are scaled as a whole; the others stay the same bits."""
    advantages = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    outcome = reweight(advantages, GROUPS, Remedies(Focal(1.0)), success_threshold=1)
    assert outcome.advantages.dtype == np.float32
    np.testing.assert_array_equal(outcome.advantages[2:], advantages[2:])
    np.testing.assert_allclose(outcome.advantages[0], 0.75 * advantages[0], rtol=1e-6)
    np.testing.assert_allclose(outcome.advantages[1], 0.25 * advantages[1], rtol=1e-6)
    assert (outcome.touched_focal, outcome.touched_avspo) == (2, 0)
    assert outcome.mean_weight == pytest.approx(0.5)


def test_input_is_never_written_to() -> None:
    """The caller's advantages are as they were."""
    advantages = np.ones((4, 4))
    reweight(advantages, GROUPS, Remedies(Focal(1.0)), success_threshold=1)
    assert (advantages == 1.0).all()
