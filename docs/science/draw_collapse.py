"""Draw figures/collapse.svg: causes over a run, and what pooling and repeated prompts do.

python docs/science/draw_collapse.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics import Collapse, Tally
from rlvitals.metrics.colours import ALL_FAIL, ALL_PASS

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

STEPS, GROUPS, ROLLOUTS, WINDOW = 240, 8, 8, 20
BLUE = COLOURS[0]


def main() -> None:
    """Draw one made-up run in two ways."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("one step says little, a window more", "the causes, over the same windows"),
        horizontal_spacing=0.1,
    )
    tallies = _run(np.random.default_rng(0))
    windows = [sum(tallies[end - WINDOW : end], Tally()) for end in range(WINDOW, STEPS + 1, 5)]
    ends = list(range(WINDOW, STEPS + 1, 5))
    _pooled(figure, tallies, ends, [Collapse.from_tally(tally) for tally in windows])
    _causes(figure, ends, [Collapse.from_tally(tally) for tally in windows])
    figure.update_xaxes(title="step", range=[0, STEPS])
    figure.update_yaxes(range=[0, 1])
    figure.update_yaxes(title="share of groups", col=1)
    dress(figure)
    figure.update_layout(width=860, height=440, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/collapse.svg")


def _run(source: np.random.Generator) -> list[Tally]:
    """Make up a policy that learns: prompts of spread difficulty, all growing easier."""
    tallies = []
    for step in range(STEPS):
        logits = source.normal(-3.5 + 7 * step / STEPS, 2.5, GROUPS)
        c = source.binomial(ROLLOUTS, 1 / (1 + np.exp(-logits)))
        counts = np.bincount(c, minlength=ROLLOUTS + 1).tolist()
        tallies.append(Tally.from_counts({ROLLOUTS: counts}))
    return tallies


def _pooled(
    figure: go.Figure, tallies: list[Tally], ends: list[int], windows: list[Collapse]
) -> None:
    intervals = [shares.by_rewards.interval() for shares in windows]
    figure.add_scatter(
        x=list(range(STEPS)),
        y=[Collapse.from_tally(tally).by_rewards.rate for tally in tallies],
        mode="markers",
        marker={"color": "#8C8C8C", "size": 4, "opacity": 0.6},
        name=f"one step of {GROUPS} groups",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=ends + ends[::-1],
        y=[low for low, _ in intervals] + [high for _, high in intervals[::-1]],
        fill="toself",
        fillcolor="rgba(0,114,178,0.2)",
        line={"width": 0},
        mode="lines",
        name="Wilson, 95 %",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=ends,
        y=[shares.by_rewards.rate for shares in windows],
        mode="lines",
        line={"color": BLUE},
        name=f"pooled over {WINDOW} steps",
        row=1,
        col=1,
    )


def _causes(figure: go.Figure, ends: list[int], windows: list[Collapse]) -> None:
    for name, colour in (("all_fail", ALL_FAIL), ("all_pass", ALL_PASS)):
        figure.add_scatter(
            x=ends,
            y=[getattr(shares, name).rate for shares in windows],
            mode="lines",
            line={"color": colour, "width": 0.5},
            stackgroup="causes",
            name=name.replace("_", " "),
            row=1,
            col=2,
        )


if __name__ == "__main__":
    main()
