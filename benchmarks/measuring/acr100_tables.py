"""Tables of the forecast from the first 100 steps, beside the paper's (arXiv 2605.21125)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from measuring.collapse_paper import (
    CONFIGURATIONS,
    CORRELATION,
    INTERCEPT,
    MAIN_TABLE,
    PANELS,
    SLOPE,
)
from measuring.forecasting import FEATURES, Score, r_squared
from measuring.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def line_fit(rates: Floats, final: Floats) -> tuple[float, float, float, float]:
    """Fit final = intercept + slope rate; give intercept, slope, r and the in-sample R²."""
    slope, intercept = np.polyfit(rates, final, 1)
    correlation = float(np.corrcoef(rates, final)[0, 1])
    return float(intercept), float(slope), correlation, correlation**2


def published_line(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Apply the published line to (ACR100, accuracy in per cent); give R², MAE and r."""
    rates, accuracy = np.array(points, dtype=float).T
    foreseen = INTERCEPT + SLOPE * rates
    correlation = float(np.corrcoef(rates, accuracy)[0, 1])
    return (
        r_squared(foreseen, accuracy),
        float(np.abs(foreseen - accuracy).mean()),
        correlation,
    )


def published_table() -> str:
    """Lay out what the published line says of the paper's own numbers."""
    rows = [(before, low) for before, _, low, *_ in MAIN_TABLE.values()]
    points = {
        "six GRPO rows of the main table": rows,
        "25 points of the sensitivity figures": [
            pair for panel in PANELS.values() for pair in panel
        ],
        **{f"of these, {name}": panel for name, panel in PANELS.items()},
    }
    lines = []
    for name, pairs in points.items():
        r2, mae, correlation = published_line(pairs)
        lines.append([name, str(len(pairs)), f"{r2:.2f}", f"{mae:.1f}", f"{correlation:+.2f}"])
    return table({"points": "<", "n": ">", "R² of the line": ">", "MAE": ">", "r": ">"}, lines)


def line_table(designs: Mapping[str, tuple[Floats, Floats]]) -> str:
    """Lay out the line that fits (ACR100, final success) of each design, beside the paper's."""
    lines = []
    for name, (rates, final) in designs.items():
        intercept, slope, correlation, r2 = line_fit(rates, final)
        written = f"{100 * intercept:.1f} {100 * slope:+.1f} ACR100"
        lines.append([name, str(len(final)), written, f"{correlation:+.3f}", f"{r2:.3f}"])
    paper = f"{INTERCEPT} {SLOPE:+} ACR100"
    lines.append(["paper", str(CONFIGURATIONS), paper, f"{CORRELATION:+.3f}", "0.617"])
    return table({"design": "<", "n": ">", "line": "<", "r": ">", "in-sample R²": ">"}, lines)


def forecast_table(scores: Mapping[tuple[str, str], Score]) -> str:
    """Lay out R² on left-out configurations, and MAE and AUC of the quadratic model."""
    lines = []
    for name in FEATURES:
        best = scores[name, "quadratic"]
        gain, error = best.above(scores["ACR100", "line"])
        line = [f"{scores[name, model].r2:.3f}" for model in ("ridge", "quadratic", "boosting")]
        lines.append(
            [
                name,
                f"{scores[name, 'line'].r2:.3f}" if (name, "line") in scores else "",
                line[0],
                f"{line[1]} ± {best.r2_error:.3f}",
                line[2],
                f"{gain:+.3f} ± {error:.3f}",
                f"{best.mae:.1f}",
                f"{best.auc:.3f} ± {best.auc_error:.3f}",
            ]
        )
    columns = {"features": "<", **dict.fromkeys(("line", "ridge", "quadratic", "boosting"), ">")}
    return table(
        {**columns, "quadratic above line": ">", "MAE, points": ">", "AUC, lowest third": ">"},
        lines,
    )


def left_out_table(
    scores: Mapping[str, Mapping[tuple[str, str], Mapping[str, Score]]],
) -> str:
    """Lay out R² for abilities and difficulties that the fit has not seen."""
    lines = [
        [
            design,
            f"{name}, {model}",
            *(f"{found[what].r2:.2f}" for what in ("ability", "difficulty")),
            f"{found['difficulty'].auc:.2f}",
        ]
        for design, pairs in scores.items()
        for (name, model), found in pairs.items()
    ]
    return table(
        {
            "design": "<",
            "forecast": "<",
            "ability left out": ">",
            "difficulty left out": ">",
            "its AUC": ">",
        },
        lines,
    )
