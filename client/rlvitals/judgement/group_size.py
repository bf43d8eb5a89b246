"""What share of groups would teach nothing if they had another size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def collapse_at_size(counts: Mapping[int, Sequence[int]], size: int) -> float | None:
    """Predict the share of all-fail and all-pass groups at another group size.

    ``counts[n][c]`` as in a Tally. Where n >= ``size`` the hypergeometric chance that ``size``
    of the n rollouts agree is exact and needs no model. Beyond n a beta-binomial matched to mean
    and variance of c extrapolates; it takes difficulty to vary smoothly over prompts, and misses
    by some .2 where prompts are either trivial or hopeless. None without judged groups.
    """
    parts = [(sum(row), _one_size(n, row, size)) for n, row in counts.items() if sum(row)]
    groups = sum(held for held, _ in parts)
    return math.fsum(held * share for held, share in parts) / groups if groups else None


def _one_size(n: int, row: Sequence[int], size: int) -> float:
    return _exact(n, row, size) if size <= n else _extrapolated(n, row, size)


def _exact(n: int, row: Sequence[int], size: int) -> float:
    ways = math.comb(n, size)
    agreeing = sum(
        held * (math.comb(n - c, size) + math.comb(c, size)) for c, held in enumerate(row)
    )
    return agreeing / ways / sum(row)


def _extrapolated(n: int, row: Sequence[int], size: int) -> float:
    success, correlation = _moments(n, row)
    if correlation <= 0:
        return success**size + (1 - success) ** size
    if correlation >= 1:
        return 1.0
    weight = (1 - correlation) / correlation
    right, wrong = success * weight, (1 - success) * weight
    total = math.prod((right + i) / (weight + i) for i in range(size))
    return total + math.prod((wrong + i) / (weight + i) for i in range(size))


def _moments(n: int, row: Sequence[int]) -> tuple[float, float]:
    """Give the success rate and the correlation of two rollouts of the same group."""
    groups = sum(row)
    success = sum(held * c for c, held in enumerate(row)) / (groups * n)
    spread = success * (1 - success)
    if spread == 0:
        return success, 0.0
    variance = sum(held * (c - n * success) ** 2 for c, held in enumerate(row)) / groups
    return success, (variance / (n * spread) - 1) / (n - 1)
