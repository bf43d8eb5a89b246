"""The collapse rate that smaller groups would have had, counted without a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.beta_binomial import judged_groups
from rlvitals.metrics.collapse import wilson_interval
from rlvitals.metrics.coverage import pass_at_k_table
from rlvitals.metrics.resampling import Estimate, check_level, normal_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.metrics.histograms import Counts
    from rlvitals.metrics.rollouts import FloatArray


@dataclass(frozen=True, slots=True)
class CollapseAt:
    """Hold the collapse rate at group size ``n``, by outcome, with intervals.

    It rests on ``groups`` groups; ``left_out`` were too small to say anything. ``exact`` tells an
    unbiased count from a fit. ``never`` is the share of prompts that no group size helps, known
    from a fit only. ``bounds`` hold the expected rate whatever the spread of difficulty, but for
    the noise of the counts. Unless ``reliable``, ``reason`` says why not to build on it.
    """

    n: int
    all_fail: Estimate
    all_pass: Estimate
    rate: Estimate
    bounds: tuple[float, float]
    never: Estimate | None
    groups: int
    left_out: int
    exact: bool
    reliable: bool
    reason: str


def collapse_at_smaller(
    counts: Mapping[int, Sequence[int]], n: int, *, level: float = 0.95
) -> CollapseAt:
    """Count the collapse rate that groups of n would have had, without bias and without a fit.

    Of the n-subsets of a group with c of m correct, C(m-c, n) / C(m, n) fail altogether and
    C(c, n) / C(m, n) pass (hypergeometric); the mean over groups is unbiased for
    E[(1-p)^n] and E[p^n] whatever the spread of p. ``counts`` is ``Tally.counts``; groups of
    fewer than n are left out. The interval is Wilson's with as many trials as the spread between
    groups makes the mean worth: at least one a group, at most the number of disjoint subsets.
    Raises ValueError when no group has n rollouts.
    """
    check_request(n, level)
    held = judged_groups(counts)
    usable = {size: row for size, row in held.items() if size >= n}
    if not usable:
        raise ValueError(f"n: no group has {n} rollouts, the largest has {max(held)}")
    times, fail, passed = _subset_shares(usable, n)
    trials = sum(size / n * sum(row) for size, row in usable.items())
    all_fail, all_pass, rate = (
        _score_estimate(times, x, trials, level) for x in (fail, passed, fail + passed)
    )
    groups = sum(map(sum, usable.values()))
    return CollapseAt(
        n,
        all_fail,
        all_pass,
        rate,
        bounds=(rate.value, rate.value),
        never=None,
        groups=groups,
        left_out=sum(map(sum, held.values())) - groups,
        exact=True,
        reliable=True,
        reason="",
    )


def collapse_bounds(counts: Mapping[int, Sequence[int]], n: int) -> tuple[float, float]:
    """Bound the collapse rate at groups of n from below and above, whatever the spread of p.

    E[(1-p)^m] falls in m by a ratio that rises towards 1 (moments of 1 - p are log-convex), so
    from the smallest size m on it lies between F(m) (F(m) / F(m-1))^(n-m) and F(m), with F
    counted; likewise E[p^m]. The lower bound is reached when rates have one value on each side.
    The noise of the counts is not in it. Raises ValueError when n is below the smallest group.
    """
    held = judged_groups(counts)
    smallest = min(held)
    if n < smallest:
        raise ValueError(f"n: want {smallest} or more, the smallest group, got {n}")
    times, *now = _subset_shares(held, smallest)
    _, *before = _subset_shares(held, smallest - 1)
    here, there = (
        np.array([float(times @ x) for x in side]) / times.sum() for side in (now, before)
    )
    ratio = here / np.where(there > 0, there, 1.0)
    return min(1.0, float((here * ratio ** (n - smallest)).sum())), min(1.0, float(here.sum()))


def check_request(n: int, level: float) -> None:
    """Refuse a group size or an interval that cannot be."""
    if n < 1:
        raise ValueError(f"n: a group has at least one rollout, got {n}")
    check_level(level)


def _subset_shares(held: Counts, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give, for each cell, its groups and the shares of its n-subsets that all fail and pass."""
    times = np.concatenate([np.array(row, np.float64) for row in held.values()])
    fail = [1.0 - pass_at_k_table(size, n) for size in held]
    return times, np.concatenate(fail), np.concatenate([row[::-1] for row in fail])


def _score_estimate(times: FloatArray, x: FloatArray, trials: float, level: float) -> Estimate:
    """Estimate the mean of x in [0, 1] with Wilson's interval for the trials it is worth."""
    groups = float(times.sum())
    value = min(1.0, float(times @ x) / groups)
    spread = float(times @ (x - value) ** 2) / max(groups - 1, 1)
    worth = value * (1 - value) * groups / spread if spread > 0 else 0.0
    worth = min(max(worth, groups), max(trials, groups))
    return Estimate(value, *wilson_interval(value * worth, worth, normal_quantile(level)))
