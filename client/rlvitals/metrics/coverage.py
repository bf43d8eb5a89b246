"""Tables over c = 0..n, so that counted groups turn into means by one matrix product."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.tail_miss import realised_tail_miss

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import FloatArray


def pass_at_k_table(n: int, k: int) -> FloatArray:
    """Tabulate pass@k for c = 0..n in one sweep, from the same product as ``pass_at_k``."""
    terms = np.log1p(-k / np.arange(n, k, -1, dtype=np.float64))
    table = np.ones(n + 1)
    table[: n - k + 1] = -np.expm1(np.concatenate([[0.0], np.cumsum(terms)]))
    return table


@lru_cache(maxsize=128)
def coverage_table(n: int, ks: tuple[int, ...], rho: float) -> FloatArray:
    """Tabulate pass@k for each k, then realised tail-miss, for c = 0..n; (len(ks) + 1, n + 1)."""
    rows = [pass_at_k_table(n, k) for k in ks]
    table = np.stack([*rows, realised_tail_miss(n, np.arange(n + 1), rho)])
    table.flags.writeable = False
    return table
