"""Figures of the remedies on a tiny transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from plotly.subplots import make_subplots

from measuring.paired import difference, ratio
from measuring.report import COLOURS
from measuring.transformer_tables import BASE_ARM, by_arm, mixes, points, variations

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

Run = dict[str, Any]

WINDOW = 20  # steps that a drawn collapse rate is the mean of
EVERY = 2  # a point for every second step is enough for the eye
CONTROLLED, LOW = "AVSPO, controller", "SG low, log-prob"
_BLACK, _BLUE, _RED, _GREEN = COLOURS[6], COLOURS[0], COLOURS[1], COLOURS[2]


def draw_collapse(runs: Sequence[Run]) -> go.Figure:
    """Draw collapse over the steps of each mix: raw of both arms, effective under AVSPO."""
    figure = _panels(runs, "Collapse rate, ")
    for column, mix in enumerate(mixes(runs), 1):
        arms = by_arm(runs, mix)
        for name, arm, of, colour, dash in (
            ("GRPO, all-fail", BASE_ARM, ("all_fail",), _BLACK, "dot"),
            ("GRPO, both sides", BASE_ARM, ("all_fail", "all_pass"), _BLACK, "solid"),
            ("AVSPO, raw", CONTROLLED, ("all_fail", "all_pass"), _BLUE, "dash"),
            ("AVSPO, effective", CONTROLLED, ("acr_effective",), _BLUE, "solid"),
        ):
            each = [np.sum([run[part] for part in of], axis=0) for run in arms[arm]]
            smooth = np.convolve(np.mean(each, axis=0), np.ones(WINDOW) / WINDOW, "valid")
            _line(figure, column, name, WINDOW - 1, smooth, colour, dash)
    figure.update_yaxes(range=[0, 1])
    figure.update_yaxes(title_text=f"share of groups, mean of {WINDOW} steps", col=1)
    return _finish(figure)


def draw_gradient(runs: Sequence[Run]) -> go.Figure:
    """Draw the gradient norm of the first seed, on a log scale, with and without token weights."""
    figure = _panels(runs, "Gradient norm of seed 0, ")
    for column, mix in enumerate(mixes(runs), 1):
        arms = by_arm(runs, mix)
        for name, arm, colour in (("GRPO", BASE_ARM, _BLACK), (LOW, LOW, _RED)):
            _line(figure, column, name, 0, np.array(arms[arm][0]["grad_norm"]), colour, "solid")
    figure.update_yaxes(type="log", dtick=1)
    figure.update_yaxes(title_text="norm before clipping", col=1)
    return _finish(figure)


def draw_gains(runs: Sequence[Run]) -> go.Figure:
    """Draw paired differences of pass@1 and pass@8, and ratios of unsteadiness, by arm."""
    measures = {
        "pass@1, points": (0, lambda own, base: difference(points(own), points(base))),
        "pass@8, points": (0, lambda own, base: difference(points(own, 8), points(base, 8))),
        "change of log norm, ratio": (1, lambda own, base: ratio(*map(variations, (own, base)))),
    }
    figure = make_subplots(
        rows=1, cols=3, shared_yaxes=True, horizontal_spacing=0.05, subplot_titles=list(measures)
    )
    for column, (neutral, measure) in enumerate(measures.values(), 1):
        figure.add_vline(x=neutral, line={"color": "#888888", "width": 1}, col=column)
        for place, mix in enumerate(mixes(runs)):
            arms = by_arm(runs, mix)
            others = [arm for arm in arms if arm != BASE_ARM]
            found = [measure(arms[arm], arms[BASE_ARM]) for arm in others]
            rows = np.arange(len(others)) + 0.26 * (place - 0.5)
            figure.add_scatter(
                x=[item.mean for item in found],
                y=rows,
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [item.high - item.mean for item in found],
                    "arrayminus": [item.mean - item.low for item in found],
                    "thickness": 1.4,
                    "width": 3,
                },
                mode="markers",
                name=mix,
                showlegend=column == 1,
                marker={"color": (_BLUE, _RED)[place], "symbol": ("circle", "diamond")[place]},
                row=1,
                col=column,
            )
    names = [arm for arm in by_arm(runs, mixes(runs)[0]) if arm != BASE_ARM]
    figure.update_yaxes(range=[len(names) - 0.5, -0.5], tickvals=list(range(len(names))))
    figure.update_yaxes(ticktext=names, col=1)
    figure.update_xaxes(zeroline=False)
    legend = {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.1, "yanchor": "top"}
    return figure.update_layout(width=900, height=130 + 38 * len(names), legend=legend)


def _panels(runs: Sequence[Run], title: str) -> go.Figure:
    names = mixes(runs)
    return make_subplots(
        rows=1,
        cols=len(names),
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=[f"{title}{name} mix" for name in names],
    )


def _line(
    figure: go.Figure,
    column: int,
    name: str,
    start: int,
    values: NDArray[np.float64],
    colour: str,
    dash: str,
) -> None:
    figure.add_scatter(
        x=np.arange(start, start + len(values))[::EVERY],
        y=values[::EVERY].round(4),
        mode="lines",
        name=name,
        showlegend=column == 1,
        line={"color": colour, "dash": dash, "width": 1.8},
        row=1,
        col=column,
    )


def _finish(figure: go.Figure) -> go.Figure:
    figure.update_xaxes(title_text="step")
    legend = {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.2, "yanchor": "top"}
    return figure.update_layout(width=860, height=420, legend=legend)
