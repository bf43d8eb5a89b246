"""Draw figures/avspo.svg: the push of virtual rewards, and the threshold at work.

python docs/science/draw_avspo.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.remedies import (
    Avspo,
    closed_form_advantage,
    next_threshold,
    virtual_advantage_bound,
    virtual_offsets,
)

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

SIZE, STEPS, WINDOW = 8, 400, 50


def main() -> None:
    """Draw both panels side by side."""
    figure = make_subplots(
        1,
        2,
        subplot_titles=("a failed group of 8 beside K virtual rewards", "the threshold steers"),
        horizontal_spacing=0.12,
    )
    _push(figure)
    _threshold(figure)
    dress(figure)
    figure.update_layout(width=860, height=460, legend={"orientation": "h", "y": -0.22})
    write_svg(figure, HERE / "figures/avspo.svg")


def _push(figure: go.Figure) -> None:
    counts = list(range(1, SIZE + 1))
    source = np.random.default_rng(0)
    drawn = [
        np.mean([_size(virtual_offsets(k, 1, "uniform", source)) for _ in range(400)])
        for k in counts
    ]
    bound = [virtual_advantage_bound(SIZE, k, ddof=0) for k in counts]
    lines = (
        ("equal values: the bound √(K/G)", bound, "dash"),
        ("stratified", [_size(virtual_offsets(k, 1)) for k in counts], "solid"),
        ("uniform, mean of 400 draws", drawn, "solid"),
        ("halving", [_size(virtual_offsets(k, 1, "exponential")) for k in counts], "solid"),
    )
    for (name, sizes, dash), colour in zip(lines, (COLOURS[6], *COLOURS), strict=False):
        figure.add_scatter(
            x=counts,
            y=np.round(sizes, 4).tolist(),
            name=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            row=1,
            col=1,
        )
    figure.update_xaxes(title="virtual rewards K", dtick=1, row=1, col=1)
    figure.update_yaxes(title="|A| of each real rollout", range=[0, 1.05], row=1, col=1)


def _size(offsets: np.ndarray) -> float:
    return abs(closed_form_advantage(SIZE, offsets, ddof=0))


def _threshold(figure: go.Figure) -> None:
    avspo, threshold = Avspo(), Avspo().threshold
    source = np.random.default_rng(1)
    raw = (0.44 + 0.1 * source.standard_normal(STEPS)).clip(0, 1)
    thresholds, effective = [], []
    for rate in raw.tolist():
        seen = 0.0 if rate > threshold else rate
        thresholds.append(threshold)
        effective.append(seen)
        threshold = next_threshold(threshold, seen, avspo)
    ones = np.ones(WINDOW) / WINDOW
    lines = (
        ("collapse rate, raw", np.convolve(raw, ones, "valid"), COLOURS[3]),
        ("collapse rate, effective", np.convolve(effective, ones, "valid"), COLOURS[4]),
        ("threshold", np.array(thresholds[WINDOW - 1 :]), COLOURS[5]),
    )
    for name, values, colour in lines:
        figure.add_scatter(
            x=list(range(WINDOW - 1, STEPS)),
            y=values.round(4).tolist(),
            name=name,
            line={"color": colour},
            row=1,
            col=2,
        )
    figure.add_hline(
        y=avspo.target, line={"color": "#222222", "dash": "dot", "width": 1}, row=1, col=2
    )
    figure.update_xaxes(title=f"step (rates: mean of {WINDOW})", row=1, col=2)
    figure.update_yaxes(title="share of groups", range=[0, 0.62], row=1, col=2)
    print(f"raw {raw.mean():.3f}, effective {np.mean(effective[100:]):.3f} from step 100 on")


if __name__ == "__main__":
    main()
