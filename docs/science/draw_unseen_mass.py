"""Draw figures/unseen_mass.svg: one group says nothing, many groups find the unseen mass.

python docs/science/draw_unseen_mass.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics.unseen import unseen_mass

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

SOLUTIONS, CORRECT, ROLLOUTS = 20, 0.6, 8
SHOWN, MOST = 250, 2048


def main() -> None:
    """Draw both panels side by side."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("one group at a time: no use", "means over groups: close"),
        horizontal_spacing=0.12,
    )
    weights = 1 / np.arange(1, SOLUTIONS + 1)
    signatures, unseen = _draw(CORRECT * weights / weights.sum())
    _alone(figure, signatures[:SHOWN], unseen[:SHOWN])
    _together(figure, signatures, unseen)
    dress(figure)
    figure.update_layout(width=860, height=440, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/unseen_mass.svg")


def _draw(p: np.ndarray) -> tuple[list[list[int]], np.ndarray]:
    source = np.random.default_rng(4)
    picks = source.choice(len(p) + 1, (MOST, ROLLOUTS), p=[*p, 1 - p.sum()])
    signatures = [row[row < len(p)].tolist() for row in picks]
    return signatures, np.array([p.sum() - p[list(set(row))].sum() for row in signatures])


def _alone(figure: go.Figure, signatures: list[list[int]], unseen: np.ndarray) -> None:
    once = [sum(row.count(kind) == 1 for kind in set(row)) / ROLLOUTS for row in signatures]
    figure.add_scatter(
        x=unseen.round(3),
        y=once,
        mode="markers",
        marker={"color": COLOURS[0], "size": 5, "opacity": 0.5},
        name="a group of 8",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=[0.05, 0.62],
        y=[0.05, 0.62],
        mode="lines",
        line={"color": COLOURS[6], "width": 1},
        name="estimate = truth",
        row=1,
        col=1,
    )
    figure.update_xaxes(title="truly unseen correct mass", range=[0.05, 0.65], col=1)
    figure.update_yaxes(title="f1 / n of that group", range=[-0.02, 0.9], col=1)


def _together(figure: go.Figure, signatures: list[list[int]], unseen: np.ndarray) -> None:
    batches = [2**e for e in range(5, 12)]
    masses = [unseen_mass(signatures[:size], [ROLLOUTS] * size) for size in batches]
    for shift, estimates, colour, name in (
        (0.97, [mass.good_turing for mass in masses], COLOURS[1], "Good-Turing, 95 %"),
        (1.03, [mass.chao_jost for mass in masses], COLOURS[2], "Chao-Jost, 95 %"),
    ):
        figure.add_scatter(
            x=[size * shift for size in batches],
            y=[mean.value for mean in estimates],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [mean.high - mean.value for mean in estimates],
                "arrayminus": [mean.value - mean.low for mean in estimates],
                "thickness": 1.2,
                "width": 3,
            },
            mode="markers",
            marker={"color": colour, "size": 7},
            name=name,
            row=1,
            col=2,
        )
    figure.add_scatter(
        x=[batches[0], batches[-1]],
        y=[unseen.mean()] * 2,
        mode="lines",
        line={"color": COLOURS[6], "width": 1, "dash": "dot"},
        name="true mean",
        row=1,
        col=2,
    )
    figure.update_xaxes(title="groups (log scale)", type="log", dtick=np.log10(4), col=2)
    figure.update_yaxes(title="mean unseen correct mass", range=[0.2, 0.55], col=2)


if __name__ == "__main__":
    main()
