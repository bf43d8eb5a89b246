"""Tail-miss chances must be those of groups that were drawn, and estimates as biased as stated."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import reproduce_tail_miss as script

GROUPS = 100_000


def test_drawn_groups_are_those_of_single_rollouts() -> None:
    """Enumerating all groups of 4 rollouts gives the truth that drawn groups are held to."""
    mu, rho = 0.3, 0.2
    chance = {"rare": mu * rho, "common": mu * (1 - rho), "wrong": 1 - mu}
    happens = 0.0
    for group in itertools.product(chance, repeat=4):
        if "wrong" in group and "common" in group and "rare" not in group:
            happens += float(np.prod([chance[rollout] for rollout in group]))
    drawn = script.missed(np.random.default_rng(0), mu, rho, 4, GROUPS)
    assert drawn.truth == pytest.approx(happens, abs=1e-12)
    assert abs(drawn.value - happens) < 4 * drawn.se


@pytest.mark.parametrize(
    ("mu", "rho", "n", "known"),
    [
        (0.5, 0.1, 8, 0.65783),
        (0.3, 0.05, 16, 0.78188),
        (0.8, 0.2, 4, 0.32850),
        (0.2, 0.01, 32, 0.93715),
        (0.05, 0.1, 8, 0.29727),
    ],
)
def test_the_lemma_meets_monte_carlo(mu: float, rho: float, n: int, known: float) -> None:
    """Lemma 3.1 has the value known before, and 100,000 drawn groups lie within 4 SE of it."""
    drawn = script.missed(np.random.default_rng(n), mu, rho, n, GROUPS)
    assert drawn.truth == pytest.approx(known, abs=5e-6)
    assert abs(drawn.sigmas) < 4


def test_all_points_of_the_figure_lie_on_their_curves() -> None:
    """No point of at least ten expected groups is 4.5 SE off, and four in five are within 2."""
    points = script.curve_points(10_000)
    off = np.array([abs(each.sigmas) for each in points.values() if each.truth * 10_000 >= 10])
    assert off.size > 60
    assert off.max() < 4.5
    assert np.mean(off < 2) > 0.8


def test_every_peak_is_found_by_search_and_nearly_by_hand() -> None:
    """N* is where a search over group sizes finds the peak, and the rule of thumb is within 1."""
    rows = script.peak_rows(script.curve_points(1000))
    assert len(rows) == 16
    assert all(row[2] == row[3] for row in rows)
    assert all(abs(int(row[2]) - float(row[4])) <= 1.0 for row in rows)


@pytest.mark.parametrize(("alpha", "beta"), script.SPREADS)
@pytest.mark.parametrize("rho", [0.05, 0.1, 0.3])
def test_realised_risk_is_unbiased_and_plug_in_is_not(
    alpha: float, beta: float, rho: float
) -> None:
    """Counted, realised and posterior lie within 4 SE of the truth; plug-in over 50 SE below."""
    found = script.estimates(alpha, beta, 8, 8, rho, GROUPS)
    assert all(abs(found[name].sigmas) < 4 for name in ("counted", "realised", "posterior"))
    assert found["plug-in"].sigmas < -50
    assert found["realised"].se < found["counted"].se


def test_larger_groups_are_foreseen_by_the_posterior_only() -> None:
    """From 8 rollouts to groups of 64, plug-in sees less than half of the risk of Beta(.6, .9)."""
    found = script.estimates(0.6, 0.9, 8, 64, 0.1, GROUPS)
    assert "realised" not in found
    assert abs(found["counted"].sigmas) < 4
    assert abs(found["posterior"].sigmas) < 4
    assert found["plug-in"].value < 0.5 * found["plug-in"].truth


def test_the_next_group_of_one_prompt_is_foreseen_by_the_posterior() -> None:
    """After c of 8 the posterior is within 4 SE of drawn groups; plug-in is .713 where it is .667.

    At 4 of 8 and a next group of 64 plug-in is .038 where the posterior is .064.
    """
    rows = {(int(row[0]), int(row[1])): row for row in script.one_group_rows(400_000)}
    assert len(rows) == len(script.ONE_GROUP)
    assert all(abs(float(row[4])) < 4 for row in rows.values())
    assert [float(cell) for cell in (rows[3, 8][3], rows[3, 8][5])] == [0.66736, 0.71310]
    assert [float(cell) for cell in (rows[4, 64][3], rows[4, 64][5])] == [0.06361, 0.03752]


def test_one_step_knows_its_risk_to_three_points() -> None:
    """The realised risk of 128 groups has a standard error of .03, and reports it as it is."""
    errors = script.step_errors(300_000)
    assert errors["seen"] == pytest.approx(0.03, abs=0.002)
    assert errors["reported"] == pytest.approx(errors["seen"], rel=0.06)


@pytest.mark.slow
def test_the_script_prints_and_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script runs from its command line and leaves its tables and a figure of both panels."""
    script.main(["--groups", "2000", "--save", str(tmp_path)])
    printed = capsys.readouterr().out
    assert (tmp_path / "tail-miss.md").read_text().splitlines()[0] in printed
    assert "| Beta(0.6, 0.9) | 8 → 64 |" in printed
    assert "peak at N* = 12" in (tmp_path / "tail-miss-curves.html").read_text().encode().decode(
        "unicode_escape"
    )
