"""The numbers a single Tally says about a step, a window or a run."""

from __future__ import annotations

import math
from operator import add, mul
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rlvitals.metrics.collapse import Collapse
from rlvitals.metrics.coverage import coverage_table

if TYPE_CHECKING:
    from rlvitals.metrics.tally import Tally

Vitals: TypeAlias = dict[str, float | None]


def vitals(tally: Tally, *, rho: float = 0.1) -> Vitals:
    """Derive every canonical number that one Tally determines; None where it is undefined.

    pass@k is given for k = 1, 2, 4, … and for the smallest judged group size N, never beyond, so
    that each judged group has a say in each of them. ``rho`` is the rare share of the correct
    mass in ``tail_miss_risk``.
    """
    return {
        **_collapse(tally),
        "reward_mean": tally.reward_mean if tally.rollouts else None,
        "reward_std": _reward_std(tally),
        "reward_std_within": _share(tally.std_sum, tally.groups),
        **_coverage(tally, rho),
        "groups": float(tally.groups),
        "rollouts": float(tally.rollouts),
        "singletons": float(tally.singletons),
    }


def pass_at_k_sizes(smallest: int) -> tuple[int, ...]:
    """List the k at which pass@k is given when the smallest judged group has so many rollouts."""
    powers = tuple(2**e for e in range(smallest.bit_length()))
    return powers if smallest in powers else (*powers, smallest)


def _collapse(tally: Tally) -> Vitals:
    shares = Collapse.from_tally(tally)
    return {
        "acr": shares.by_rewards.rate,
        "acr_all_fail": shares.all_fail.rate,
        "acr_all_pass": shares.all_pass.rate,
        "acr_constant": shares.constant.rate,
        "acr_outcome": shares.by_outcome.rate,
        "acr_effective": shares.effective.rate,
        "shaping_only": shares.shaping_only.rate,
    }


def _coverage(tally: Tally, rho: float) -> Vitals:
    counts = {n: row for n, row in tally.counts.items() if any(row)}
    if not counts:
        return {"success_rate": None, "tail_miss_risk": None}
    ks = pass_at_k_sizes(min(counts))
    sums = [0.0] * (len(ks) + 1)
    correct = rollouts = groups = 0
    for n, row in counts.items():
        sums = list(map(add, sums, (coverage_table(n, ks, rho) @ np.array(row, float)).tolist()))
        correct += sum(map(mul, row, range(n + 1)))
        rollouts += n * sum(row)
        groups += sum(row)
    *passes, missed = (total / groups for total in sums)
    return {
        "success_rate": correct / rollouts,
        **{f"pass_at_{k}": value for k, value in zip(ks, passes, strict=True)},
        "tail_miss_risk": missed,
    }


def _reward_std(tally: Tally) -> float | None:
    """Give the std (ddof=1) over all rollouts of all groups."""
    degrees = tally.rollouts - 1
    return math.sqrt(tally.reward_m2 / degrees) if degrees > 0 else None


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
