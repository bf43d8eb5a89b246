"""Figures of the categorical policy: what it keeps over the group size, and on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from measuring.categorical import spot
from measuring.categorical_reference import REFERENCE
from measuring.report import COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from measuring.categorical import Runs

DASHES = {0.0: "solid", 0.5: "dash", 1.0: "dot"}
EVERY = 10  # steps between two points of a path


def curves(runs: Runs, actions: int) -> go.Figure:
    """Draw retention and mass over N, a line for each gamma, dots for the earlier run."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("correct mass retained, M_ret", "mass of correct actions, Q_pos"),
        horizontal_spacing=0.1,
    )
    known = REFERENCE.get(actions, {})
    for gamma in sorted({gamma for _, gamma in runs}):
        colour = COLOURS[round(2 * gamma) % len(COLOURS)]  # the same in every figure
        sizes = [n for n, other in runs if other == gamma]
        for column, name in enumerate(("retention", "q"), start=1):
            spots = [spot(getattr(runs[n, gamma], name)) for n in sizes]
            figure.add_scatter(
                x=sizes,
                y=[each.mean for each in spots],
                error_y={"array": [each.sd for each in spots], "thickness": 1.2, "width": 3},
                line={"color": colour},
                name=f"γ = {gamma:g}",
                legendgroup=f"{gamma}",
                showlegend=column == 1,
                row=1,
                col=column,
            )
            figure.add_scatter(
                x=sizes,
                y=[known.get((n, gamma), (None, None))[2 - column] for n in sizes],
                mode="markers",
                marker={"symbol": "circle-open", "color": colour, "size": 11},
                showlegend=False,
                row=1,
                col=column,
            )
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker={"symbol": "circle-open", "color": "#555555", "size": 11},
        name="earlier run",
        row=1,
        col=1,
    )
    ticks = sorted({n for n, _ in runs})
    shown = ticks if len(ticks) < 8 else ticks[::2]
    labels = [f"{n // 1024}k" if n >= 2048 else str(n) for n in shown]
    figure.update_xaxes(
        title="group size N (rollouts, log scale)", type="log", tickvals=shown, ticktext=labels
    )
    lowest = min(float(outcome.q.min()) for outcome in runs.values())
    figure.update_yaxes(title="share of the first correct mass", range=[0, 1.05], col=1)
    figure.update_yaxes(title="probability", range=[lowest - 0.03, 1.01], col=2)
    return figure.update_layout(
        width=860, height=430, legend={"orientation": "h", "y": -0.22, "x": 0}
    )


def paths(runs: Runs, sizes: Sequence[int]) -> go.Figure:
    """Draw retention over correct mass while the policy learns, means over seeds.

    A colour for each group size, a dash for each gamma, a dot where a run ended.
    """
    figure = make_subplots(1, 1)
    for (n, gamma), outcome in runs.items():
        if n not in sizes:
            continue
        q, kept = outcome.q_path.mean(axis=1), outcome.retention_path.mean(axis=1)
        colour = COLOURS[sizes.index(n)]
        figure.add_scatter(
            x=q[::EVERY],
            y=kept[::EVERY],
            mode="lines",
            line={"color": colour, "dash": DASHES[gamma], "width": 2},
            name=f"N = {n}",
            showlegend=not gamma,
        )
        figure.add_scatter(
            x=q[-1:], y=kept[-1:], mode="markers", marker={"color": colour}, showlegend=False
        )
    for gamma in sorted({gamma for _, gamma in runs}):
        grey = {"color": "#555555", "dash": DASHES[gamma], "width": 2}
        figure.add_scatter(x=[None], y=[None], mode="lines", line=grey, name=f"γ = {gamma:g}")
    figure.update_xaxes(title="mass of correct actions, Q_pos (probability)", range=[0.62, 1.01])
    figure.update_yaxes(title="share of the first correct mass kept, M_ret", range=[0, 1.05])
    return figure.update_layout(width=760, height=460)
