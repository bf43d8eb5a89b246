"""The tables that turn counted groups into means."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from rlvitals.metrics import pass_at_k, realised_tail_miss
from rlvitals.metrics.coverage import coverage_table, pass_at_k_table


@pytest.mark.parametrize("n", [17, 256, 1024])
def test_pass_at_k_table_keeps_all_digits(n: int) -> None:
    """The sweep over c agrees with exact fractions to 1e-13, relative."""
    for k in (1, 2, n // 3, n - 1, n):
        table = pass_at_k_table(n, k)
        for c in (0, 1, 2, n // 2, n - 1, n):
            exact = float(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))
            assert table[c] == pytest.approx(exact, rel=1e-13)


def test_coverage_table_holds_each_formula() -> None:
    """Rows are pass@k for each k, then realised tail-miss; nobody can write into it."""
    table = coverage_table(8, (1, 4), 0.1)
    assert table[0].tolist() == pytest.approx([c / 8 for c in range(9)])
    assert table[1].tolist() == pytest.approx(pass_at_k(8, list(range(9)), 4).tolist())
    assert table[2].tolist() == realised_tail_miss(8, list(range(9))).tolist()
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1.0


def test_a_hundred_thousand_rollouts_have_a_table() -> None:
    """At n = 1e5 both ends are exact, and every row stays within [0, 1]."""
    table = coverage_table(100_000, (1, 100_000), 0.1)
    assert table[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert table[:2, -1].tolist() == [1.0, 1.0]
    assert np.isfinite(table).all()
    assert table.min() == 0.0
    assert table.max() == 1.0
