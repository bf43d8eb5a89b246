"""Draw figures/tail_miss.svg: the risk over group sizes, and what 8 rollouts foresee of others.

python docs/science/draw_tail_miss.py
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics.beta_binomial import fit_beta_binomial
from rlvitals.metrics.posterior import expected_tail_miss, mean_posterior_tail_miss
from rlvitals.metrics.tail_miss import mean_tail_miss, peak_group_size, tail_miss_probability

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

RHO, GROUPS, ROLLOUTS = 0.1, 512, 8
SPREAD = {"alpha": 0.3, "beta": 0.9}


def main() -> None:
    """Draw both panels side by side."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("one prompt, rare share ρ = 0.1", "512 groups of 8, other sizes foreseen"),
        horizontal_spacing=0.12,
    )
    _prompts(figure)
    _foreseen(figure)
    figure.update_xaxes(title="group size N (rollouts, log scale)", type="log", dtick=np.log10(4))
    figure.update_yaxes(title="chance to teach and miss the rare part", range=[0, 0.85], col=1)
    figure.update_yaxes(title="mean over prompts", range=[0, 0.5], col=2)
    dress(figure)
    figure.update_layout(width=860, height=440, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/tail_miss.svg")


def _prompts(figure: go.Figure) -> None:
    sizes = np.unique(np.geomspace(1, 512, 60).round().astype(int))
    for mu, colour in zip((0.8, 0.5, 0.2, 0.05), COLOURS, strict=False):
        peak = peak_group_size(mu, RHO * mu)
        figure.add_scatter(
            x=sizes,
            y=tail_miss_probability(sizes, mu, RHO * mu),
            line={"color": colour},
            name=f"success rate μ = {mu}",
            row=1,
            col=1,
        )
        figure.add_scatter(
            x=[peak],
            y=[tail_miss_probability(peak, mu, RHO * mu)],
            mode="markers+text",
            text=[f"N* = {peak}"],
            textposition="top center",
            marker={"color": colour, "size": 8},
            showlegend=False,
            cliponaxis=False,
            row=1,
            col=1,
        )


def _foreseen(figure: go.Figure) -> None:
    source = np.random.default_rng(3)
    c = source.binomial(ROLLOUTS, source.beta(*SPREAD.values(), GROUPS))
    counts = {ROLLOUTS: np.bincount(c, minlength=ROLLOUTS + 1).tolist()}
    fit = asdict(fit_beta_binomial(counts).spread)
    sizes = [*range(1, 9), 11, 16, 23, 32, 45, 64, 91, 128]
    counted = [mean_tail_miss(counts, RHO, size=size) for size in sizes[:8]]
    larger = sizes[7:]
    _line(figure, sizes, [expected_tail_miss(n, **SPREAD, rho=RHO) for n in sizes], 6, "truth")
    fitted = [expected_tail_miss(n, **fit, rho=RHO) for n in larger]
    _line(figure, larger, fitted, 4, "from a fitted spread", "dash")
    jeffreys = [mean_posterior_tail_miss(counts, n, RHO).value for n in larger]
    _line(figure, larger, jeffreys, 3, "from Jeffreys' prior", "dot")
    figure.add_scatter(
        x=sizes[:8],
        y=[mean.value for mean in counted],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [mean.high - mean.value for mean in counted],
            "arrayminus": [mean.value - mean.low for mean in counted],
            "thickness": 1.2,
            "width": 3,
        },
        mode="markers",
        marker={"color": COLOURS[5], "size": 7},
        name="counted, 95 %",
        row=1,
        col=2,
    )


def _line(
    figure: go.Figure, x: list[int], y: list[float], colour: int, name: str, dash: str = "solid"
) -> None:
    line = {"color": COLOURS[colour], "dash": dash}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, name=name, row=1, col=2)


if __name__ == "__main__":
    main()
