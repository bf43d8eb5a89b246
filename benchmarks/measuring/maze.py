"""Tables and figures of the maze runs, each arm beside GRPO of the same seeds and group size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from plotly.subplots import make_subplots
from scipy.stats import t as student

from measuring.report import COLOURS
from measuring.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

LAST = 4  # evaluations whose mean is called final: one alone is as noisy as the effect
TOP = "pass@256"
PERCENT = 100
SYMBOLS = ("circle", "diamond", "square")

# Table 4 of arXiv 2602.06717v2: (N, gamma) -> pass@1 and pass@256 in percent, one run each.
PAPER = {
    (4, 0.0): (65.6, 67.3),
    (4, 0.5): (74.4, 75.9),
    (4, 1.0): (79.7, 81.5),
    (8, 0.0): (72.2, 73.4),
    (8, 0.5): (83.4, 84.0),
    (8, 1.0): (76.3, 76.6),
    (16, 0.0): (73.9, 74.2),
    (16, 0.5): (83.7, 84.3),
    (16, 1.0): (84.4, 86.5),
    (32, 0.0): (74.5, 75.1),
    (32, 0.5): (85.1, 85.8),
    (32, 1.0): (84.9, 85.8),
}


@dataclass(frozen=True, order=True)
class Arm:
    """Name what runs of different seeds share."""

    group_size: int
    gamma: float
    lr: float


Runs = dict[Arm, dict[int, list[dict[str, float]]]]  # rows of each arm and seed


def series(runs: Runs, arm: Arm, name: str) -> NDArray[np.float64]:
    """Give a figure in percent (seeds, evaluations), seeds in order."""
    return PERCENT * np.array([[row[name] for row in runs[arm][s]] for s in sorted(runs[arm])])


def final(runs: Runs, arm: Arm, name: str) -> NDArray[np.float64]:
    """Give the mean of a figure over the last evaluations of each seed, in percent."""
    return series(runs, arm, name)[:, -LAST:].mean(axis=1)


def lowest(runs: Runs, arm: Arm) -> NDArray[np.float64]:
    """Give the minimum of pass@256 along each seed's run, in percent."""
    return series(runs, arm, TOP).min(axis=1)


def with_error(values: NDArray[np.float64]) -> str:
    """Write a mean over seeds and its standard error."""
    return f"{values.mean():.1f} ± {values.std(ddof=1) / len(values) ** 0.5:.1f}"


def difference(mine: NDArray[np.float64], base: NDArray[np.float64]) -> str:
    """Write the mean difference of the same seeds with its 95 % interval (Student's t)."""
    gaps = mine - base
    half = student.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
    return f"{gaps.mean():+.1f} [{gaps.mean() - half:+.1f}, {gaps.mean() + half:+.1f}]"


def sweep_table(runs: Runs, lr: float) -> str:
    """Lay out each N and gamma at one learning rate beside the paper's figures."""
    columns = {
        "N": ">",
        "γ": ">",
        "pass@1": ">",
        TOP: ">",
        "lowest pass@256": ">",
        "Δ pass@1": ">",
        "Δ pass@256": ">",
        "Δ lowest": ">",
        "paper pass@1": ">",
        "paper pass@256": ">",
    }
    rows = []
    for arm in sorted(arm for arm in runs if arm.lr == lr):
        base = Arm(arm.group_size, 0.0, lr)
        first, top = PAPER[arm.group_size, arm.gamma]
        rows.append(
            [
                str(arm.group_size),
                f"{arm.gamma:g}",
                *results(runs, arm),
                *(differences(runs, arm, base) if arm != base else ["-"] * 3),
                f"{first}",
                f"{top}",
            ]
        )
    return table(columns, rows)


def control_table(runs: Runs, lr: float) -> str:
    """Set GRPO at lower learning rates beside each gamma at lr, as gamma minus GRPO."""
    columns = {
        "N": ">",
        "GRPO at lr": ">",
        "pass@1": ">",
        TOP: ">",
        "lowest pass@256": ">",
        "beside γ": ">",
        "Δ pass@1": ">",
        "Δ pass@256": ">",
        "Δ lowest": ">",
    }
    rows = []
    for slow in sorted(arm for arm in runs if arm.lr < lr and not arm.gamma):
        n = slow.group_size
        for focal in sorted(a for a in runs if a.group_size == n and a.gamma and a.lr == lr):
            names = [str(slow.group_size), f"{slow.lr:.2g}", *results(runs, slow)]
            rows.append([*names, f"{focal.gamma:g}", *differences(runs, focal, slow)])
    return table(columns, rows)


def results(runs: Runs, arm: Arm) -> list[str]:
    """Write an arm's final pass@1 and pass@256 and its lowest pass@256."""
    ends = [final(runs, arm, "pass@1"), final(runs, arm, TOP), lowest(runs, arm)]
    return [with_error(values) for values in ends]


def differences(runs: Runs, arm: Arm, base: Arm) -> list[str]:
    """Write how an arm differs from another in the figures of ``results``."""
    ends = [difference(final(runs, arm, name), final(runs, base, name)) for name in ("pass@1", TOP)]
    return [*ends, difference(lowest(runs, arm), lowest(runs, base))]


def check_table(runs: Runs) -> str:
    """Say how far pass@k from 256 rollouts a maze is from the exact one, at the end of all runs."""
    ends = [rows[-1] for seeds in runs.values() for rows in seeds.values()]
    rows = []
    for k in (1, 16, 256):
        gaps = PERCENT * np.array([row[f"sampled@{k}"] - row[f"pass@{k}"] for row in ends])
        rows.append([str(k), str(len(gaps)), f"{gaps.mean():+.2f}", f"{np.abs(gaps).max():.2f}"])
    return table({"k": ">", "runs": ">", "mean gap": ">", "largest gap": ">"}, rows)


def weight_table(runs: Runs, expected: Mapping[float, float]) -> str:
    """Set the mean focal weight of mixed groups beside the m_gamma that the paper expects."""
    rows = []
    for gamma, m in expected.items():
        arms = [seeds for arm, seeds in runs.items() if arm.gamma == gamma]
        weights = [rows[-1]["mean_weight"] for seeds in arms for rows in seeds.values()]
        if weights:
            low, high = min(weights), max(weights)
            rows.append(
                [f"{gamma:g}", f"{m:.3f}", f"{np.mean(weights):.3f}", f"{low:.3f}-{high:.3f}"]
            )
    return table({"γ": ">", "m_γ": ">", "mean weight": ">", "range over runs": ">"}, rows)


def name_of(arm: Arm) -> str:
    """Name an arm in a legend."""
    return f"F-GRPO, γ = {arm.gamma:g}" if arm.gamma else "GRPO"


def curves(runs: Runs, lr: float, sizes: Sequence[int]) -> go.Figure:
    """Draw pass@1 and pass@256 over steps, a column for each N: mean and range over seeds."""
    figure = make_subplots(
        2,
        len(sizes),
        shared_xaxes=True,
        shared_yaxes=True,
        horizontal_spacing=0.025,
        vertical_spacing=0.06,
        column_titles=[f"N = {n}" for n in sizes],
    )
    for column, n in enumerate(sizes, 1):
        arms = sorted(arm for arm in runs if arm.group_size == n and arm.lr == lr)
        for colour, arm in zip(COLOURS, arms, strict=False):
            steps = [row["step"] for row in next(iter(runs[arm].values()))]
            for row, name in enumerate(("pass@1", TOP), 1):
                values = series(runs, arm, name)
                for trace in band_and_line(steps, values, colour):
                    trace |= {"legendgroup": colour, "name": name_of(arm)}
                    trace["showlegend"] = trace["showlegend"] and row == column == 1
                    figure.add_scatter(**trace, row=row, col=column)
    figure.update_xaxes(title="step", nticks=4, row=2)
    figure.update_yaxes(title="pass@1 (%)", row=1, col=1)
    figure.update_yaxes(title="pass@256 (%)", row=2, col=1)
    return figure.update_layout(width=860, height=520, legend={"orientation": "h", "y": -0.15})


def band_and_line(
    steps: Sequence[float], values: NDArray[np.float64], colour: str
) -> Iterable[dict[str, object]]:
    """Give the range over seeds as a band, and the mean as a line over it."""
    edge = [*values.max(axis=0), *values.min(axis=0)[::-1]]
    hidden = {"mode": "none", "fill": "toself", "fillcolor": colour, "opacity": 0.18}
    yield {"x": [*steps, *steps[::-1]], "y": edge, "showlegend": False, **hidden}
    line = {"color": colour, "width": 2}
    yield {"x": steps, "y": values.mean(axis=0), "mode": "lines", "line": line, "showlegend": True}


def trade_off(runs: Runs, lr: float, sizes: Sequence[int]) -> go.Figure:
    """Draw where each arm ends in the plane of pass@1 and pass@256, with standard errors."""
    figure = make_subplots(
        1,
        len(sizes),
        shared_xaxes="all",
        shared_yaxes="all",
        horizontal_spacing=0.04,
        subplot_titles=[f"N = {n}" for n in sizes],
    )
    for column, n in enumerate(sizes, 1):
        arms = sorted((arm for arm in runs if arm.group_size == n), key=lambda arm: arm.gamma)
        begin = [series(runs, arms[0], name)[:, 0].mean() for name in ("pass@1", TOP)]
        star = {"symbol": "star", "size": 12, "color": "#222222"}
        look = {"mode": "markers", "name": "start", "showlegend": column == 1}
        figure.add_scatter(x=begin[:1], y=begin[1:], marker=star, **look, row=1, col=column)
        for rate, symbol, colour in zip(
            sorted({arm.lr for arm in arms}, reverse=True), SYMBOLS, COLOURS, strict=False
        ):
            trace = ends([arm for arm in arms if arm.lr == rate], runs, colour)
            trace["marker"] = {"size": 10, "symbol": symbol, "color": colour}
            name = "full rate" if rate == lr else f"{rate / lr:.2g} of the rate"
            look = {"name": name, "legendgroup": name, "showlegend": column == 1}
            figure.add_scatter(**trace, **look, row=1, col=column)
    shown = [arm for arm in runs if arm.group_size in sizes]
    for axis, name in (("x", "pass@1"), ("y", TOP)):
        means = [final(runs, arm, name).mean() for arm in shown]
        room = {"range": [min(means) - 6, max(means) + 8], "title": f"final {name} (%)"}
        figure.update_layout({f"{axis}axis": room})
    figure.update_xaxes(title="final pass@1 (%)")
    return figure.update_layout(width=860, height=460, legend={"orientation": "h", "y": -0.2})


def ends(arms: Sequence[Arm], runs: Runs, colour: str) -> dict[str, object]:
    """Join the ends of arms that differ in gamma, each named by it, with their standard errors."""
    figures = {}
    for axis, name in (("x", "pass@1"), ("y", TOP)):
        values = [final(runs, arm, name) for arm in arms]
        errors = [each.std(ddof=1) / len(each) ** 0.5 for each in values]
        figures[axis] = [each.mean() for each in values]
        figures[f"error_{axis}"] = {"array": errors, "thickness": 1, "width": 3}
    return {
        **figures,
        "mode": "lines+markers+text",
        "line": {"color": colour, "width": 1, "dash": "dot"},
        "text": [f"γ = {arm.gamma:g}" if arm.gamma else "GRPO" for arm in arms],
        "textposition": ["top right" if arm.gamma == 1 else "bottom right" for arm in arms],
        "textfont": {"color": colour, "size": 12},
    }
