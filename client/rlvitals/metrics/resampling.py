"""How sure a figure is when the same prompts come back."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray, IntArray

DRAWS = 2000
CELLS_AT_ONCE = 2**21


class Estimate(NamedTuple):
    """Hold a figure with the ends of its interval."""

    value: float
    low: float
    high: float


def bootstrap_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    clusters: Any = None,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Estimate sum(numerators) / sum(denominators), whole clusters being drawn with replacement.

    One entry an observation, ``clusters`` naming where it belongs (each on its own when None);
    the interval runs between percentiles of the drawn ratios (Efron, 1979; Cameron, Gelbach and
    Miller, 2008, for clusters). It needs some dozens of clusters, and has no width when they all
    have one ratio. Clusters of equal sums are drawn as one cell of a multinomial, so many
    clusters cost little. Raises ValueError naming the argument.
    """
    check_level(level)
    if draws < 1:
        raise ValueError(f"draws: want one or more, got {draws}")
    sums, times = _cluster_sums(numerators, denominators, clusters)
    total = times @ sums
    ratios = np.concatenate(
        [drawn[:, 0] / drawn[:, 1] for drawn in _drawn_sums(sums, times, draws, seed)]
    )
    low, high = percentiles(ratios, level)
    value = float(total[0] / total[1])
    return Estimate(value, min(low, value), max(high, value))


def percentiles(drawn: FloatArray, level: float) -> tuple[float, float]:
    """Give the two ends between which a share ``level`` of the drawn values lies."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high


def normal_quantile(level: float) -> float:
    """Give the normal quantile that leaves (1 - level) / 2 on each side."""
    check_level(level)
    return NormalDist().inv_cdf((1 + level) / 2)


def check_level(level: float) -> None:
    """Refuse a level that no interval can have."""
    if not 0 < level < 1:
        raise ValueError(f"level: want a share between 0 and 1, got {level}")


def _cluster_sums(
    numerators: ArrayLike, denominators: ArrayLike, clusters: Any
) -> tuple[FloatArray, IntArray]:
    """Add up each cluster; give the distinct pairs of sums and how many clusters have each."""
    columns = [np.asarray(column, float).ravel() for column in (numerators, denominators)]
    if not len(columns[0]):
        raise ValueError("numerators: there is nothing to resample")
    if len(columns[0]) != len(columns[1]):
        raise ValueError(f"denominators: {len(columns[1])} entries, want {len(columns[0])}")
    pairs = np.column_stack(columns)
    if not (np.isfinite(pairs).all() and (pairs[:, 1] > 0).all()):
        raise ValueError("denominators: want positive numbers, and all numbers finite")
    if clusters is not None:
        _, member = np.unique(np.asarray(clusters), return_inverse=True)
        if len(member) != len(pairs):
            raise ValueError(f"clusters: {len(member)} entries for {len(pairs)} observations")
        pairs = np.column_stack([np.bincount(member, weights=column) for column in pairs.T])
    sums, times = np.unique(pairs, axis=0, return_counts=True)
    return sums, times


def _drawn_sums(sums: FloatArray, times: IntArray, draws: int, seed: int) -> list[FloatArray]:
    """Draw as many clusters as there are, ``draws`` times, in parts that fit the memory."""
    source = np.random.default_rng(seed)
    clusters = int(times.sum())
    part = max(1, CELLS_AT_ONCE // len(times))
    return [
        source.multinomial(clusters, times / clusters, size=min(part, draws - begun)) @ sums
        for begun in range(0, draws, part)
    ]
