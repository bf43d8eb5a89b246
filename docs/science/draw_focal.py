"""Draw figures/focal.svg: the weight, the pull that is left, and the matched learning rate.

python docs/science/draw_focal.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots

from rlvitals.metrics import Groups, advantage_mass
from rlvitals.remedies import focal_weight, mean_update_scale

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from measuring.pictures import write_svg  # noqa: E402
from measuring.report import COLOURS, dress  # noqa: E402

if TYPE_CHECKING:
    import plotly.graph_objects as go

SIZE = 64
GAMMAS = (0.0, 0.5, 1.0, 2.0)


def main() -> None:
    """Draw three panels side by side."""
    figure = make_subplots(
        1,
        3,
        subplot_titles=("weight", "pull that is left", "mean over uniform rates"),
        horizontal_spacing=0.09,
    )
    _weights(figure)
    _scales(figure)
    dress(figure)
    figure.update_layout(width=860, height=400, legend={"orientation": "h", "y": -0.26})
    write_svg(figure, HERE / "figures/focal.svg")


def _weights(figure: go.Figure) -> None:
    c = np.arange(1, SIZE)
    columns = {f"reward_{name}": np.zeros(SIZE - 1) for name in ("mean", "std", "min", "max")}
    groups = Groups.from_columns({"size": [SIZE] * (SIZE - 1), "n_correct": c, **columns})
    for gamma, colour in zip(GAMMAS, COLOURS, strict=False):
        weight = focal_weight(groups, gamma)
        pull = weight * advantage_mass(SIZE, c) / SIZE
        for column, values in ((1, weight), (2, pull)):
            figure.add_scatter(
                x=(c / SIZE).round(4).tolist(),
                y=values.round(4).tolist(),
                name=f"γ = {gamma:g}",
                line={"color": colour},
                showlegend=column == 1,
                row=1,
                col=column,
            )
    figure.update_xaxes(title="share correct, c / n", row=1)
    figure.update_yaxes(title="weight of the group", range=[0, 1.05], row=1, col=1)
    figure.update_yaxes(title="mean |A| of a rollout", range=[0, 1.05], row=1, col=2)


def _scales(figure: go.Figure) -> None:
    gammas = np.linspace(0, 3, 31)
    kinds = (("divided by the std", True, "solid"), ("centred (Dr. GRPO)", False, "dash"))
    for name, std_division, dash in kinds:
        scales = [mean_update_scale(gamma, std_division=std_division) for gamma in gammas]
        figure.add_scatter(
            x=gammas.round(2).tolist(),
            y=np.round(scales, 4).tolist(),
            name=name,
            line={"color": COLOURS[6], "dash": dash},
            row=1,
            col=3,
        )
    figure.update_xaxes(title="γ", row=1, col=3)
    figure.update_yaxes(title="share of the update left", range=[0, 1.05], row=1, col=3)


if __name__ == "__main__":
    main()
