"""Chances of c correct rollouts among n."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import FloatArray


@lru_cache(maxsize=64)
def log_choose(n: int) -> FloatArray:
    """Tabulate log C(n, c) for c = 0..n."""
    steps = np.log(np.arange(n, 0, -1.0) / np.arange(1.0, n + 1))
    table: FloatArray = np.concatenate([[0.0], np.cumsum(steps)])
    table[n // 2 + 1 :] = table[: (n + 1) // 2][::-1]  # the sum back to 0 would gather rounding
    table.flags.writeable = False
    return table


def binomial_chances(n: int, p: float) -> FloatArray:
    """Tabulate C(n, c) p^c (1 - p)^(n - c) for c = 0..n. Raises ValueError unless 0 <= p <= 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"p: want a chance between 0 and 1, got {p}")
    if n < 1:
        raise ValueError(f"n: a group has at least one rollout, got {n}")
    c = np.arange(n + 1)
    if p in (0, 1):
        return np.where(c == n * p, 1.0, 0.0)
    chances: FloatArray = np.exp(log_choose(n) + c * np.log(p) + (n - c) * np.log1p(-p))
    return chances
