"""Draw figures/group_size.svg: the collapse rate counted, foreseen and bounded, well and badly.

python docs/science/draw_group_size.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics import collapse_at_larger, collapse_at_smaller, expected_collapse
from rlvitals.metrics.smaller_groups import collapse_bounds

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from rlvitals.metrics import CollapseAt

GROUPS, ROLLOUTS = 1000, 8
SMALLER, LARGER = (2, 4, 8), (12, 16, 24, 32)
BLUE, ORANGE, GREEN = COLOURS[:3]


def main() -> None:
    """Draw a spread that the fit can follow beside one that it cannot."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("rates from Beta(.4, .6)", "half of the rates .05, half .9"),
        horizontal_spacing=0.1,
    )
    source = np.random.default_rng(0)
    _panel(figure, source.beta(0.4, 0.6, GROUPS), source, 1)
    _panel(figure, source.choice([0.05, 0.9], GROUPS), source, 2)
    figure.update_xaxes(title="rollouts of a group (log scale)", type="log", dtick=np.log10(2))
    figure.update_yaxes(range=[0, 1])
    figure.update_yaxes(title="advantage collapse rate", col=1)
    dress(figure)
    figure.update_layout(width=860, height=440, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/group_size.svg")


def _panel(figure: go.Figure, rates: np.ndarray, source: np.random.Generator, col: int) -> None:
    c = source.binomial(ROLLOUTS, rates)
    counts = {ROLLOUTS: np.bincount(c, minlength=ROLLOUTS + 1).tolist()}
    beyond = np.arange(ROLLOUTS, LARGER[-1] + 1).tolist()
    bounds = [collapse_bounds(counts, n) for n in beyond]
    figure.add_scatter(
        x=beyond + beyond[::-1],
        y=[low for low, _ in bounds] + [high for _, high in bounds[::-1]],
        fill="toself",
        fillcolor="rgba(230,159,0,0.18)",
        line={"width": 0},
        mode="lines",
        name="bounds without a fit",
        showlegend=col == 1,
        row=1,
        col=col,
    )
    _points(figure, [collapse_at_smaller(counts, n) for n in SMALLER], BLUE, "counted, 95 %", col)
    fitted = [collapse_at_larger(counts, n) for n in LARGER]
    _points(figure, fitted, GREEN, "fitted and reliable, 95 %", col)
    _points(figure, fitted, ORANGE, "fitted, marked unreliable", col)
    sizes = np.arange(SMALLER[0], LARGER[-1] + 1).tolist()
    figure.add_scatter(
        x=sizes,
        y=[expected_collapse(rates, n).rate for n in sizes],
        mode="lines",
        line={"color": COLOURS[6], "width": 1},
        name="truth",
        showlegend=col == 1,
        row=1,
        col=col,
    )


def _points(figure: go.Figure, ats: list[CollapseAt], colour: str, name: str, col: int) -> None:
    """Draw those of the points that the name speaks of; the legend has each name once."""
    ats = [at for at in ats if at.reliable == ("unreliable" not in name)]
    if not ats:
        return
    figure.add_scatter(
        x=[at.n for at in ats],
        y=[at.rate.value for at in ats],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [at.rate.high - at.rate.value for at in ats],
            "arrayminus": [at.rate.value - at.rate.low for at in ats],
            "thickness": 1.4,
            "width": 4,
        },
        mode="markers",
        marker={"color": colour, "size": 7},
        name=name,
        showlegend=(col == 1) or "unreliable" in name,
        row=1,
        col=col,
    )


if __name__ == "__main__":
    main()
