"""Build the pieces every chart shares: frame, lines, trends, bands and marks at the edge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rlvitals.metrics.colours import CONSTANT
from rlvitals_dashboard import series as sr
from rlvitals_dashboard import words
from rlvitals_dashboard.theme import CRITICAL, Figure, translucent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlvitals_dashboard.series import Columns, FloatArray, Series

Trace = dict[str, Any]

PERCENT = ":.1%"
PLAIN = ":.4g"
BAND_GREY = translucent(CONSTANT, 0.32)
UPPER_EDGE, LOWER_EDGE = 0.975, 0.025
FEW_TICKS, MOST_TICKS = 3, 6


def line(
    x: Sequence[int], y: Sequence[float | None] | FloatArray, name: str, hover: str, **rest: Any
) -> Trace:
    """Give a line; without a colour the theme draws it in ink."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": sr.rounded([None if v is None else float(v) for v in y]),
        "name": name,
        "hovertemplate": f"%{{y{hover}}}",
        "connectgaps": True,
        **rest,
    }


def raw_and_trend(
    series: Series, name: str, hover: str, colour: str | None = None, *, raw: bool = True
) -> list[Trace]:
    """Give the points faint and the trend of their level strong; hidden together."""
    level, said = series.level, "" if series.mean is None else "mean "
    tint = {"color": colour} if colour else {}
    faint = line(
        series.step,
        series.value,
        f"{name}, each step",
        hover,
        line={"width": 1, **tint},
        opacity=0.3,
        legendgroup=name,
        showlegend=False,
        hoverinfo="skip",
    )
    del faint["hovertemplate"]
    strong = line(
        level.step, sr.trend(level), name, hover, line={"width": 2, **tint}, legendgroup=name
    )
    strong |= {
        "customdata": sr.rounded(level.value),
        "hovertemplate": f"{said}%{{customdata{hover}}} (trend %{{y{hover}}})",
    }
    return [faint, strong] if raw else [strong]


def band(low: Series, high: Series, name: str) -> list[Trace]:
    """Give an interval as a band of grey."""
    quiet = {"hoverinfo": "skip", "legendgroup": name, "line": {"width": 0, "color": BAND_GREY}}
    edges = [
        line(low.step, low.value, name, PERCENT, showlegend=False, **quiet),
        line(high.step, high.value, name, PERCENT, **quiet),
    ]
    edges[1] |= {"fill": "tonexty", "fillcolor": BAND_GREY}
    return [{k: v for k, v in edge.items() if k != "hovertemplate"} for edge in edges]


def stack(steps: Sequence[int], values: FloatArray, name: str, colour: str) -> Trace:
    """Give one layer of a stack of shares."""
    return line(
        steps,
        values,
        name,
        PERCENT,
        stackgroup="causes",
        line={"width": 0.5, "color": colour},
        fillcolor=translucent(colour, 0.55),
    )


def edge_marks(
    points: Iterable[tuple[int, str]], name: str, *, symbol: str = "x", upper: bool = True
) -> list[Trace]:
    """Mark steps at the panel's edge, where no value can be drawn, never as a gap."""
    marks = list(points)
    if not marks:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [step for step, _ in marks],
            "y": [UPPER_EDGE if upper else LOWER_EDGE] * len(marks),
            "yaxis": "y2",
            "name": name,
            "text": [word for _, word in marks],
            "hovertemplate": "%{text}",
            "cliponaxis": False,
            "marker": {
                "symbol": symbol,
                "size": 9,
                "color": CRITICAL,
                "line": {"width": 1, "color": CRITICAL},
            },
        }
    ]


def nonfinite_marks(columns: Columns, names: Iterable[str]) -> list[Trace]:
    """Mark every step at which one of the metrics was NaN or infinite."""
    known = [columns[name].nonfinite for name in names if name in columns]
    found = {step: word for marks in known for step, word in marks}
    return edge_marks(sorted(found.items()), "not finite")


def log_ticks(values: Sequence[float]) -> dict[str, Any]:
    """Choose round ticks for a log axis over positive values: decades when there are enough."""
    if not values:
        return {}
    low, high = min(values), max(values)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first) / MOST_TICKS))
    decades = range(first, last + 1, stride)
    ticks: list[float] = []
    for digits in ("1", "125", "12357", "123456789"):
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        if sum(low <= tick <= high for tick in ticks) >= FEW_TICKS:
            break
    return {"tickvals": ticks, "ticktext": [words.number(tick) for tick in ticks]}


def frame(
    traces: list[Trace], x_range: tuple[int, int] | None, y_axis: dict[str, Any], key: str
) -> Figure:
    """Put traces into the frame all panels share, so that their time axes line up.

    ``key`` names the run: while it stays, hidden traces and zoom outlive an update.
    """
    low, high = x_range or (0, 10)
    drawn = any(trace["x"] for trace in traces)
    y_axis = y_axis if drawn else {"visible": False}
    return {
        "data": traces,
        "layout": {
            "uirevision": key,
            "margin": {"l": 52, "r": 12, "t": 28, "b": 26},
            "hovermode": "x unified",
            "dragmode": "zoom",
            "xaxis": {
                "visible": drawn,
                "range": [low, max(high, low + 1)],
                "uirevision": f"{key}:{low}:{high if x_range else ''}",
                "showgrid": False,
                "ticks": "outside",
                "ticklen": 4,
                "showline": True,
                "fixedrange": False,
                "exponentformat": "none",
                "separatethousands": True,
                "hoverformat": ",d",
                "unifiedhovertitle": {"text": "<b>step %{x:,d}</b>"},
                "nticks": 10,
                "spikecolor": CONSTANT,
                "spikethickness": 1,
                "spikedash": "solid",
            },
            "yaxis": {"fixedrange": True, "nticks": 5, "automargin": False, **y_axis},
            "yaxis2": {
                "overlaying": "y",
                "range": [0, 1],
                "visible": False,
                "fixedrange": True,
            },
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "xref": "paper",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "itemsizing": "trace",
                "tracegroupgap": 0,
            },
        },
    }
