"""Figures of the forecast from the first 100 steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from measuring.collapse_paper import INTERCEPT, MAIN_TABLE, PANELS, SLOPE
from measuring.forecasting import FEATURES
from measuring.report import COLOURS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from measuring.forecasting import Score

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
SHOWN_SIZES = (2, 5, 8)  # three of seven keep the points apart, and the file small


def draw_designs(designs: Mapping[str, Sequence[tuple[float, float, float, int]]]) -> go.Figure:
    """Draw (ACR100, final success, difficulty, group size) of each design, and its line.

    The line is that of all points; those drawn have a group size of SHOWN_SIZES.
    """
    titles = {"mixed": "Easy and hard prompts", "hard": "Hard prompts only"}
    figure = make_subplots(
        rows=1,
        cols=len(designs),
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=[titles[name] for name in designs],
    )
    for col, points in enumerate(designs.values(), 1):
        rates, final, difficulty, size = np.array(points).T
        shown = np.isin(size, SHOWN_SIZES)
        figure.add_scatter(
            x=np.round(rates[shown], 3),
            y=np.round(final[shown], 3),
            mode="markers",
            marker={"size": 6, "color": difficulty[shown], "coloraxis": "coloraxis"},
            showlegend=False,
            row=1,
            col=col,
        )
        slope, intercept = np.polyfit(rates, final, 1)
        ends = np.array([rates.min(), rates.max()])
        figure.add_scatter(
            x=ends,
            y=intercept + slope * ends,
            mode="lines",
            line={"color": "#222222", "width": 1.6},
            showlegend=False,
            row=1,
            col=col,
        )
    figure.update_xaxes(title_text="ACR100, share of groups", range=[0, 1.02])
    figure.update_yaxes(title_text="final success on held-out prompts", range=[0, 1.02], col=1)
    bar = {"title": {"text": "mean<br>difficulty"}, "thickness": 12, "outlinewidth": 0}
    return figure.update_layout(
        width=860,
        height=430,
        coloraxis={"colorscale": "Cividis", "colorbar": bar},
    )


def draw_forecasts(scores: Mapping[str, Mapping[tuple[str, str], Score]]) -> go.Figure:
    """Draw R² on left-out configurations by features and model, for each design."""
    titles = {"mixed": "Easy and hard prompts", "hard": "Hard prompts only"}
    names = list(FEATURES)
    figure = make_subplots(
        rows=1,
        cols=len(scores),
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=[titles[name] for name in scores],
    )
    for col, found in enumerate(scores.values(), 1):
        for place, model in enumerate(("ridge", "quadratic", "boosting")):
            cells = [found[name, model] for name in names]
            figure.add_scatter(
                name=model,
                x=[cell.r2 for cell in cells],
                y=[row + 0.2 * (place - 1) for row in range(len(names))],
                error_x={
                    "type": "data",
                    "array": [2 * cell.r2_error for cell in cells],
                    "thickness": 1.2,
                    "width": 3,
                },
                mode="markers",
                marker={"size": 8, "symbol": SYMBOLS[place], "color": COLOURS[place]},
                showlegend=col == 1,
                row=1,
                col=col,
            )
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[f"{name} " for name in names],
        range=[len(names) - 0.5, -0.5],
        automargin=True,
    )
    figure.update_xaxes(title_text="out-of-sample R² (bars: 2 SE)", range=[-0.25, 1])
    return figure.update_layout(width=860, height=460, legend={"orientation": "h", "y": -0.2})


def draw_published() -> go.Figure:
    """Draw the paper's own points by what is varied, and the line published for all."""
    figure = go.Figure()
    table = [(before, low) for before, _, low, *_ in MAIN_TABLE.values()]
    for place, (name, pairs) in enumerate({"main table, GRPO": table, **PANELS}.items()):
        figure.add_scatter(
            x=[rate for rate, _ in pairs],
            y=[accuracy for _, accuracy in pairs],
            name=name,
            mode="markers",
            marker={
                "size": 9,
                "symbol": SYMBOLS[place],
                "color": (COLOURS[6], *COLOURS[:4])[place],
            },
        )
    ends = np.array([0.0, 0.8])
    figure.add_scatter(
        x=ends,
        y=INTERCEPT + SLOPE * ends,
        name="published line",
        mode="lines",
        line={"color": "#666666", "width": 2},
    )
    figure.update_xaxes(title_text="ACR100, share of groups", range=[0, 0.8])
    figure.update_yaxes(title_text="MATH-500, per cent", range=[20, 80])
    return figure.update_layout(width=760, height=430)
