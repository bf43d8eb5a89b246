"""The ablation must weigh as the product does, and foresee advantages by the closed form."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import reproduce_avspo_ablation as script
from measuring.arms import Result, compare
from policies.weighing import DDOF, EPS, standardised

from rlvitals.remedies import Avspo, Remedies, reweight


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.97])
def test_stratified_values_are_those_of_the_product(threshold: float) -> None:
    """On mixed batches the ablation's weights equal the product's reweight to the last bit."""
    rng = np.random.default_rng(5)
    for size in (2, 5, 8):
        chance = rng.beta(0.4, 0.6, (32, 1))
        rewards = (rng.random((32, size)) < chance).astype(float)
        plain = standardised(rewards)
        mine = script.weigh_with("stratified", rng, plain, rewards, threshold)
        theirs = reweight(
            plain,
            rewards,
            Remedies(avspo=Avspo()),
            success_threshold=0.5,
            threshold=threshold,
            eps=EPS,
            ddof=DDOF,
        )
        assert np.array_equal(mine, theirs.advantages)


def test_foreseen_advantages_are_golden() -> None:
    """Fixed values reach sqrt(K/G); stratified give .6202 for K = 4 and .8115 for K = 8 of 8."""
    for count in range(1, 9):
        assert script.predicted("fixed .5", count) == pytest.approx(math.sqrt(count / 8))
    assert script.predicted("stratified", 4) == pytest.approx(0.6202, abs=5e-5)
    assert script.predicted("stratified", 8) == pytest.approx(0.8115, abs=5e-5)


def test_one_virtual_reward_is_worth_the_same_whatever_its_value() -> None:
    """With K = 1 every kind of value gives sqrt(1/8): only its spread could matter."""
    for name in script.VALUES:
        assert script.predicted(name, 1) == pytest.approx(math.sqrt(1 / 8))


def test_without_std_division_size_follows_the_value() -> None:
    """Centring alone leaves mean(V) K / (G + K): .5 x 6 / 14 for fixed values of .5."""
    assert script.predicted("fixed .5", 6, std_division=False) == pytest.approx(3 / 14)
    assert script.predicted("stratified", 6, std_division=False) == pytest.approx(
        0.1 * 3.5 / 6 * 6 / 14
    )


def test_the_rule_as_worded_moves_by_a_hundredth() -> None:
    """It raises while rewards grow or are few, lowers when they stall, and stays in its bounds."""
    rising, flat = np.linspace(0, 1, 60), np.full(60, 0.3)
    assert script.lower_if_stagnating(0.5, 0.4, rising) == pytest.approx(0.51)
    assert script.lower_if_stagnating(0.5, 0.4, flat) == pytest.approx(0.49)
    assert script.lower_if_stagnating(0.5, 0.4, flat[:39]) == pytest.approx(0.51)
    assert script.lower_if_stagnating(0.98, 0.4, rising) == 0.98
    assert script.lower_if_stagnating(0.02, 0.4, flat) == 0.02


def by_name(results: list[Result]) -> dict[str, tuple[float, float]]:
    """Give the effective collapse rate and the gain of the worst seed, by arm."""
    base = results[0]
    return {row.name: (row.share("effective"), min(row.gains(base))) for row in results}


def test_values_change_the_size_of_the_gain_and_not_the_collapse() -> None:
    """Every kind of value leaves the same effective rate; gains go with the foreseen advantage."""
    found = by_name(compare(script.MID, script.value_arms, 2))
    rates = [found[name][0] for name in script.VALUES]
    assert max(rates) - min(rates) < 0.005
    assert found["fixed .5"][1] > found["stratified"][1] > found["exponential"][1] > 0


def test_lower_thresholds_do_more() -> None:
    """Gains fall as the threshold rises, and the controller's follow its target."""
    arms = partial(compare, script.HARD, script.threshold_arms)
    found = by_name(arms(2))
    order = ["fixed at .3", "fixed at .5", "fixed at .7"]
    assert sorted(order, key=lambda name: -found[name][1]) == order
    assert found["controller, target .05"][1] > found["controller, target .30"][1] > 0
    assert found["adaptive, as worded"][1] < found["adaptive, controller"][1]


def test_sides_help_alone_and_add_up() -> None:
    """Each side gains and leaves the other as it was; always on, both gain what they gain alone."""
    results = {row.name: row for row in compare(script.MID, script.side_arms, 2)}
    base, wrong, right = results["GRPO"], results["all-wrong only"], results["all-right only"]
    assert wrong.share("left_pass") == wrong.share("all_pass") > 0
    assert right.share("left_fail") == right.share("all_fail") > 0
    gains = {name: np.array(row.gains(base)) for name, row in results.items()}
    alone = gains["all-wrong only, always"] + gains["all-right only, always"]
    assert min(gains["all-wrong only"].min(), gains["all-right only"].min()) > 0
    np.testing.assert_allclose(gains["both, always"], alone, rtol=0.1)
