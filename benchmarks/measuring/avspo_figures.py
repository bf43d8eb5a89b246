"""Figures of the two AVSPO reproductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from measuring.arms import mean_and_error
from measuring.report import COLOURS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from measuring.arms import Result

WINDOW = 20  # steps that a drawn collapse rate is the mean of
_SIDES = {"controller, target .05": "top right", "fixed at .3": "middle left"}
EVERY = 4  # a point for every fourth step is enough for the eye


def draw_course(results: Sequence[Result]) -> go.Figure:
    """Draw collapse before and after the controller, and success, over the steps of a setting.

    Expects plain GRPO, the controller, AVSPO always, and GRPO at a higher learning rate.
    """
    grpo, controller, always, faster = results
    figure = make_subplots(
        rows=1,
        cols=2,
        horizontal_spacing=0.12,
        subplot_titles=[f"Collapse rate, mean of {WINDOW} steps", "Success on held-out prompts"],
    )
    for name, result, share, colour, dash in (
        ("GRPO, raw = effective", grpo, "acr", COLOURS[6], "solid"),
        ("controller, raw", controller, "acr", COLOURS[0], "dot"),
        ("controller, effective", controller, "effective", COLOURS[0], "solid"),
    ):
        kernel = np.ones(WINDOW) / WINDOW
        smooth = np.convolve(_mean(result, share), kernel, "valid")
        _line(figure, 1, name, smooth, WINDOW, colour, dash)
    for result, colour, dash in (
        (grpo, COLOURS[6], "solid"),
        (controller, COLOURS[0], "solid"),
        (always, COLOURS[1], "solid"),
        (faster, COLOURS[2], "dash"),
    ):
        _line(figure, 2, result.name, _mean(result, "success"), 1, colour, dash)
    figure.update_xaxes(title_text="step", range=[0, len(_mean(grpo, "acr"))])
    figure.update_yaxes(title_text="share of groups", range=[0, 1], col=1)
    figure.update_yaxes(title_text="mean chance to solve", range=[0, 1], col=2)
    clear = {"bgcolor": "rgba(255,255,255,0.8)", "yanchor": "top", "y": 0.99}
    return figure.update_layout(
        width=860, height=430, legend={"x": 0.2, **clear}, legend2={"x": 0.59, **clear}
    )


def draw_gains(found: Mapping[str, tuple[Result, Sequence[Result]]]) -> go.Figure:
    """Draw paired gains over the base of each setting, with two standard errors."""
    figure = go.Figure()
    names: list[str] = []
    for place, (setting, (base, arms)) in enumerate(found.items()):
        names = [arm.name for arm in arms]
        _dots(
            figure,
            setting,
            [arm.gains(base) for arm in arms],
            0.2 * (place - (len(found) - 1) / 2),
            place,
        )
    figure.add_vline(x=0, line={"color": "#888888", "width": 1})
    _name_rows(figure, names)
    figure.update_xaxes(title_text="points of held-out success above GRPO (bars: 2 SE)")
    return figure.update_layout(width=760, height=400)


def draw_values(
    sizes: Mapping[str, Sequence[float]],
    gains: Mapping[str, Sequence[float]],
    paper: Mapping[str, float],
) -> go.Figure:
    """Draw |A| by the number of virtual rewards, and measured gains beside the paper's."""
    figure = make_subplots(
        rows=1,
        cols=2,
        horizontal_spacing=0.24,
        subplot_titles=["Advantage by the closed form, G = 8", "Gain over GRPO"],
    )
    for place, (name, line) in enumerate(sizes.items()):
        style = {"color": COLOURS[place], "dash": ("solid", "dash", "dot", "dashdot")[place]}
        counts = list(range(1, len(line) + 1))
        figure.add_scatter(x=counts, y=line, name=name, mode="lines", line=style, row=1, col=1)
    _dots(figure, "simulated policy", list(gains.values()), -0.12, 0, col=2)
    figure.add_scatter(
        x=list(paper.values()),
        y=[row + 0.12 for row in range(len(paper))],
        name="paper, MATH-500",
        mode="markers",
        marker={"size": 10, "symbol": "diamond-open", "color": COLOURS[6]},
        legend="legend2",
        row=1,
        col=2,
    )
    _name_rows(figure, list(gains), col=2)
    figure.update_yaxes(range=[len(gains) - 0.5, -1.3], row=1, col=2)  # room for the legend
    figure.update_xaxes(title_text="virtual rewards K", row=1, col=1)
    figure.update_yaxes(title_text="|A| of the real rollouts", range=[0, 1.04], row=1, col=1)
    figure.update_xaxes(title_text="points", range=[0, 10], row=1, col=2)
    return figure.update_layout(
        width=860,
        height=420,
        legend={"x": 0.38, "y": 0.02, "xanchor": "right", "yanchor": "bottom"},
        legend2={"x": 0.64, "y": 1.0, "xanchor": "left", "yanchor": "top"},
    )


def draw_thresholds(results: Sequence[Result]) -> go.Figure:
    """Draw the gain of each rule against the share of groups that it left without a signal."""
    base = results[0]
    figure = go.Figure()
    pairs = [mean_and_error([100 * gain for gain in arm.gains(base)]) for arm in results]
    figure.add_scatter(
        x=[arm.share("effective") for arm in results],
        y=[mean for mean, _ in pairs],
        error_y={"type": "data", "array": [2 * error for _, error in pairs], "thickness": 1.4},
        text=["no virtual rewards", *(arm.name for arm in results[1:])],
        textposition=[_SIDES.get(arm.name, "middle right") for arm in results],
        mode="markers+text",
        marker={"size": 9, "color": COLOURS[0]},
        textfont={"size": 12},
        cliponaxis=False,
        showlegend=False,
    )
    figure.update_xaxes(title_text="effective collapse rate, mean over the run", range=[0, 0.56])
    figure.update_yaxes(title_text="points above GRPO (bars: 2 SE)")
    return figure.update_layout(width=760, height=420)


def _mean(result: Result, name: str) -> np.ndarray:
    return np.mean([getattr(run, name) for run in result.runs], axis=0)


def _line(
    figure: go.Figure, col: int, name: str, y: np.ndarray, first: int, colour: str, dash: str
) -> None:
    figure.add_scatter(
        x=np.arange(first, first + len(y))[::EVERY],
        y=np.round(y[::EVERY], 4),
        mode="lines",
        name=name,
        line={"color": colour, "dash": dash, "width": 2.2},
        legend="legend" if col == 1 else "legend2",
        row=1,
        col=col,
    )


def _dots(
    figure: go.Figure,
    name: str,
    gains: Sequence[Sequence[float]],
    shift: float,
    place: int,
    col: int | None = None,
) -> None:
    pairs = [mean_and_error([100 * gain for gain in row]) for row in gains]
    figure.add_scatter(
        name=name,
        x=[mean for mean, _ in pairs],
        y=[row + shift for row in range(len(pairs))],
        error_x={"type": "data", "array": [2 * error for _, error in pairs], "thickness": 1.4},
        mode="markers",
        marker={
            "size": 10,
            "symbol": ("circle", "square", "diamond")[place],
            "color": COLOURS[place],
        },
        legend="legend" if col is None else "legend2",
        row=None if col is None else 1,
        col=col,
    )


def _name_rows(figure: go.Figure, names: Sequence[str], col: int | None = None) -> None:
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[f"{name} " for name in names],
        range=[len(names) - 0.5, -0.5],
        automargin=True,
        row=None if col is None else 1,
        col=col,
    )
