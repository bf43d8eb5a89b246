"""Virtual rewards must change the collapse of advantages, and not that of rewards."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import reproduce_avspo as script
from measuring.arms import Result, compare, mean_and_error
from measuring.collapse_paper import MAIN_TABLE
from policies.logistic import Series, Setting, simulate, simulate_runs
from policies.weighing import EPS, GRPO, remedied, standardised

from rlvitals.remedies import Avspo, Remedies

SHORT = Setting(steps=40)


@cache
def results(setting: str) -> dict[str, Result]:
    """Run all arms of a setting on two seeds, once for all tests."""
    arms = partial(script.arms, script.FACTORS[setting])
    return {row.name: row for row in compare(script.SETTINGS[setting], arms, 2)}


def columns(series: Series) -> np.ndarray:
    """Give everything that a run recorded."""
    return np.array([getattr(series, name) for name in Series.__slots__])


def test_a_seed_repeats_and_another_does_not() -> None:
    """The same seed gives the same run to the last bit, another seed another run."""
    first, again, other = (columns(simulate(SHORT, seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_runs_side_by_side_are_the_runs_alone() -> None:
    """Runs of several settings, seeds and arms at once equal the same runs one by one."""
    settings = [SHORT, replace(SHORT, difficulty=-1.0, lr=0.06), SHORT]
    arms = [GRPO, GRPO, remedied("AVSPO", Remedies(avspo=Avspo()))]
    together = simulate_runs(settings, [0, 1, 2], arms)
    for seed, (setting, arm, run) in enumerate(zip(settings, arms, together, strict=True)):
        np.testing.assert_allclose(columns(run), columns(simulate(setting, seed, arm)), atol=1e-9)


def test_runs_of_different_shapes_are_refused() -> None:
    """Group sizes that differ cannot stand side by side, and the message says so."""
    with pytest.raises(ValueError, match="size, batch, prompts and steps"):
        simulate_runs([SHORT, replace(SHORT, size=4)], [0, 1], [GRPO, GRPO])


def test_the_pull_of_a_mixed_group_is_its_standard_deviation() -> None:
    """With s the std of a group, mean A (r - p) = s^2 / (s + eps) whatever p is."""
    rewards = np.array([[1.0, 0, 0, 0, 0, 0, 0, 0], [1.0, 1, 1, 1, 0, 0, 0, 0]])
    s = rewards.std(axis=1)
    for p in (0.1, 0.7):
        pull = (standardised(rewards) * (rewards - p)).mean(axis=1)
        np.testing.assert_allclose(pull, s**2 / (s + EPS), rtol=1e-12)


def test_one_opposite_reward_gives_the_known_advantage() -> None:
    """One opposite reward beside eight equal ones gives -.3536, or +.3536 where all passed."""
    rewards = np.array([[0.0] * 8, [1.0] * 8, [0.0] * 4 + [1.0] * 4])
    plain = standardised(rewards)
    weighed = script.one_opposite(plain, rewards, 0.0)
    np.testing.assert_allclose(weighed[0], -1 / math.sqrt(8), atol=3e-4)
    np.testing.assert_allclose(weighed[1], 1 / math.sqrt(8), atol=3e-4)
    assert np.array_equal(weighed[2], plain[2])


def test_the_paper_reports_what_its_abstract_claims() -> None:
    """The main table amounts to 57 to 63 % less collapse, and 3.7 to 6.1 points over benchmarks."""
    cuts = [1 - after / before for before, after, *_ in MAIN_TABLE.values()]
    gains = [row[5] - row[4] for row in MAIN_TABLE.values()]
    assert 0.57 < min(cuts) < max(cuts) < 0.63
    assert (round(min(gains), 1), round(max(gains), 1)) == (3.7, 6.1)


def test_errors_are_those_of_the_mean() -> None:
    """Three values 1, 2, 3 have mean 2 and standard error 1 / sqrt(3); one value has none."""
    assert mean_and_error([1.0, 2.0, 3.0]) == pytest.approx((2.0, 1 / math.sqrt(3)))
    assert mean_and_error([5.0]) == (5.0, 0.0)


@pytest.mark.parametrize("setting", ["hard", "easy"])
def test_effective_collapse_falls_to_the_target_and_raw_collapse_does_not(setting: str) -> None:
    """The controller holds the effective rate at .15; the raw rate stays within .03 of GRPO's."""
    base, steered = results(setting)["GRPO"], results(setting)[script.CONTROLLER]
    assert steered.share("effective") == pytest.approx(0.15, abs=0.02)
    assert steered.share("acr") == pytest.approx(base.share("acr"), abs=0.03)
    assert base.share("effective") == base.share("acr")
    assert results(setting)[script.ALWAYS].share("effective") == 0


@pytest.mark.parametrize("setting", ["hard", "easy"])
def test_virtual_rewards_help_as_much_as_longer_steps(setting: str) -> None:
    """Always beats the controller and one opposite, and plain GRPO with steps as long equals it."""
    found = results(setting)
    gain = {name: np.mean(row.gains(found["GRPO"])) for name, row in found.items()}
    assert gain[script.ALWAYS] > gain[script.CONTROLLER] > 0
    assert gain[script.ALWAYS] > gain[script.OPPOSITE] > 0
    assert found[script.MATCHED].path == pytest.approx(found[script.ALWAYS].path, rel=0.02)
    assert gain[script.MATCHED] == pytest.approx(gain[script.ALWAYS], rel=0.15)
