"""How hard a group pulls at the policy, and how hard one rollout can."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

BOUND_SLACK = 0.01


def advantage_mass(n: ArrayLike, c: ArrayLike) -> Any:
    """Give sum |A| over a group with c of n correct: 2 n sqrt(p (1-p)) with p = c / n.

    For 0-1 rewards standardised with the population std (ddof=0, eps=0); with ddof=1 it is
    sqrt((n-1) / n) of that. 0 for a collapsed group, n at p = 1/2. Arrays broadcast; scalars give
    a float. Raises ValueError unless 0 <= c <= n and n >= 1.
    """
    size, correct = np.asarray(n, np.float64), np.asarray(c, np.float64)
    if not (size >= 1).all():
        raise ValueError("n: a group has at least one rollout")
    if not ((correct >= 0) & (correct <= size)).all():
        raise ValueError("c: want 0 <= c <= n")
    mass = 2.0 * np.sqrt(correct * (size - correct))
    return float(mass) if mass.ndim == 0 else mass


def total_advantage_mass(counts: Mapping[int, Sequence[int]]) -> float:
    """Sum ``advantage_mass`` over counted groups (``Tally.counts``).

    Divided by the number of rollouts it is the mean |A|: what share of the largest possible pull
    a step had, whatever the collapse rate says about the number of groups.
    """
    return math.fsum(
        float(advantage_mass(n, np.arange(n + 1)) @ np.asarray(row, np.float64))
        for n, row in counts.items()
    )


def advantage_bound(n: int, *, ddof: int = 1) -> float:
    """Give the largest |A| that one rollout of a group of n can have, whatever the rewards.

    (n-1) / sqrt(n) with the sample std (ddof=1) and sqrt(n-1) with the population std (ddof=0):
    reached when one reward differs from n-1 equal ones (Samuelson, 1968). A trainer whose
    advantages exceed it does not standardise within groups of n. Raises ValueError unless n >= 2
    and ddof is 0 or 1.
    """
    if n < 2:  # noqa: PLR2004
        raise ValueError(f"n: want a group of two or more, got {n}")
    if ddof not in (0, 1):
        raise ValueError(f"ddof: want 0 or 1, got {ddof}")
    return (n - 1) / math.sqrt(n) if ddof else math.sqrt(n - 1)


def advantages_beyond_bound(advantages: ArrayLike, n: int, *, ddof: int = 1) -> int:
    """Count the advantages that no group of n can give: |A| above ``advantage_bound``.

    Not a finite number counts too. Rounding of a hundredth is let pass, as bfloat16 has it.
    """
    size = np.abs(np.asarray(advantages, np.float64))
    return int(np.count_nonzero(~(size <= advantage_bound(n, ddof=ddof) * (1 + BOUND_SLACK))))
