"""Pearson's test against scipy, by hand, and against its own promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from rlvitals.metrics.chi_square import chi_square_survival, chi_square_test


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 8, 13, 60, 501, 10_000])
def test_survival_agrees_with_scipy(df: int) -> None:
    """Ten digits are right from the body of the law to chances of 1e-100."""
    for statistic in (1e-8, 0.01, 1.0, 3.84, df, df + 5 * math.sqrt(df), 2 * df + 200):
        wanted = chi2.sf(statistic, df)
        assert chi_square_survival(statistic, df) == pytest.approx(wanted, rel=1e-9)


def test_survival_by_hand() -> None:
    """With 2 degrees it is exp(-x/2); 3.841459 leaves 5 % with one."""
    assert chi_square_survival(3.0, 2) == pytest.approx(math.exp(-1.5), rel=1e-14)
    assert chi_square_survival(3.841458820694124, 1) == pytest.approx(0.05, rel=1e-12)


def test_survival_at_the_ends() -> None:
    """Nothing is below 0, nothing above infinity, and a huge statistic underflows in silence."""
    for df in (1, 2, 7, 100_000):
        assert chi_square_survival(0.0, df) == 1.0
        assert chi_square_survival(math.inf, df) == 0.0
        assert chi_square_survival(1e7, df) == 0.0


@pytest.mark.parametrize(
    ("statistic", "df", "field"), [(-1, 3, "statistic"), (math.nan, 3, "statistic"), (1, 0, "df")]
)
def test_impossible_arguments_are_named(statistic: float, df: int, field: str) -> None:
    """A negative statistic or no degree of freedom raises a ValueError that names it."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        chi_square_survival(statistic, df)


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(1, 300))
def test_survival_falls(one: float, two: float, df: int) -> None:
    """It is a chance, and no greater for a greater statistic or for fewer degrees."""
    low, high = min(one, two), max(one, two)
    here = chi_square_survival(low, df)
    assert 0.0 <= chi_square_survival(high, df) <= here + 1e-12 <= 1.0 + 1e-12
    assert here <= chi_square_survival(low, df + 1) + 1e-12


def test_statistic_by_hand() -> None:
    """A die of 60 throws with (5, 15) for two of its sides: 25/10 + 25/10 on 5 degrees."""
    test = chi_square_test([([5, 15, 10, 10, 10, 10], [10] * 6)], 0)
    assert test.statistic == pytest.approx(5.0)
    assert test.df == 5
    assert test.p_value == pytest.approx(chi2.sf(5.0, 5))


def test_rare_cells_are_pooled_with_their_neighbours() -> None:
    """Expected 1, 2, 3, 9, 8 and 4 become 6, 9 and 12: each holds five, the rest joins the last."""
    expected = [1.0, 2.0, 3.0, 9.0, 8.0, 4.0]
    test = chi_square_test([([0, 0, 9, 9, 12, 4], expected)], 0)
    # Cells: 1+2+3 = 6 (seen 9), 9 (9), 8+4 = 12 (16).
    assert test.statistic == pytest.approx(9 / 6 + 0 + 16 / 12)
    assert test.df == 2


def test_a_table_loses_a_degree_and_so_does_a_parameter() -> None:
    """Two tables of three cells leave 4 degrees, less one a parameter; none left, no p-value."""
    tables = [([10, 10, 10], [9, 11, 10]), ([20, 10, 10], [19, 11, 10])]
    assert chi_square_test(tables, 0).df == 4
    assert chi_square_test(tables, 3).df == 1
    emptied = chi_square_test(tables, 4)
    assert (emptied.df, emptied.p_value) == (0, None)
    assert chi_square_test([([1, 1], [1.0, 1.0])], 2).p_value is None


def test_a_true_law_is_doubted_as_often_as_promised() -> None:
    """Of 4,000 samples of a known law 5 % have p < .05, within 4 standard errors."""
    law = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    drawn = np.random.default_rng(0).multinomial(400, law, size=4000)
    doubted = [chi_square_test([(row, 400 * law)], 0).p_value for row in drawn]
    share = float(np.mean([p is not None and p < 0.05 for p in doubted]))
    assert abs(share - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 4000)
