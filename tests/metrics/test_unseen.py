"""Unseen correct mass from signatures, pooled over groups, and when it is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics.unseen import unseen_mass


def _zipf(solutions: int, mu: float) -> np.ndarray:
    """Share a correct mass mu among solutions by Zipf's law, flatter for many of them."""
    weights = np.arange(1.0, solutions + 1) ** (-1.0 if solutions <= 20 else -0.8)
    return mu * weights / weights.sum()


def _draw(p: np.ndarray, n: int, groups: int, seed: int) -> tuple[list[list[int]], np.ndarray]:
    """Draw the signatures of correct rollouts, and the truly unseen correct mass, by group."""
    source = np.random.default_rng(seed)
    picks = np.sort(source.choice(len(p) + 1, (groups, n), p=[*p, 1 - p.sum()]), axis=1)
    signatures = [row[row < len(p)].tolist() for row in picks]
    return signatures, np.array([p.sum() - p[list(set(row))].sum() for row in signatures])


def test_a_batch_by_hand() -> None:
    """Twenty groups, ten with aabc of 8 and ten with aab of 8: f1 2 and 1, f2 1 and 1.

    Good-Turing 2/8 and 1/8; Chao-Jost times 14/16 and 7/9; share 30 / 70.
    """
    mass = unseen_mass([list("aabc"), list("aab")] * 10, [8] * 20)
    assert mass.good_turing.value == pytest.approx(3 / 16)
    assert mass.chao_jost.value == pytest.approx((2 / 8 * 14 / 16 + 1 / 8 * 7 / 9) / 2)
    assert mass.share.value == pytest.approx(3 / 7)
    assert mass.good_turing.se == pytest.approx(np.std([2 / 8, 1 / 8] * 10, ddof=1) / math.sqrt(20))
    assert mass.share.se == pytest.approx(math.sqrt(20 * 20 / 19 * (2 / 7) ** 2) / 70)
    assert (mass.informative, mass.repeating, mass.share.count) == (20, 20, 20)


@pytest.mark.parametrize(
    ("solutions", "mu", "n", "true", "turing", "chao"),
    [
        (20, 0.6, 8, 0.364, 0.374, 0.357),
        (20, 0.6, 64, 0.088, 0.090, 0.088),
        (200, 0.5, 8, 0.461, 0.467, 0.463),
        (200, 0.5, 512, 0.115, 0.114, 0.114),
    ],
)
def test_simulated_means(
    solutions: int, mu: float, n: int, true: float, turing: float, chao: float
) -> None:
    """Zipf distributed solutions give the known means, within 4 sigmas of 2,000 groups.

    The known means are rounded to .001 and simulated themselves, hence .0015 on top.
    """
    p = _zipf(solutions, mu)
    signatures, unseen = _draw(p, n, 2000, seed=21)
    mass = unseen_mass(signatures, [n] * 2000)
    error = unseen.std(ddof=1) / math.sqrt(2000)
    assert unseen.mean() == pytest.approx(true, abs=4 * error + 0.0015)
    assert mass.good_turing.value == pytest.approx(turing, abs=4 * mass.good_turing.se + 0.0015)
    assert mass.chao_jost.value == pytest.approx(chao, abs=4 * mass.chao_jost.se + 0.0015)


@pytest.mark.parametrize(("solutions", "mu", "n"), [(20, 0.6, 8), (20, 0.6, 64), (200, 0.5, 8)])
def test_good_turing_has_the_known_bias(solutions: int, mu: float, n: int) -> None:
    """Its mean is sum p (1-p)^(n-1), above the truth sum p (1-p)^n; 4,000 groups, 4 sigmas."""
    p = _zipf(solutions, mu)
    signatures, unseen = _draw(p, n, 4000, seed=22)
    turing = unseen_mass(signatures, [n] * 4000).good_turing
    expected, true = float(p @ (1 - p) ** (n - 1)), float(p @ (1 - p) ** n)
    assert expected - true == pytest.approx(float(p**2 @ (1 - p) ** (n - 1)))
    assert abs(turing.value - expected) < 4 * turing.se
    assert abs(unseen.mean() - true) < 4 * unseen.std(ddof=1) / math.sqrt(4000)


def test_share_is_the_singletons_among_correct_rollouts() -> None:
    """E f1 / E k is sum p (1-p)^(n-1) / mu; its interval holds that in 95 % of 500 batches.

    4 sigmas are .039.
    """
    p = _zipf(20, 0.6)
    expected = float(p @ (1 - p) ** 7) / 0.6
    held = 0
    for seed in range(500):
        share = unseen_mass(_draw(p, 8, 64, seed)[0], [8] * 64).share
        held += share.low <= expected <= share.high
    assert held / 500 == pytest.approx(0.95, abs=0.039)


def test_visits_of_one_prompt_are_put_together() -> None:
    """Two groups of a prompt count as one of twice the size: what one saw the other may repeat."""
    groups = [list("ab"), list("ac")] * 20
    prompts = [name for name in range(20) for _ in range(2)]
    pooled = unseen_mass(groups, [4] * 40, prompts)
    assert pooled.good_turing.value == pytest.approx(2 / 8)
    assert pooled.good_turing.count == 20
    assert unseen_mass([list("abac")] * 20, [8] * 20) == pooled


def test_groups_without_a_correct_rollout_count() -> None:
    """They show no singleton and lower the mean; the share of the correct mass stays."""
    some = unseen_mass([list("aab")] * 20, [4] * 20)
    more = unseen_mass([list("aab"), []] * 20, [4] * 40)
    assert some.good_turing.value == pytest.approx(1 / 4)
    assert more.good_turing.value == pytest.approx(1 / 8)
    assert more.share.value == some.share.value == pytest.approx(1 / 3)


def test_no_singleton_means_nothing_unseen() -> None:
    """Groups in which each kind came twice estimate 0, with room above it."""
    mass = unseen_mass([list("aabb")] * 25, [8] * 25)
    assert (mass.good_turing.value, mass.chao_jost.value, mass.share.value) == (0.0, 0.0, 0.0)
    assert mass.share.low == 0.0
    assert 0.0 < mass.share.high < 0.2


@pytest.mark.parametrize(
    ("groups", "sizes", "prompts", "why"),
    [
        ([], [], None, "signatures: 0 groups"),
        ([list("aab")], [8], None, "signatures: 1 groups"),
        ([list("aab")] * 19, [8] * 19, None, "signatures: 19 groups .* want 20"),
        ([list("aab")] * 19 + [["a"]] * 50, [8] * 69, None, "signatures: 19 groups"),
        ([list("aab")] * 40, [8] * 40, ["x"] * 40, "signatures: 1 groups"),
        ([list("abc")] * 60, [8] * 60, None, "signatures: only 0 of 60 .* coarser"),
        ([list("abc")] * 60 + [list("aa")] * 2, [8] * 62, None, "signatures: only 2 of 62"),
        ([list("aaa")] * 60, [8] * 60, None, "signatures: .* a single one, .* finer"),
        ([list("aab")] * 20, [8] * 19, None, "sizes: "),
        ([list("aab")] * 20, [8.5] * 20, None, "sizes: "),
        ([list("aab")] * 20, [2] * 20, None, "signatures: 3 correct in a group of 2"),
        ([list("aab")] * 20 + [[]], [8] * 20 + [0], None, "signatures: 0 correct in a group of 0"),
        ([list("aab")] * 20, [8] * 20, ["x"], "prompts: 1 entries"),
        (["aab"] * 20, [8] * 20, None, "signatures: .* got text"),
        ([[["a"], ["b"]]] * 20, [8] * 20, None, "signatures: want hashable"),
        ([3] * 20, [8] * 20, None, "signatures: want hashable"),
    ],
)
def test_signatures_that_carry_nothing_are_refused(
    groups: list[Any], sizes: Sequence[float], prompts: list[str] | None, why: str
) -> None:
    """Too few groups, all kinds different, all alike, or numbers that cannot be: it says which."""
    with pytest.raises(ValueError, match=rf"^{why}"):
        unseen_mass(groups, sizes, prompts)


def test_a_diverse_policy_is_not_refused() -> None:
    """200 solutions at n = 8 repeat in 14 % of groups: enough in each of 100 batches of 200."""
    p = _zipf(200, 0.5)
    for seed in range(100):
        mass = unseen_mass(_draw(p, 8, 200, seed)[0], [8] * 200)
        assert 0.05 <= mass.repeating / mass.informative <= 0.25


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=8), min_size=20, max_size=40))
def test_order_does_not_matter(groups: list[list[int]]) -> None:
    """Groups and rollouts in any order, and kinds by any name, give the same masses in [0, 1]."""
    groups = [[0, 0, 1], *groups]
    mass = unseen_mass(groups, [8] * len(groups))
    shuffled = [[f"kind {kind}" for kind in reversed(group)] for group in reversed(groups)]
    again = unseen_mass(shuffled, [8] * len(groups))
    for one, two in (
        (mass.good_turing, again.good_turing),
        (mass.chao_jost, again.chao_jost),
        (mass.share, again.share),
    ):
        assert one.value == pytest.approx(two.value, abs=1e-12)
        assert 0.0 <= one.low <= one.high <= 1.0
    assert mass.chao_jost.value <= mass.good_turing.value


def test_one_group_alone_would_mislead() -> None:
    """At n = 8 the number of a single group is off by about .2, and high where truth is low.

    So it is never given; here f1 / n is counted by hand over 4,000 groups of one policy.
    """
    signatures, unseen = _draw(_zipf(20, 0.6), 8, 4000, seed=23)
    alone = np.array([sum(row.count(kind) == 1 for kind in set(row)) / 8 for row in signatures])
    assert math.sqrt(np.mean((alone - unseen) ** 2)) == pytest.approx(0.2, abs=0.02)
    assert np.corrcoef(alone, unseen)[0, 1] < -0.2
