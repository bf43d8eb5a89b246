"""Gradient norms: baselines that a collapse does not break, smoothness, signal and noise."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import (
    exponential_average,
    log_norm_variation,
    outlier_rate,
    robust_baseline,
    signal_to_noise,
    spike_score,
)

anything = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40)
norms = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=40)


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


def test_the_largest_and_smallest_numbers_have_a_baseline() -> None:
    """The median of two numbers whose sum leaves float64, and a past of the least number."""
    assert robust_baseline([1.6e308, 1.7e308])[0] == pytest.approx(1.65e308)
    assert spike_score(5e-324, [5e-324] * 12) == 0.0


@given(anything, st.floats())
def test_no_past_breaks_the_score(values: list[float], value: float) -> None:
    """Whatever the series holds, the score is a number and nothing warns."""
    assert not math.isnan(spike_score(abs(value), np.abs(values)))


def test_average_halves_weights_by_its_half_life() -> None:
    """Half life 1: 0; then (0/2 + 3) / (1/2 + 1) = 2; then (0/4 + 3/2 + 0) / (7/4) = 6/7."""
    assert exponential_average([0, 3, 0], 1).tolist() == pytest.approx([0.0, 2.0, 6 / 7])


@given(
    st.lists(st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf]), max_size=40),
    st.floats(0.1, 1000),
)
def test_average_is_that_of_pandas(values: list[float], half_life: float) -> None:
    """What is not finite is left out, as pandas leaves out NaN."""
    series = pd.Series(values, dtype=float).replace(math.inf, math.nan)
    expected = series.ewm(halflife=half_life, ignore_na=True).mean()
    np.testing.assert_allclose(exponential_average(values, half_life), expected, atol=1e-8)


@given(anything, st.floats(0.1, 1000))
def test_average_stays_among_its_values(values: list[float], half_life: float) -> None:
    """It lies between the least and the largest finite value so far, and NaN before the first."""
    smooth = exponential_average(values, half_life)
    for step, value in enumerate(smooth):
        seen = [value for value in values[: step + 1] if math.isfinite(value)]
        if seen:
            slack = 1e-9 * max(map(abs, seen))
            assert min(seen) - slack <= value <= max(seen) + slack
        else:
            assert math.isnan(value)


def test_average_outlives_a_long_gap() -> None:
    """After 5,000 broken steps the average still stands where it was."""
    smooth = exponential_average([2.0, *[math.nan] * 5000], 1)
    assert smooth[-1] == 2.0


@pytest.mark.parametrize("half_life", [0, -1, math.nan, math.inf])
def test_average_needs_a_half_life(half_life: float) -> None:
    """A half life that is no number of steps is refused by name."""
    with pytest.raises(ValueError, match=r"^half_life: "):
        exponential_average([1.0], half_life)


def test_outliers_are_counted_among_judged_steps() -> None:
    """Of 110 norms the first ten build the baseline; 2 spikes in the other 100 are 2 %."""
    steady = 1 + 0.1 * np.random.default_rng(0).standard_normal(110)
    steady[[40, 80]] = 20.0
    assert outlier_rate(steady) == pytest.approx(2.0)
    dirty = np.insert(steady, [5, 30, 60], [0.0, math.nan, math.inf])
    assert outlier_rate(dirty) == pytest.approx(2.0)


def test_outliers_need_ten_norms_before() -> None:
    """Ten norms build a baseline and judge nothing; the eleventh is judged."""
    assert outlier_rate([1.0] * 10) is None
    assert outlier_rate([*[1.0] * 10, 2.0]) == 100.0


def test_a_new_level_stops_being_an_outlier() -> None:
    """Once half of a window of 10 lies on the new level, steps there are ordinary."""
    rate = outlier_rate([*[1.0] * 20, *[10.0] * 20], window=10)
    assert rate == pytest.approx(100 * 5 / 30)


def test_of_normal_norms_few_are_outliers() -> None:
    """Of 3,000 normal norms fewer than 1 in 1,000 lie 5 robust sigmas above 50 others."""
    steady = 10 + np.random.default_rng(1).standard_normal(3000)
    rate = outlier_rate(steady)
    assert rate is not None
    assert rate < 0.1


@pytest.mark.parametrize(("given", "name"), [({"window": 9}, "window"), ({"score": 0}, "score")])
def test_outlier_settings_are_checked(given: dict[str, float], name: str) -> None:
    """A window too short for a baseline and a score of no sigma are refused by name."""
    with pytest.raises(ValueError, match=rf"^{name}: "):
        outlier_rate([1.0] * 20, **given)


def test_variation_is_the_mean_log_change() -> None:
    """1, e, 1: two changes of 1 each; a dead step in between hides the changes next to it."""
    assert log_norm_variation([1, math.e, 1]) == pytest.approx(1.0)
    assert log_norm_variation([1, math.e, 0, 5, 5 * math.e**3]) == pytest.approx(2.0)
    assert log_norm_variation([1.0, math.nan, 1.0]) is None
    assert log_norm_variation([1.0]) is None


@given(norms, st.floats(1e-3, 1e3))
def test_variation_knows_no_scale(series: list[float], factor: float) -> None:
    """A norm in other units, or read backwards, varies as much; a constant one not at all."""
    scaled = log_norm_variation(np.array(series) * factor)
    assert scaled == pytest.approx(log_norm_variation(series), abs=1e-9)
    assert log_norm_variation(series[::-1]) == pytest.approx(scaled, abs=1e-9)
    assert log_norm_variation([series[0]] * 5) == 0.0


def test_variation_of_independent_norms_has_its_expectation() -> None:
    """For log norms N(0, s^2), E|change| = 2 s / sqrt pi; within 4 standard errors of it."""
    s, steps = 0.5, 20_000
    logs = s * np.random.default_rng(2).standard_normal(steps)
    # Neighbouring changes share a value: their covariance widens the error by less than 1.5.
    error = 1.5 * math.sqrt((2 - 4 / math.pi) * s * s / steps)
    assert log_norm_variation(np.exp(logs)) == pytest.approx(2 * s / math.pi**0.5, abs=4 * error)


def test_signal_of_two_micro_batches_by_hand() -> None:
    """(1, 1) and (1, -1) have mean (1, 0): S = 2, noise 1, signal 0; (2, 0) and (1, 0): 2.25."""
    assert signal_to_noise(1.0, [math.sqrt(2)] * 2) == pytest.approx(0.0, abs=1e-9)
    # mean 1.5, S = 0.5, noise left .25, signal 2.25 - .25 = 2: 8 times the noise.
    assert signal_to_noise(1.5, [2.0, 1.0]) == pytest.approx(8.0)
    assert signal_to_noise(1.0, [1.0, 1.0]) == math.inf


def test_signal_and_noise_are_unbiased() -> None:
    """Signal |g|^2 - S/m has mean |G|^2 over 20,000 steps: within 4 of its standard errors."""
    source = np.random.default_rng(3)
    truth, m, steps = np.array([0.5, -0.25, 0.0, 1.0]), 4, 20_000
    micro = truth + source.standard_normal((steps, m, 4))
    whole = np.linalg.norm(micro.mean(1), axis=1)
    parts = np.linalg.norm(micro, axis=2)
    noise = ((parts**2).mean(1) - whole**2) / (m - 1)
    ratios = np.array([signal_to_noise(g, row) for g, row in zip(whole, parts, strict=True)])
    np.testing.assert_allclose(ratios, np.maximum(0, whole**2 - noise) / noise, rtol=1e-9)
    signal = whole**2 - noise
    assert signal.mean() == pytest.approx(truth @ truth, abs=4 * signal.std() / steps**0.5)
    assert noise.mean() == pytest.approx(4 / m, abs=4 * noise.std() / steps**0.5)


@pytest.mark.parametrize(
    ("mean_norm", "micro"),
    [(1.0, [1.0]), (1.0, []), (math.nan, [1.0, 1.0]), (1.0, [1.0, math.inf]), (0.0, [0.0, 0.0])],
)
def test_without_two_norms_there_is_no_ratio(mean_norm: float, micro: list[float]) -> None:
    """One micro-batch, a broken norm or nothing but zeros say nothing about noise."""
    assert signal_to_noise(mean_norm, micro) is None


def test_a_summed_gradient_is_told_from_a_mean() -> None:
    """A norm above the root mean square cannot be that of the mean; bfloat16 rounding can."""
    assert signal_to_noise(1.004, [1.0, 1.0]) == math.inf
    with pytest.raises(ValueError, match=r"^mean_norm: above"):
        signal_to_noise(2.0, [1.0, 1.0])
    with pytest.raises(ValueError, match=r"^mean_norm, micro_norms: "):
        signal_to_noise(1.0, [-1.0, 1.0])


@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(1e-150, 1e150))
def test_signal_knows_no_scale(m: int, seed: int, factor: float) -> None:
    """The ratio of any micro-batches is at least 0 and the same in other units."""
    micro = np.random.default_rng(seed).standard_normal((m, 3))
    whole, parts = float(np.linalg.norm(micro.mean(0))), np.linalg.norm(micro, axis=1)
    ratio = signal_to_noise(whole, parts)
    assert ratio is not None
    assert ratio >= 0
    assert signal_to_noise(whole * factor, parts * factor) == pytest.approx(
        ratio, rel=1e-6, abs=1e-9
    )
