"""Tables and figures of the categorical policy, beside an earlier run of the same recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from measuring.report import COLOURS
from measuring.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import plotly.graph_objects as go
    from policies.categorical import Outcome

    Runs = Mapping[tuple[int, float], Outcome]  # by N and gamma

# By actions, N and gamma: mass of correct actions and retention, of another implementation
# (four seeds at 1,280 actions, one at 128,000; the std of retention is known for gamma 0 only).
_SMALL = {
    2: ((0.852, 0.683), (0.852, 0.683), (0.852, 0.683)),
    4: ((0.971, 0.222), (0.959, 0.289), (0.931, 0.457)),
    8: ((0.986, 0.156), (0.978, 0.210), (0.962, 0.316)),
    16: ((0.991, 0.134), (0.985, 0.178), (0.974, 0.260)),
    32: ((0.994, 0.139), (0.987, 0.203), (0.975, 0.316)),
    64: ((0.996, 0.142), (0.989, 0.240), (0.977, 0.410)),
    128: ((0.996, 0.195), (0.988, 0.421), (0.971, 0.734)),
    256: ((0.996, 0.352), (0.984, 0.796), (0.969, 0.939)),
    512: ((0.993, 0.869), (0.982, 0.981), (0.969, 0.995)),
    1024: ((0.993, 0.980), (0.984, 0.998), (0.972, 1.000)),
    2048: ((0.994, 0.998), (0.985, 1.000), (0.974, 1.000)),
}
_LARGE = {
    2: ((0.633, 0.994), (0.633, 0.994)),
    32: ((0.703, 0.962), (0.700, 0.965)),
    256: ((0.993, 0.043), (0.975, 0.149)),
    2048: ((0.997, 0.035), (0.988, 0.129)),
    8192: ((0.999, 0.043), (0.992, 0.195)),
    32768: ((0.999, 0.084), (0.965, 0.994)),
    131072: ((0.993, 0.995), (0.971, 1.000)),
}
REFERENCE = {
    1280: {
        (n, g): cell for n, row in _SMALL.items() for g, cell in zip((0, 0.5, 1), row, strict=True)
    },
    128_000: {
        (n, g): cell for n, row in _LARGE.items() for g, cell in zip((0, 1), row, strict=True)
    },
}
REFERENCE_SD = {  # of retention at gamma 0, over the four seeds of 1,280 actions
    2: 0.107,
    4: 0.012,
    8: 0.013,
    16: 0.006,
    32: 0.004,
    64: 0.005,
    128: 0.018,
    256: 0.085,
    512: 0.056,
    1024: 0.006,
    2048: 0.003,
}
# What the earlier run found of retention with AVSPO, by N and gamma: none, wrong, right, both.
REFERENCE_SIDES = {
    (4, 0.0): (0.221, 0.204, 0.810, 0.795),
    (8, 0.0): (0.143, 0.143, 0.283, 0.283),
    (16, 0.0): (0.113, 0.113, 0.120, 0.120),
    (8, 1.0): (0.293, None, None, 0.672),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """Hold a mean over seeds with their std (ddof=1), NaN for a single seed."""

    mean: float
    sd: float

    def __str__(self) -> str:
        """Write both to three decimals."""
        return f"{self.mean:.3f}" + (f" ± {self.sd:.3f}" if math.isfinite(self.sd) else "")


def spot(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Spot:
    """Sum up one number of all seeds."""
    return Spot(float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else math.nan)


def sweep_table(runs: Runs, actions: int) -> str:
    """Lay out what every N and gamma ended with, beside the earlier run."""
    known = REFERENCE.get(actions, {})
    rows = []
    for (n, gamma), outcome in runs.items():
        q, retention = known.get((n, gamma), (math.nan, math.nan))
        measured = [str(spot(outcome.q)), str(spot(outcome.retention))]
        earlier = [f"{q:.3f}" if known else "-", f"{retention:.3f}" if known else "-"]
        active = f"{outcome.active.mean():.2f}"
        rows.append(
            [f"{n:,}", f"{gamma:g}", measured[0], earlier[0], measured[1], earlier[1], active]
        )
    columns = ("N", "γ", "Q_pos ± sd", "earlier", "M_ret ± sd", "earlier", "active groups")
    return _unequal(columns, rows)


def sides_table(runs: Mapping[tuple[int, float], Sequence[Outcome]], arms: Sequence[str]) -> str:
    """Lay out mass and retention for each way to treat collapsed groups."""
    rows = []
    for (n, gamma), outcomes in runs.items():
        known = REFERENCE_SIDES.get((n, gamma), (None,) * len(arms))
        for arm, outcome, earlier in zip(arms, outcomes, known, strict=True):
            was = "-" if earlier is None else f"{earlier:.3f}"
            found = [str(spot(outcome.q)), str(spot(outcome.retention))]
            rows.append([f"{n}", f"{gamma:g}", arm, *found, was])
    columns = ("N", "γ", "virtual rewards for", "Q_pos ± sd", "M_ret ± sd", "earlier M_ret")
    return _unequal(columns, rows)


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


def _unequal(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table whose headings may repeat, which a mapping could not hold."""
    sides = {f"{place}": ">" for place in range(len(columns))}
    lines = table(sides, rows).split("\n")
    lines[0] = "| " + " | ".join(columns) + " |"
    return "\n".join(lines)
