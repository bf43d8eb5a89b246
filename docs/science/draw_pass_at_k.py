"""Draw figures/pass_at_k.svg: what is counted, what is extrapolated, and a crossover.

python docs/science/draw_pass_at_k.py
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics.beta_binomial import fit_beta_binomial
from rlvitals.metrics.extrapolation import extrapolate_pass_at_k, pass_at_k_bounds
from rlvitals.metrics.pass_at_k import pass_at_k_interval

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

PROBLEMS, ROLLOUTS, FARTHEST = 300, 16, 1024
BLUE, ORANGE, GREEN, PINK = COLOURS[:4]


def main() -> None:
    """Draw both panels side by side."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("counted up to k = 16, foreseen beyond", "sharpening: the curves cross"),
        horizontal_spacing=0.12,
    )
    source = np.random.default_rng(0)
    _beyond(figure, source.beta(0.4, 1.2, PROBLEMS), source)
    _crossing(figure, source.beta(0.7, 1.2, PROBLEMS), source)
    figure.update_xaxes(title="k (rollouts, log scale)", type="log", dtick=np.log10(4))
    figure.update_yaxes(title="mean pass@k over problems", range=[0, 1], col=1)
    figure.update_yaxes(range=[0, 1], col=2)
    dress(figure)
    figure.update_layout(width=860, height=440, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/pass_at_k.svg")


def _counts(rates: np.ndarray, rollouts: int, source: np.random.Generator) -> dict[int, list[int]]:
    c = source.binomial(rollouts, rates)
    return {rollouts: np.bincount(c, minlength=rollouts + 1).tolist()}


def _beyond(figure: go.Figure, rates: np.ndarray, source: np.random.Generator) -> None:
    counts = _counts(rates, ROLLOUTS, source)
    spread = asdict(fit_beta_binomial(counts).spread)
    seen = [2**e for e in range(ROLLOUTS.bit_length())]
    beyond = np.geomspace(ROLLOUTS, FARTHEST, 25).round().astype(int).tolist()
    bounds = [pass_at_k_bounds(counts, k) for k in beyond]
    fitted = [extrapolate_pass_at_k(k, **spread).value for k in beyond]
    true_k = [*seen, *beyond[1:]]
    truth = [float(np.mean(1 - (1 - rates) ** k)) for k in true_k]
    _band(figure, seen, [pass_at_k_interval(counts, k) for k in seen], BLUE, "counted, 95 %", 1)
    figure.add_scatter(
        x=beyond + beyond[::-1],
        y=[low for low, _ in bounds] + [high for _, high in bounds[::-1]],
        fill="toself",
        fillcolor="rgba(230,159,0,0.18)",
        line={"width": 0},
        name="bounds without a fit",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=beyond,
        y=fitted,
        line={"color": ORANGE, "dash": "dash"},
        name="extrapolated from a fit",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=true_k, y=truth, line={"color": COLOURS[6], "width": 1}, name="truth", row=1, col=1
    )


def _crossing(figure: go.Figure, before: np.ndarray, source: np.random.Generator) -> None:
    now = 3 * before**2 / (3 * before**2 + (1 - before) ** 2)  # odds become 3 odds^2
    ks = [2**e for e in range(7)]
    for rates, colour, name in ((before, GREEN, "baseline"), (now, PINK, "sharpened")):
        counts = _counts(rates, 64, source)
        _band(figure, ks, [pass_at_k_interval(counts, k) for k in ks], colour, name, 2)


def _band(figure: go.Figure, ks: list[int], means: list, colour: str, name: str, col: int) -> None:
    figure.add_scatter(
        x=ks,
        y=[mean.value for mean in means],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [mean.high - mean.value for mean in means],
            "arrayminus": [mean.value - mean.low for mean in means],
            "thickness": 1.2,
            "width": 3,
        },
        mode="lines+markers",
        line={"color": colour},
        name=name,
        row=1,
        col=col,
    )


if __name__ == "__main__":
    main()
