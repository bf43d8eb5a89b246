"""Virtual rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.remedies import Avspo, next_threshold, virtual_advantage, virtual_count
from rlvitals.remedies.avspo import virtual_offsets


@pytest.mark.parametrize(
    ("offsets", "ddof", "value"),
    [
        ([1.0], 0, -0.3536),
        ([1.0], 1, -0.3333),
        ([-1.0], 0, 0.3536),
        ([0.1] * 4, 0, -0.7071),
        (virtual_offsets(4, -1), 0, 0.6202),
        (virtual_offsets(4, -1), 1, 0.5938),
        (virtual_offsets(8, 1), 0, -0.8115),
        (virtual_offsets(8, 1), 1, -0.7857),
    ],
)
def test_advantage_golden(offsets: list[float], ddof: int, value: float) -> None:
    """Golden values at G = 8 hold for population and sample std."""
    advantage = virtual_advantage(8, np.asarray(offsets), eps=0.0, ddof=ddof)
    assert advantage == pytest.approx(value, abs=5e-5)


@given(st.integers(1, 64), st.integers(1, 64), st.sampled_from([1, -1]))
def test_advantage_has_its_closed_form_and_bound(size: int, count: int, side: int) -> None:
    """|A| = sqrt(K/G) / sqrt(1 + (s/d)^2 (G+K)/G), so never above sqrt(K/G)."""
    offsets = virtual_offsets(count, side)
    advantage = virtual_advantage(size, offsets, eps=0.0, ddof=0)
    spread = (offsets.std() / offsets.mean()) ** 2 * (size + count) / size
    assert abs(advantage) == pytest.approx(math.sqrt(count / size / (1 + spread)))
    assert abs(advantage) <= math.sqrt(count / size) + 1e-12
    assert math.copysign(1, advantage) == -side


def test_centred_advantage_is_the_distance_to_the_mean() -> None:
    """Without std division: 4 zeros and virtual .05, .1 have mean .025."""
    advantage = virtual_advantage(4, virtual_offsets(2, 1), std_division=False)
    assert advantage == pytest.approx(-0.025)


@pytest.mark.parametrize(
    ("size", "acr", "alpha", "cap", "count"),
    [
        (8, 1.0, 0.5, None, 8),
        (8, 0.25, 0.5, None, 4),
        (8, 0.5, 0.5, None, 6),
        (8, 0.0, 0.5, None, 1),
        (8, 0.5, 0.5, 2, 2),
        (2, 0.9, 0.5, None, 2),
        (16, 0.51, 1.0, None, 9),
    ],
)
def test_virtual_count(size: int, acr: float, alpha: float, cap: int | None, count: int) -> None:
    """K = ceil(G acr^alpha), at least 1, at most G and the cap."""
    assert virtual_count(size, acr, alpha, cap) == count


def test_threshold_steers_to_the_target() -> None:
    """Above target it falls, below it rises, by rate times the difference."""
    avspo = Avspo(target=0.15, rate=0.05)
    assert next_threshold(0.5, 0.55, avspo) == pytest.approx(0.48)
    assert next_threshold(0.5, 0.0, avspo) == pytest.approx(0.5075)
    assert next_threshold(0.5, 0.15, avspo) == 0.5


def test_threshold_stays_within_reach() -> None:
    """It never leaves [.02, .98]; unknown rates and a fixed threshold leave it alone."""
    avspo = Avspo(rate=1.0)
    assert next_threshold(0.1, 1.0, avspo) == 0.02
    assert next_threshold(0.97, 0.0, avspo) == 0.98
    assert next_threshold(0.5, None, avspo) == next_threshold(0.5, math.nan, avspo) == 0.5
    assert next_threshold(0.5, 1.0, Avspo(adaptive=False)) == 0.5


def test_controller_reaches_its_target_on_a_steady_run() -> None:
    """Raw rates uniform in [.2, .7]: in the long run the effective rate is the target of .15."""
    rng = np.random.default_rng(0)
    avspo, threshold, effective = Avspo(), 0.5, []
    for raw in rng.uniform(0.2, 0.7, 4000):
        seen = 0.0 if raw > threshold else float(raw)
        effective.append(seen)
        threshold = next_threshold(threshold, seen, avspo)
    assert np.mean(effective[500:]) == pytest.approx(0.15, abs=0.01)
