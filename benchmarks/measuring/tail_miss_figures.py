"""Figures of the tail-miss chance: curves over the group size, and the groups that were drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np
from plotly.subplots import make_subplots

from measuring.report import COLOURS
from rlvitals.metrics import peak_group_size, tail_miss_probability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    Pair = tuple[float, float]  # mu and rho


class Point(Protocol):
    """What was drawn at one group size."""

    @property
    def value(self) -> float:
        """Give the share of groups."""

    @property
    def se(self) -> float:
        """Give its standard error."""


def curves(
    points: Mapping[tuple[float, float, int], Point],
    panels: Mapping[str, Mapping[Pair, str]],
    sizes: Sequence[int],
) -> go.Figure:
    """Draw Lemma 3.1 over N in two panels, each a title over named pairs of mu and rho."""
    figure = make_subplots(
        1, 2, subplot_titles=list(panels), horizontal_spacing=0.07, shared_yaxes=True
    )
    for column, pairs in enumerate(panels.values(), start=1):
        for (pair, name), colour in zip(pairs.items(), COLOURS, strict=False):
            drawn = [points[pair[0], pair[1], n] for n in sizes]
            _curve(figure, pair, (sizes, drawn), colour, name, column)
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker={"color": "white", "size": 6, "line": {"color": "#555555", "width": 1.5}},
        name="groups drawn, ± 2 standard errors",
        row=1,
        col=1,
    )
    figure.update_xaxes(
        title="group size N (rollouts, log scale)",
        type="log",
        tickvals=sizes[::2],
        range=[0, math.log10(1.4 * sizes[-1])],
    )
    figure.update_yaxes(range=[0, 1.05])
    figure.update_yaxes(title="chance to teach and miss the rare part", col=1)
    below = {"y": -0.2, "xanchor": "left", "yanchor": "top", "traceorder": "normal"}
    return figure.update_layout(
        width=860, height=520, legend={"x": 0, **below}, legend2={"x": 0.535, **below}
    )


def _curve(
    figure: go.Figure,
    pair: Pair,
    sampled: tuple[Sequence[int], Sequence[Point]],
    colour: str,
    name: str,
    column: int,
) -> None:
    mu, rho = pair
    sizes, drawn = sampled
    every = np.unique(np.geomspace(1, sizes[-1], 60).round().astype(int))
    peak = peak_group_size(mu, rho * mu)
    place = {"row": 1, "col": column, "legend": "legend" if column == 1 else "legend2"}
    chances = tail_miss_probability(every, mu, rho * mu)
    figure.add_scatter(
        x=every, y=chances, line={"color": colour}, name=f"{name}, peak at N* = {peak}", **place
    )
    figure.add_scatter(
        x=sizes,
        y=[each.value for each in drawn],
        error_y={"array": [2 * each.se for each in drawn], "thickness": 1.2, "width": 3},
        mode="markers",
        marker={"color": "white", "size": 6, "line": {"color": colour, "width": 1.5}},
        showlegend=False,
        **place,
    )
    figure.add_scatter(
        x=[peak],
        y=[tail_miss_probability(peak, mu, rho * mu)],
        mode="markers",
        marker={"color": colour, "symbol": "diamond", "size": 10},
        showlegend=False,
        **place,
    )
