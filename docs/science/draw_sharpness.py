"""Draw figures/sharpness.svg: token weights over the logit, and what a shift of all logits does.

python docs/science/draw_sharpness.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.remedies import Sharpness, token_weights

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

SETTINGS = {
    "α 2, τ 1": Sharpness(2.0, 1.0, 0.1, 0.5, 1.5),
    "α 2, τ 4": Sharpness(2.0, 4.0, 0.1, 0.5, 1.5),
    "α 1, τ 1": Sharpness(1.0, 1.0, 0.1, 0.5, 1.5),
}
CHANCES = (0.6, 0.25, 0.1, 0.05)
SHIFTS = (-2.0, 0.0, 2.0, 4.0)


def main() -> None:
    """Draw both panels side by side."""
    titles = ("weight of a token, μ = .1", "one distribution, logits shifted")
    figure = make_subplots(1, 2, subplot_titles=titles, horizontal_spacing=0.13)
    _weights(figure)
    _shifts(figure)
    dress(figure)
    figure.update_layout(width=860, height=460, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/sharpness.svg")


def _weights(figure: go.Figure) -> None:
    h = np.linspace(-10, 10, 201)
    for (name, settings), colour in zip(SETTINGS.items(), COLOURS, strict=False):
        weights = token_weights(h, settings).weights.round(4).tolist()
        figure.add_scatter(x=h.tolist(), y=weights, name=name, line={"color": colour}, row=1, col=1)
    figure.update_xaxes(title="logit of the chosen token", row=1, col=1)
    figure.update_yaxes(title="weight", range=[0, 1.6], row=1, col=1)


def _shifts(figure: go.Figure) -> None:
    logits = np.log(CHANCES)
    for shift, colour in zip(SHIFTS, COLOURS[3:], strict=True):
        weights = token_weights(logits + shift, SETTINGS["α 2, τ 1"]).weights.round(4).tolist()
        figure.add_scatter(
            x=[str(chance) for chance in CHANCES],
            y=weights,
            name=f"shift {shift:+g}",
            mode="lines+markers",
            line={"color": colour},
            row=1,
            col=2,
        )
    figure.update_xaxes(title="probability of the token", type="category", row=1, col=2)
    figure.update_yaxes(range=[0, 1.6], row=1, col=2)


if __name__ == "__main__":
    main()
