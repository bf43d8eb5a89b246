"""Means and squared deviations of parts, pooled (Chan, Golub and LeVeque, 1979)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import FloatArray, IntArray
    from rlvitals.metrics.tally import Tally


def pooled_mean(size: IntArray, mean: FloatArray, rollouts: int) -> tuple[float, float]:
    """Give the mean over all rollouts, and the squared deviations of group means from it (Chan)."""
    if not rollouts:
        return 0.0, 0.0
    weight = size.astype(np.float64)
    above = mean - mean[0]  # equal means must pool to exactly that mean
    shift = float(weight.dot(above)) / rollouts
    above -= shift
    above *= above
    return float(mean[0]) + shift, float(weight.dot(above))


def merge_moments(one: Tally, two: Tally) -> tuple[float, float]:
    """Give mean and sum of squared deviations of all rewards of two tallies."""
    if not one.rollouts:
        return two.reward_mean, two.reward_m2
    if not two.rollouts:
        return one.reward_mean, one.reward_m2
    total = one.rollouts + two.rollouts
    delta = two.reward_mean - one.reward_mean
    share = two.rollouts / total
    mean = one.reward_mean + delta * share
    return mean, one.reward_m2 + two.reward_m2 + delta * delta * one.rollouts * share
