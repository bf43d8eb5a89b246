"""Moments of a Beta distributed success rate."""

from __future__ import annotations

import math

import pytest

from rlvitals.metrics.beta import all_fail_chance, all_pass_chance


@pytest.mark.parametrize(
    ("n", "fail", "passed"),
    [(8, 0.287958528, 0.127531008), (16, 0.2198625805, 0.0847757711), (0, 1.0, 1.0)],
)
def test_golden(n: int, fail: float, passed: float) -> None:
    """Beta(.4, .6) gives the shares of all-fail and all-pass groups to every digit known."""
    assert all_fail_chance(0.4, 0.6, n) == pytest.approx(fail, rel=1e-9)
    assert all_pass_chance(0.4, 0.6, n) == pytest.approx(passed, rel=1e-9)


def test_uniform_rates_have_one_closed_form() -> None:
    """With p uniform, E[p^n] is 1 / (n + 1), for a hundred thousand rollouts too."""
    for n in (1, 8, 100_000):
        assert all_pass_chance(1.0, 1.0, n) == pytest.approx(1 / (n + 1), rel=1e-12)


@pytest.mark.parametrize(
    ("alpha", "beta", "n", "field"),
    [
        (0.0, 1.0, 8, "alpha"),
        (1.0, math.inf, 8, "beta"),
        (math.nan, 1, 8, "alpha"),
        (1, 1, -1, "n"),
    ],
)
def test_impossible_arguments_are_named(alpha: float, beta: float, n: int, field: str) -> None:
    """Parameters outside their range raise a ValueError that names them."""
    for chance in (all_pass_chance, all_fail_chance):
        with pytest.raises(ValueError, match=rf"^{field}: "):
            chance(alpha, beta, n)
