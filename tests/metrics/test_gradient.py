"""Gradient baselines that a collapse does not break."""

from __future__ import annotations

import math

import pytest

from rlvitals.metrics import robust_baseline, spike_score


def test_baseline_is_median_and_scaled_mad() -> None:
    """[1, 2, 3, 4, 100]: median 3, absolute deviations 2, 1, 0, 1, 97 have median 1."""
    assert robust_baseline([1, 2, 3, 4, 100]) == pytest.approx((3.0, 1.4826))


def test_baseline_leaves_zeros_and_non_finite_out() -> None:
    """Dead and broken steps do not enter the baseline."""
    dirty = [0, 1, 0, 2, math.nan, 3, math.inf, 4, 0, 0, 100, -math.inf]
    assert robust_baseline(dirty) == robust_baseline([1, 2, 3, 4, 100])


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [math.nan, math.inf]])
def test_baseline_without_values_is_unknown(values: list[float]) -> None:
    """Without one finite non-zero value there is no baseline and no spike."""
    assert all(map(math.isnan, robust_baseline(values)))
    assert spike_score(5.0, values) == 0.0


def test_spike_score_counts_sigmas() -> None:
    """A norm of 17.826 above median 3 with sigma 1.4826 is 10 sigmas up."""
    assert spike_score(3 + 14.826, [1, 2, 3, 4, 100]) == pytest.approx(10.0)
    assert spike_score(math.nan, [1, 2, 3]) == 0.0


def test_a_constant_past_makes_no_spike_of_dust() -> None:
    """With equal values sigma is a thousandth of the median, so 1e-9 more is no spike."""
    assert spike_score(1.0 + 1e-9, [1.0] * 30) < 1e-3
    assert spike_score(2.0, [1.0] * 30) == pytest.approx(1000.0)
