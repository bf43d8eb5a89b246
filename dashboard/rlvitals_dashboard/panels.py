"""Answer one question a panel: which metrics it needs, its chart, its sentence, its help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvitals.metrics.catalog import describe
from rlvitals.metrics.colours import ALL_FAIL, ALL_PASS, CONSTANT, LIVE
from rlvitals_dashboard import answers
from rlvitals_dashboard import figures as fg
from rlvitals_dashboard import series as sr
from rlvitals_dashboard.figures import PERCENT, PLAIN, Trace
from rlvitals_dashboard.series import EMPTY, Columns, Series
from rlvitals_dashboard.shares import at, causes, windowed
from rlvitals_dashboard.theme import WARNING, between

if TYPE_CHECKING:
    from collections.abc import Callable

Drawing = tuple[list[Trace], dict[str, Any]]

SHARE_AXIS = {"range": [0, 1.02], "tickformat": ".0%", "dtick": 0.25}
MANY_TRIES = "#C07BD8"
SAME = 1e-9
NOTICEABLE = 0.02
WIDE_REWARD = 1.5
CAUSES = (
    ("acr_all_fail", "all fail", ALL_FAIL),
    ("acr_all_pass", "all pass", ALL_PASS),
    ("acr_constant", "constant", CONSTANT),
)


@dataclass(frozen=True, slots=True)
class Panel:
    """Say what a panel asks, reads, draws and answers."""

    id: str
    question: str
    metrics: tuple[str, ...]
    draw: Callable[[Columns, Columns], Drawing]
    answer: Callable[[Columns], str]


def collapse(columns: Columns, _evaluated: Columns) -> Drawing:
    """Stack collapsed groups by cause; draw their pooled share with its Wilson interval."""
    steps, shares = causes(columns)
    traces = [fg.stack(steps, shares[key], label, colour) for key, label, colour in CAUSES if steps]
    if {"acr_pooled", "acr_pooled_low", "acr_pooled_high"} <= set(columns):
        low, high, pooled = (columns[f"acr_pooled{end}"].level for end in ("_low", "_high", ""))
        traces += fg.band(low, high, "95% interval")
        traces.append(
            fg.line(pooled.step, pooled.value, "collapsed, pooled", PERCENT, line={"width": 2})
        )
    elif "acr" in columns:
        traces += fg.raw_and_trend(columns["acr"], "collapsed", PERCENT, raw=not steps)
    after = _once_different(columns.get("acr_effective", EMPTY), columns.get("acr", EMPTY))
    if after.step:
        after = windowed(columns, after)
        dashed = {"width": 2, "dash": "dash"}
        name = "still collapsed after the remedy"
        traces.append(fg.line(after.step, after.value, name, PERCENT, line=dashed))
    return traces, SHARE_AXIS


def gradient(columns: Columns, _evaluated: Columns) -> Drawing:
    """Draw the gradient norm on a log axis; spikes, zeros and non-finite steps are marked."""
    series = columns.get("grad_norm", EMPTY)
    positive = sr.positive(series)
    zeros = [(s, "exactly 0") for s, v in zip(series.step, series.value, strict=True) if v == 0]
    traces: list[Trace] = []
    if series.step:
        traces = fg.raw_and_trend(positive, "gradient norm", PLAIN, LIVE)
        traces[1]["y"] = sr.rounded(sr.geometric_trend(positive.level))
    if high := sr.spikes(series):
        marker = {"symbol": "diamond", "size": 8, "color": WARNING}
        steps, values = [s for s, _ in high], [v for _, v in high]
        traces.append(fg.line(steps, values, "spike", PLAIN, marker=marker) | {"mode": "markers"})
    traces += fg.nonfinite_marks(columns, ["grad_norm"])
    traces += fg.edge_marks(zeros, "exactly zero", symbol="triangle-down", upper=False)
    return traces, {"type": "log"} | fg.log_ticks(positive.finite()[1])


def reward(columns: Columns, evaluated: Columns) -> Drawing:
    """Draw success rate and mean reward, with evaluation points where there are any."""
    success, mean = columns.get("success_rate", EMPTY), columns.get("reward_mean", EMPTY)
    same = _same(success, mean)
    traces: list[Trace] = []
    if success.step:
        name = "success rate (= mean reward)" if same else "success rate"
        traces += fg.raw_and_trend(success, name, PERCENT, LIVE)
    if mean.step and not same:
        traces += fg.raw_and_trend(mean, "mean reward", PLAIN)
    traces += _evaluation(evaluated)
    traces += fg.nonfinite_marks(columns, ["reward_mean", "success_rate"])
    rewards = [] if same else mean.finite()[1]
    shares = bool(success.step) and max(map(abs, rewards), default=0.0) <= WIDE_REWARD
    return traces, {"tickformat": ".0%"} if shares else {}


def coverage(columns: Columns, _evaluated: Columns) -> Drawing:
    """Draw pass@k for each k as a family of one hue, few tries blue and many tries violet."""
    ks = sr.pass_ks(columns)
    traces: list[Trace] = []
    for index, k in enumerate(ks):
        colour = between(LIVE, MANY_TRIES, index / max(1, len(ks) - 1))
        series = columns[f"pass_at_{k}"]
        traces += fg.raw_and_trend(series, f"pass@{k}", PERCENT, colour, raw=k in (ks[0], ks[-1]))
    return traces, SHARE_AXIS


def tail(columns: Columns, _evaluated: Columns) -> Drawing:
    """Draw the risk that a group holds correct rollouts, yet none of the rare kind."""
    series = columns.get("tail_miss_risk", EMPTY)
    traces = fg.raw_and_trend(series, "tail-miss risk", PERCENT, LIVE) if series.step else []
    return traces + fg.nonfinite_marks(columns, ["tail_miss_risk"]), {
        "rangemode": "tozero",
        "tickformat": ".0%",
    }


def single(name: str, series: Series) -> Drawing:
    """Draw any one metric."""
    known = describe(name)
    share = known is not None and (known.low, known.high) == (0, 1)
    traces = fg.raw_and_trend(series, label(name), PERCENT if share else PLAIN, LIVE)
    for trace in traces:
        trace["showlegend"] = False
    axis = {"tickformat": ".0%"} if share else {"exponentformat": "SI", "tickformat": ""}
    marks = fg.nonfinite_marks({name: series}, [name])
    axis |= {"nticks": 4} | _room(series, share=share)
    return traces + [mark | {"showlegend": False} for mark in marks], axis


def label(name: str) -> str:
    """Give a metric's label: the catalog's, or its own name."""
    known = describe(name)
    return known.label if known else name


def help_text(*names: str) -> str:
    """Explain metrics by the catalog's definitions and references."""
    entries = [known for name in names if (known := describe(name))]
    return "\n\n".join(
        f"{m.label}: {m.definition}" + (f" [{m.reference}]" if m.reference else "") for m in entries
    )


def _room(series: Series, *, share: bool) -> dict[str, Any]:
    """Give a constant a range that suits it; by itself it would get one from -1 to 1."""
    values = series.finite()[1]
    if not values or min(values) != max(values):
        return {}
    if share:
        return {"range": [0, 1.02]}
    return {"range": sorted([0.8 * values[0], 1.2 * values[0]])} if values[0] else {}


def _evaluation(evaluated: Columns) -> list[Trace]:
    success, mean = evaluated.get("success_rate", EMPTY), evaluated.get("reward_mean", EMPTY)
    open_diamond = {"symbol": "diamond-open", "size": 9, "line": {"width": 2}}
    filled = {"symbol": "diamond", "size": 9, "color": LIVE}
    shown = [(success, "success, evaluation", PERCENT, filled)]
    shown += [] if _same(success, mean) else [(mean, "reward, evaluation", PLAIN, open_diamond)]
    return [
        fg.line(points.step, points.value, name, hover, marker=marker) | {"mode": "markers"}
        for points, name, hover, marker in shown
        if points.step
    ]


def _once_different(effective: Series, before: Series) -> Series:
    """Give the effective rate from the step on at which a remedy first changed it.

    Buckets of two metrics that were thinned apart hold other steps and differ a little anyway.
    """
    found, rates = effective.level.known(), at(before, effective.level.known().step, 0.0)
    least = SAME if set(found.step) <= set(before.level.step) else NOTICEABLE
    for index, (value, rate) in enumerate(zip(found.value, rates.tolist(), strict=True)):
        if value is not None and value < rate - least:
            count = None if found.count is None else found.count[index:]
            return Series(found.step[index:], found.value[index:], [], count=count)
    return EMPTY


def _same(one: Series, other: Series) -> bool:
    return (
        bool(one.step)
        and one.step == other.step
        and all(
            a == b or (a is not None and b is not None and abs(a - b) < SAME)
            for a, b in zip(one.value, other.value, strict=True)
        )
    )


PANELS: tuple[Panel, ...] = (
    Panel(
        "acr",
        "How many groups teach nothing, and why?",
        (
            "acr",
            "acr_all_fail",
            "acr_all_pass",
            "acr_constant",
            "acr_pooled",
            "acr_pooled_low",
            "acr_pooled_high",
            "acr_effective",
        ),
        collapse,
        answers.collapse,
    ),
    Panel("gradient", "Is the gradient sane?", ("grad_norm",), gradient, answers.gradient),
    Panel("reward", "Is it learning?", ("success_rate", "reward_mean"), reward, answers.reward),
    Panel(
        "passk",
        "What would k tries give?",
        tuple(f"pass_at_{2**power}" for power in range(7)),
        coverage,
        answers.coverage,
    ),
    Panel(
        "tail",
        "How likely is a rare correct answer missed?",
        ("tail_miss_risk",),
        tail,
        answers.tail,
    ),
)
