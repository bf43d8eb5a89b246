"""Forecast where a run ends from its first 100 steps: ACR100 alone, and what beats it.

The paper (arXiv 2605.21125) fits final accuracy = 51.4 - 29.6 ACR100 over 245 configurations with
R² .617. This script applies the line to the paper's own numbers, and makes 245 configurations of
a simulated policy twice: with easy and hard prompts, and with hard ones only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from measuring.acr100_figures import draw_designs, draw_forecasts, draw_published
from measuring.acr100_tables import forecast_table, left_out_table, line_table, published_table
from measuring.collapse_paper import (
    CONFIGURATIONS,
    CORRELATION,
)
from measuring.forecasting import (
    FEATURES,
    Score,
    early_features,
    out_of_fold,
    score,
)
from measuring.report import arguments, publish
from policies.configurations import ABILITIES, DESIGNS, SIZES, Configuration, configurations
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

REGRESSORS = ("ridge", "quadratic", "boosting")
RICHEST = list(FEATURES)[-1]


def ends(runs: Sequence[Configuration]) -> Floats:
    """Give the final held-out success of each run."""
    return np.array([run.series.final for run in runs])


def early(runs: Sequence[Configuration]) -> list[dict[str, float]]:
    """Give the features of the first 100 steps of each run."""
    return [early_features(run.series, run.setting.size) for run in runs]


def points(runs: Sequence[Configuration]) -> list[tuple[float, float, float, int]]:
    """Give (ACR100, final success, mean difficulty, group size) of each run."""
    return [
        (row["acr"], run.series.final, run.setting.difficulty, run.setting.size)
        for row, run in zip(early(runs), runs, strict=True)
    ]


def correlation_p(correlation: float, count: int) -> float:
    """Give the two-sided p of a correlation among ``count`` pairs, by Student's t."""
    t = correlation * math.sqrt((count - 2) / (1 - correlation**2))
    return float(2 * stats.t.sf(abs(t), count - 2))


def forecasts(runs: Sequence[Configuration], repeats: int) -> dict[tuple[str, str], Score]:
    """Score every set of features with every model by ten random folds; ACR100 by a line too.

    Boosting, which takes long, is not repeated.
    """
    rows, final = early(runs), ends(runs)
    pairs = [("ACR100", "line"), *((name, model) for name in FEATURES for model in REGRESSORS)]
    return {
        (name, model): score(
            out_of_fold(rows, final, name, model, repeats=1 if model == "boosting" else repeats),
            final,
        )
        for name, model in pairs
    }


def left_out(runs: Sequence[Configuration]) -> dict[tuple[str, str], dict[str, Score]]:
    """Score forecasts for an ability, or a difficulty, that the fit has not seen."""
    rows, final = early(runs), ends(runs)
    apart = {
        "ability": [run.setting.ability for run in runs],
        "difficulty": [run.setting.difficulty for run in runs],
    }
    return {
        (name, model): {
            what: score(out_of_fold(rows, final, name, model, apart=values), final)
            for what, values in apart.items()
        }
        for name, model in (("ACR100", "line"), ("ACR100", "quadratic"), (RICHEST, "quadratic"))
    }


def main() -> None:
    """Print the tables, and leave them and the figures in --save."""
    asked = arguments(__doc__ or "")
    few = (ABILITIES, SIZES, 5) if asked.full else (ABILITIES[::2], SIZES[::2], 1)
    abilities, sizes, repeats = few
    designs = {
        name: configurations(difficulties if asked.full else difficulties[::2], abilities, sizes)
        for name, difficulties in DESIGNS.items()
    }
    scores = {name: forecasts(runs, repeats) for name, runs in designs.items()}
    unseen = {name: left_out(runs) for name, runs in designs.items()}
    forecast_tables = {name: forecast_table(found) for name, found in scores.items()}
    p_value = correlation_p(CORRELATION, CONFIGURATIONS)
    publish(
        "acr100",
        {
            f"The published line on the paper's own numbers (r, n give p = {p_value:.0e})": (
                published_table()
            ),
            "A line in ACR100, in sample": line_table(
                {
                    name: (np.array([row["acr"] for row in early(runs)]), ends(runs))
                    for name, runs in designs.items()
                }
            ),
            **{
                f"R² on left-out configurations, {name}, {repeats} x 10 folds": rows
                for name, rows in forecast_tables.items()
            },
            "R² for an ability or a difficulty not seen": left_out_table(unseen),
        },
        {
            "acr100-designs": draw_designs({name: points(runs) for name, runs in designs.items()}),
            "acr100-forecast": draw_forecasts(scores),
            "acr100-published": draw_published(),
        },
        asked.save,
    )


if __name__ == "__main__":
    main()
