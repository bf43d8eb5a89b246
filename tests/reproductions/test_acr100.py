"""The forecast from 100 steps must score what it never saw, and the published line as it is."""

from __future__ import annotations

import itertools
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import reproduce_acr100 as script
from measuring.acr100_tables import line_fit, published_line
from measuring.collapse_paper import CONFIGURATIONS, CORRELATION, MAIN_TABLE, PANELS
from measuring.forecasting import FEATURES, early_features, out_of_fold, r_squared, score
from policies.configurations import DESIGNS, Configuration, configurations
from policies.logistic import Series, Setting, simulate


@cache
def runs(design: str) -> list[Configuration]:
    """Make 100 configurations of a design, once for all tests."""
    return configurations(DESIGNS[design][::2], sizes=(2, 3, 4, 6, 8))


def test_the_published_line_misses_the_papers_own_rows() -> None:
    """R² -.47 and MAE 19.5 on the six GRPO rows, R² -4.5 and MAE 14.9 on the 25 points."""
    rows = [(before, low) for before, _, low, *_ in MAIN_TABLE.values()]
    assert published_line(rows)[:2] == pytest.approx((-0.47, 19.5), abs=0.05)
    points = list(itertools.chain(*PANELS.values()))
    assert len(points) == 25
    assert published_line(points)[:2] == pytest.approx((-4.5, 14.9), abs=0.05)


def test_the_sign_is_reversed_over_temperature() -> None:
    """Correlations by panel are -.76, +.77, -.80 and -.54."""
    found = {name: published_line(panel)[2] for name, panel in PANELS.items()}
    want = {"model size": -0.76, "temperature": 0.77, "group size": -0.80, "difficulty": -0.54}
    assert found == pytest.approx(want, abs=0.005)


def test_the_published_p_does_not_fit_the_published_n() -> None:
    """R = -.785 among 245 pairs has p = 2e-52; p = 1e-8 takes about 35 to 40 pairs."""
    assert script.correlation_p(CORRELATION, CONFIGURATIONS) == pytest.approx(2e-52, rel=0.3)
    assert script.correlation_p(CORRELATION, 40) < 1e-8 < script.correlation_p(CORRELATION, 30)


def test_a_line_is_found_again() -> None:
    """Points on 2 - 3 x give intercept 2, slope -3, r -1 and R² 1."""
    rates = np.array([0.1, 0.2, 0.5])
    assert line_fit(rates, 2 - 3 * rates) == pytest.approx((2, -3, -1, 1))


def test_early_features_see_the_first_steps_only() -> None:
    """Features of 100 steps are the same in a run of 100 steps and in a longer one."""
    short = simulate(Setting(steps=100), 1)
    long = Series(*(np.append(getattr(short, name), [9.0] * 50) for name in Series.__slots__))
    assert early_features(long, 8) == early_features(short, 8)
    assert set(itertools.chain(*FEATURES.values())) <= set(early_features(short, 8))


def test_slope_and_change_are_over_the_window() -> None:
    """A reward that grows by .01 a step has slope 1; an ACR of .2 then .6 changes by .4."""
    zeros = np.zeros(100)
    series = Series(*(zeros for _ in Series.__slots__))
    grown = {"reward": np.arange(100) / 100, "all_fail": np.repeat([0.2, 0.6], 50)}
    for name, values in grown.items():
        object.__setattr__(series, name, values)
    found = early_features(series, 4)
    assert found["reward_slope"] == pytest.approx(1.0)
    assert found["acr_change"] == pytest.approx(0.4)
    assert found["size"] == 4


def test_noise_is_not_forecast() -> None:
    """Ends that have nothing to do with the features get an R² below .05 by every model."""
    rng = np.random.default_rng(0)
    rows = [{"acr": value} for value in rng.random(120)]
    ends = rng.random(120)
    for model in ("line", "ridge", "quadratic"):
        assert r_squared(out_of_fold(rows, ends, "ACR100", model)[0], ends) < 0.05


def test_a_parabola_is_forecast_by_the_quadratic_only() -> None:
    """Y = (x - .5)^2 is beyond a line (R² < .1) and within a quadratic (R² > .95)."""
    x = np.random.default_rng(1).random(120)
    rows, ends = [{"acr": value} for value in x], (x - 0.5) ** 2
    assert r_squared(out_of_fold(rows, ends, "ACR100", "line")[0], ends) < 0.1
    assert r_squared(out_of_fold(rows, ends, "ACR100", "quadratic")[0], ends) > 0.95


def test_what_is_left_out_is_not_seen() -> None:
    """Predictions for a value that was left out do not change with the ends found there."""
    x = np.random.default_rng(2).random(60)
    apart = np.repeat([0.0, 1.0, 2.0], 20)
    rows = [{"acr": value} for value in x]
    ends = 1 - x
    other = np.where(apart == 1, 7.0, ends)
    first = out_of_fold(rows, ends, "ACR100", "line", apart=apart)[0]
    second = out_of_fold(rows, other, "ACR100", "line", apart=apart)[0]
    assert np.allclose(first[apart == 1], second[apart == 1])
    assert not np.allclose(first[apart == 0], second[apart == 0])


def test_the_auc_counts_pairs() -> None:
    """It is the share of (low, other) pairs foreseen in the right order, ties counting half."""
    rng = np.random.default_rng(3)
    ends = rng.random(30)
    foreseen = np.round(ends + rng.normal(0, 0.3, 30), 1)  # rounded, so that there are ties
    low = ends < np.quantile(ends, 1 / 3)
    pairs = [
        1.0 if a < b else 0.5 if a == b else 0.0 for a in foreseen[low] for b in foreseen[~low]
    ]
    found = score(foreseen[None], ends, draws=50)
    assert found.auc == pytest.approx(np.mean(pairs))
    assert found.mae == pytest.approx(100 * np.abs(foreseen - ends).mean())
    assert found.above(found) == (0.0, 0.0)


def test_configurations_differ_in_luck_and_learning_rate() -> None:
    """Two by two by two settings are eight, each with its own rate, and repeat to the last bit."""
    made, again = (configurations((0.0, 2.0), (-1.0, 1.0), (2, 4), steps=5) for _ in range(2))
    assert len({run.setting.lr for run in made}) == len(made) == 8
    assert {(run.setting.ability, run.setting.difficulty, run.setting.size) for run in made} == set(
        itertools.product((-1.0, 1.0), (0.0, 2.0), (2, 4))
    )
    assert [run.series.final for run in made] == [run.series.final for run in again]


def test_the_published_r2_takes_hard_prompts_only() -> None:
    """A line in ACR100 fits hard prompts (R² > .5, r < -.7), and not easy and hard ones (< .45)."""
    fits = {}
    for design in DESIGNS:
        rates = np.array([row["acr"] for row in script.early(runs(design))])
        fits[design] = line_fit(rates, script.ends(runs(design)))
    assert fits["hard"][3] > 0.5
    assert fits["hard"][2] < -0.7
    assert fits["mixed"][3] < 0.45


def test_the_two_sides_and_the_reward_beat_the_line_on_mixed_prompts() -> None:
    """Out of sample the richer forecast has a higher R² by .1 or more, with easy prompts among."""
    rows, ends = script.early(runs("mixed")), script.ends(runs("mixed"))
    line = score(out_of_fold(rows, ends, "ACR100", "line"), ends)
    rich = score(out_of_fold(rows, ends, "split + reward + slope", "quadratic"), ends)
    assert rich.r2 - line.r2 > 0.1


def test_ranking_is_easier_than_predicting() -> None:
    """On hard prompts ACR100 alone finds the lowest third with an AUC above .85."""
    rows, ends = script.early(runs("hard")), script.ends(runs("hard"))
    assert score(out_of_fold(rows, ends, "ACR100", "line"), ends).auc > 0.85
