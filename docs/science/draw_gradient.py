"""Draw figures/gradient.svg: what a robust baseline sees, and how hard a group can pull.

python docs/science/draw_gradient.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics import (
    advantage_mass,
    exponential_average,
    log_norm_variation,
    outlier_rate,
    robust_baseline,
)
from rlvitals.metrics.gradient import FEWEST_BEFORE, OUTLIER_SCORE, OUTLIER_WINDOW

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

STEPS, HALF_LIFE = 200, 10
BLUE, ORANGE, GREEN = COLOURS[:3]


def norms() -> np.ndarray:
    """Make a run: noisy norms, two spikes, some dead steps and one that is not finite."""
    source = np.random.default_rng(4)
    series = 0.8 * np.exp(0.18 * source.standard_normal(STEPS))
    series[[70, 140]] *= [7, 4]
    series[[40, 41, 95, 96, 97]] = 0.0
    series[120] = np.nan
    return series


def main() -> None:
    """Draw both panels side by side."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("a run with spikes and dead steps", "pull of a group, 0-1 rewards"),
        horizontal_spacing=0.12,
        column_widths=[0.62, 0.38],
    )
    _run(figure, norms())
    _pull(figure)
    dress(figure)
    figure.update_layout(width=860, height=440, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/gradient.svg")


def _run(figure: go.Figure, series: np.ndarray) -> None:
    steps = list(range(STEPS))
    limit = [_limit(series[max(0, step - OUTLIER_WINDOW) : step]) for step in steps]
    smooth = exponential_average(series, HALF_LIFE)
    lines = (
        ("gradient norm", series, BLUE, "solid", 1.2),
        (f"average, half-life {HALF_LIFE}", smooth, GREEN, "solid", 2.5),
        (f"{OUTLIER_SCORE:g} robust sigmas above the median", limit, ORANGE, "dash", 1.5),
    )
    for name, values, colour, dash, width in lines:
        figure.add_scatter(
            x=steps,
            y=np.round(np.array(values, float), 3).tolist(),
            name=name,
            mode="lines",
            line={"color": colour, "dash": dash, "width": width},
            row=1,
            col=1,
        )
    figure.update_xaxes(title="step", row=1, col=1)
    figure.update_yaxes(title="norm of the gradient", range=[0, 7], row=1, col=1)
    print(f"outliers per 100 steps {outlier_rate(series):.2f}")
    print(f"mean change of the log norm {log_norm_variation(series):.3f}")


def _limit(past: np.ndarray) -> float:
    median, sigma = robust_baseline(past)
    known = np.isfinite(past) & (past != 0)
    return median + OUTLIER_SCORE * sigma if known.sum() >= FEWEST_BEFORE else np.nan


def _pull(figure: go.Figure) -> None:
    for n, colour in zip((16, 8, 4), COLOURS[3:], strict=False):
        c = np.arange(n + 1)
        figure.add_scatter(
            x=(c / n).tolist(),
            y=np.round(advantage_mass(n, c) / n, 4).tolist(),
            name=f"groups of {n}",
            mode="lines+markers",
            line={"color": colour, "width": 1},
            row=1,
            col=2,
        )
    figure.update_xaxes(title="share correct, c / n", row=1, col=2)
    figure.update_yaxes(title="mean |A| of a rollout", range=[0, 1.08], row=1, col=2)


if __name__ == "__main__":
    main()
