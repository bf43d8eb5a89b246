"""Draw figures/efficiency.svg: what prompts have to teach, and what leaving out collapse costs.

python docs/science/draw_efficiency.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics import Spread, dynamic_sampling_price, learnability

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

SIZES = (2, 4, 8, 16, 32, 64)
SPREADS = {
    "rates from Beta(.4, .6)": Spread(0.4, 0.6),
    "half never solved, else Beta(1, 2)": Spread(1.0, 2.0, never=0.5),
    "rates from Beta(2, 2)": Spread(2.0, 2.0),
}


def main() -> None:
    """Draw both panels side by side."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("learnability of a prompt", "price of dynamic sampling"),
        horizontal_spacing=0.13,
    )
    _learnability(figure)
    _price(figure)
    dress(figure)
    figure.update_layout(width=860, height=460, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/efficiency.svg")


def _learnability(figure: go.Figure) -> None:
    p = np.linspace(0, 1, 101)
    for n, colour in zip((2, 4, 8, 64), COLOURS, strict=False):
        figure.add_scatter(
            x=p.tolist(),
            y=learnability(p, n).round(5).tolist(),
            mode="lines",
            line={"color": colour},
            name=f"{n} rollouts",
            row=1,
            col=1,
        )
    figure.update_xaxes(title="success rate of the prompt", row=1, col=1)
    figure.update_yaxes(title="expected reward std of a group", range=[0, 0.52], row=1, col=1)


def _price(figure: go.Figure) -> None:
    for (name, spread), colour in zip(SPREADS.items(), COLOURS[4:], strict=True):
        figure.add_scatter(
            x=SIZES,
            y=[dynamic_sampling_price(spread.all_fail(n) + spread.all_pass(n)) for n in SIZES],
            mode="lines+markers",
            line={"color": colour},
            name=name,
            row=1,
            col=2,
        )
    figure.update_xaxes(
        title="rollouts of a group (log scale)", type="log", dtick=np.log10(2), row=1, col=2
    )
    figure.update_yaxes(title="extra groups for each kept one", range=[0, 3.2], row=1, col=2)


if __name__ == "__main__":
    main()
