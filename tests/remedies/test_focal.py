"""Focal weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlvitals.metrics import Groups
from rlvitals.remedies import Focal, Remedies, focal_weight, reweight

GROUPS = [[1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]


def test_weight_is_the_failure_rate_to_the_gamma() -> None:
    """1 and 3 of 4 correct at gamma .5: sqrt .75 and .5; groups without signal keep weight 1."""
    groups = Groups.from_rewards(GROUPS, success_threshold=1)
    assert focal_weight(groups, 0.5).tolist() == pytest.approx([0.75**0.5, 0.5, 1.0, 1.0])
    assert focal_weight(groups, 0.0).tolist() == [1.0] * 4
    unknown = Groups.from_rewards(GROUPS)
    assert focal_weight(unknown, 1.0).tolist() == [1.0] * 4


@pytest.mark.parametrize(("gamma", "scale"), [(0.5, 0.679), (1.0, 0.5), (2.0, 0.3125)])
def test_mean_update_scale_of_the_paper(gamma: float, scale: float) -> None:
    """Over a uniform success rate the signal shrinks by (4 / sqrt pi) G(g + 3/2) / G(g + 3)."""
    formula = 4 / math.sqrt(math.pi) * math.gamma(gamma + 1.5) / math.gamma(gamma + 3)
    assert formula == pytest.approx(scale, abs=5e-4)
    n = 2000
    c = np.arange(1, n)
    groups = Groups.from_columns(
        {
            "size": [n] * (n - 1),
            "n_correct": c,
            **{f"reward_{name}": np.zeros(n - 1) for name in ("mean", "std", "min", "max")},
        }
    )
    signal = np.sqrt(c / n * (1 - c / n))
    kept = (focal_weight(groups, gamma) * signal).sum() / signal.sum()
    assert kept == pytest.approx(formula, abs=2e-3)


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
