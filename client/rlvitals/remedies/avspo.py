"""AVSPO: virtual rewards that give a collapsed group an advantage again (arXiv 2605.21125).

Virtual rollouts enter mean and std only; no gradient runs through them and rewards stay as they
are. The released code of the paper does something else (one opposite reward, and only when a
whole batch is equal). K and its bound are the paper's; no formula was found for the virtual values,
so they, the way the threshold adapts and its settings are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rlvitals.metrics.rollouts import FloatArray  # noqa: TC001
from rlvitals.remedies.checks import check_count, check_flag, check_number

# Furthest distance of a virtual reward from the group's own. With std division the advantage
# does not depend on it; with centring alone the advantage is proportional to it.
ANCHOR = 0.1

# The adaptive threshold stays where a batch can still be above it, and below it.
LOWEST_THRESHOLD, HIGHEST_THRESHOLD = 0.02, 0.98

FIXED = 0.5  # "fixed 0.5" in the paper's ablation, read as a distance

Values: TypeAlias = Literal["stratified", "fixed", "uniform", "exponential"]


@dataclass(frozen=True, slots=True)
class Avspo:
    """Set virtual rewards for collapsed groups.

    They act when the collapse rate of the batch is above ``threshold``; ``adaptive`` lets that
    threshold steer the effective collapse rate to ``target`` by steps of ``rate``. ``alpha`` and
    ``cap`` set how many virtual rewards a group gets. The gains scale the advantage of each side;
    ``gain_all_pass`` None means 0 beside focal weighting, whose weight for a solved prompt is 0,
    and 1 without.
    """

    alpha: float = 0.5
    threshold: float = 0.5
    adaptive: bool = True
    target: float = 0.15
    rate: float = 0.05
    gain_all_fail: float = 1.0
    gain_all_pass: float | None = None
    cap: int | None = None

    def __post_init__(self) -> None:
        check_number(self.alpha, "avspo.alpha", 0, 10)
        check_number(self.threshold, "avspo.threshold", 0, 1)
        check_flag(self.adaptive, "avspo.adaptive")
        check_number(self.target, "avspo.target", 0, 1)
        check_number(self.rate, "avspo.rate", 0, 1)
        check_number(self.gain_all_fail, "avspo.gain_all_fail", 0, 10)
        if self.gain_all_pass is not None:
            check_number(self.gain_all_pass, "avspo.gain_all_pass", 0, 10)
        if self.cap is not None:
            check_count(self.cap, "avspo.cap", 1)


def virtual_count(size: int, acr: float, alpha: float, cap: int | None = None) -> int:
    """Give the number of virtual rewards K = max(1, min(G, ceil(G acr^alpha))), at most ``cap``.

    |A| is at most sqrt(K / G) with std division. Raises ValueError unless 0 <= acr <= 1.
    """
    if not 0 <= acr <= 1:
        raise ValueError(f"acr: want a share between 0 and 1, got {acr}")
    wanted: int = math.ceil(
        size * acr**alpha - 1e-9
    )  # a power a last place too high must not add one
    count = max(1, min(size, wanted))
    return count if cap is None else min(count, cap)


def virtual_offsets(
    count: int,
    side: int,
    values: Values = "stratified",
    source: np.random.Generator | None = None,
) -> FloatArray:
    """Give virtual rewards as distances from the group's own reward, for j = 1..K.

    Above it (``side`` 1) when all failed, below it (-1) when all passed: "stratified" side 0.1
    j / K. The others are for comparison: "fixed" side 0.5, "uniform" side U(0, 1) drawn from
    ``source``, "exponential" side 2^-j. The paper names the four; their formulas were not found,
    and these are a reading of the names. Raises ValueError for another name or without a source.
    """
    steps = np.arange(1, count + 1)
    if values == "stratified":
        return side * ANCHOR * steps / count
    if values == "fixed":
        return side * np.full(count, FIXED)
    if values == "exponential":
        return side * np.exp2(-steps)
    if values != "uniform":
        raise ValueError(f"values: want stratified, fixed, uniform or exponential, got {values!r}")
    if source is None:
        raise ValueError("source: uniform virtual rewards are drawn, so give a random generator")
    return side * (1.0 - source.random(count))  # in (0, 1]: at 0 it would be no reward at all


def virtual_advantage(
    size: int, offsets: FloatArray, *, std_division: bool = True, eps: float = 1e-4, ddof: int = 1
) -> float:
    """Give the advantage of the real rollouts of a collapsed group beside its virtual rewards.

    (r - mean R') / (std R' + eps), where R' holds the group's ``size`` equal rewards r and the
    virtual ones at r + offsets; r - mean R' without std division.
    """
    joined = np.concatenate([np.zeros(size), offsets])
    centred = -float(joined.mean())
    return centred / (float(joined.std(ddof=ddof)) + eps) if std_division else centred


def closed_form_advantage(size: int, offsets: FloatArray, *, ddof: int = 1) -> float:
    """Give ``virtual_advantage`` with std division and eps = 0 without joining any rewards.

    |A| = sqrt(K/G) / sqrt(1 + (s/d)^2 (G+K) / G) for ddof=0, with d the mean and s the population
    std of the offsets, and sqrt((G+K-1) / (G+K)) of that for ddof=1; its sign is that of -d. For
    stratified values (s/d)^2 = (K-1) / (3 (K+1)), whatever the anchor.
    """
    d, s = float(offsets.mean()), float(offsets.std())
    bound = virtual_advantage_bound(size, len(offsets), ddof=ddof)
    spread = (s / d) ** 2 * (size + len(offsets)) / size
    return math.copysign(bound / math.sqrt(1.0 + spread), -d)


def virtual_advantage_bound(size: int, count: int, *, ddof: int = 1) -> float:
    """Give the largest |A| that K virtual rewards can give a group of G: sqrt(K/G) for ddof=0.

    With ddof=1 sqrt((G+K-1) / (G+K)) of that. Reached by equal virtual rewards, whatever their
    value, so the choice of values can only weaken the push.
    """
    joined = size + count
    return math.sqrt(count / size * (joined - ddof) / joined)


def next_threshold(threshold: float, acr_effective: float | None, avspo: Avspo) -> float:
    """Move the threshold by rate * (target - acr_effective), kept within [0.02, 0.98].

    An integral controller: too many groups still without an advantage lower the threshold, so
    that virtual rewards act on more batches. An unknown rate leaves it where it is.
    """
    if not avspo.adaptive or acr_effective is None or not math.isfinite(acr_effective):
        return threshold
    moved = threshold + avspo.rate * (avspo.target - acr_effective)
    return min(HIGHEST_THRESHOLD, max(LOWEST_THRESHOLD, moved))
