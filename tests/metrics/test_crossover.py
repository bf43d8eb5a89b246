"""Sharpening: pass@1 up, pass@k down, problem by problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics import pass_at_k
from rlvitals.metrics.crossover import crossover


def test_sharpening_golden() -> None:
    """Of four problems with 1 of 4 correct, training solves two fully and loses the others.

    pass@1 moves by +.75, +.75, -.25, -.25 and pass@4 by 0, 0, -1, -1: +.25 and -.5, with
    standard errors sd / 2 of 1 / sqrt 12.
    """
    moved = crossover(4, [4, 4, 0, 0], 4, [1, 1, 1, 1])
    assert (moved.small.k, moved.large.k, moved.problems) == (1, 4, 4)
    assert (moved.small.value, moved.large.value) == pytest.approx((0.25, -0.5))
    assert moved.small.se == pytest.approx(math.sqrt(1 / 12))
    assert moved.large.se == pytest.approx(math.sqrt(1 / 12))
    assert moved.large.high == pytest.approx(-0.5 + 1.959964 / math.sqrt(12))
    assert not moved.sharpening  # four problems leave the interval across 0


def test_more_problems_raise_the_alarm() -> None:
    """Ten times the same four problems leave no doubt."""
    moved = crossover(4, [4, 4, 0, 0] * 10, 4, [1, 1, 1, 1] * 10)
    assert moved.large.high < 0 < moved.small.value
    assert moved.sharpening


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ([4, 4, 1, 1] * 10, [1, 1, 1, 1] * 10),  # better at every k
        ([0, 0, 0, 1] * 10, [1, 1, 1, 1] * 10),  # worse at every k
        ([2, 1, 3, 0] * 10, [2, 1, 3, 0] * 10),  # the same
    ],
)
def test_other_changes_are_no_sharpening(now: list[int], before: list[int]) -> None:
    """A rise or a fall at both k, or none at all, raises no alarm."""
    assert not crossover(4, now, 4, before).sharpening


def test_pairing_takes_difficulty_out() -> None:
    """Problems that all move alike have no error, however different they are."""
    moved = crossover(8, [1, 3, 5, 7], 8, [0, 2, 4, 6], large=2)
    assert moved.small.value == pytest.approx(1 / 8)
    assert moved.small.se == pytest.approx(0.0, abs=1e-15)


def test_each_side_may_have_its_own_rollouts() -> None:
    """Rollouts may differ by problem and by side; k goes up to the fewest."""
    moved = crossover([8, 16], [2, 2], 4, [1, 0], large=3)
    expected = (pass_at_k(8, 2, 3) - pass_at_k(4, 1, 3) + pass_at_k(16, 2, 3)) / 2
    assert moved.large.value == pytest.approx(expected)
    assert crossover([8, 16], [2, 2], 4, [1, 0]).large.k == 4


def test_a_hundred_thousand_rollouts_and_the_ends() -> None:
    """At n = 1e5, never and always solved problems give exact changes."""
    moved = crossover(100_000, [0, 100_000], 100_000, [100_000, 100_000], large=100_000)
    assert (moved.small.value, moved.large.value) == (-0.5, -0.5)
    assert -1.0 <= moved.large.low <= moved.large.high <= 1.0


GIVEN: dict[str, Any] = {"n": 8, "c": [1, 2], "baseline_n": 8, "baseline_c": [1, 1]}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"c": [9, 1]}, "c"),
        ({"c": [0.5, 1]}, "c"),
        ({"c": [[1, 2]]}, "c"),
        ({"c": []}, "c"),
        ({"n": [8, 8, 8]}, "n"),
        ({"baseline_c": [-1, 1]}, "baseline_c"),
        ({"baseline_c": [1, 1, 1]}, "baseline_c"),
        ({"baseline_n": "8"}, "baseline_n"),
        ({"c": [1], "baseline_c": [1]}, "c"),
        ({"large": 9}, "small, large"),
        ({"small": 4, "large": 4}, "small, large"),
        ({"small": 0}, "small, large"),
        ({"n": 1, "c": [1, 1]}, "small, large"),
        ({"level": 1.0}, "level"),
    ],
)
def test_impossible_problems_are_named(wrong: dict[str, Any], field: str) -> None:
    """Counts, sizes and k that cannot be raise a ValueError that names them."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        crossover(**(GIVEN | wrong))


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=2, max_size=30))
def test_order_of_problems_does_not_matter(pairs: list[tuple[int, int]]) -> None:
    """The same problems in another order give the same changes, and swapping sides turns them."""
    now, before = map(list, zip(*pairs, strict=True))
    there, back = crossover(8, now, 8, before), crossover(8, now[::-1], 8, before[::-1])
    turned = crossover(8, before, 8, now)
    for one, two, other in (
        (there.small, back.small, turned.small),
        (there.large, back.large, turned.large),
    ):
        assert two.value == pytest.approx(one.value, abs=1e-12)
        assert two.se == pytest.approx(one.se, abs=1e-12)
        assert other.value == pytest.approx(-one.value, abs=1e-12)
        assert -1.0 <= one.low <= one.value + 1e-12
        assert one.value - 1e-12 <= one.high <= 1.0


def test_false_alarms_are_rare() -> None:
    """Without any change fewer than 2.5 % of 2,000 looks at 100 problems raise the alarm.

    4 sigmas are 1.4 % on top; both conditions must come together, so it is far less.
    """
    source = np.random.default_rng(12)
    alarms = 0
    for _ in range(2000):
        rates = source.beta(0.4, 0.6, 100)
        now, before = source.binomial(16, rates), source.binomial(16, rates)
        alarms += crossover(16, now, 16, before).sharpening
    assert alarms / 2000 < 0.025


def test_true_sharpening_is_found() -> None:
    """Rates p that become p^2 / (p^2 + q^2) with 32 rollouts of 400 problems, found in 19 of 20.

    Sharpening pushes rates above 1/2 up and those below down, so pass@1 gains while pass@32 loses.
    """
    source = np.random.default_rng(13)
    found = 0
    for _ in range(200):
        before = source.beta(1.2, 1.0, 400)
        now = before**2 / (before**2 + (1 - before) ** 2)
        found += crossover(32, source.binomial(32, now), 32, source.binomial(32, before)).sharpening
    assert found >= 190
