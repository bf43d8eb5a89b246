"""Answer one question a panel: which metrics it needs, its chart, its sentence, its help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rlvitals.metrics.catalog import describe
from rlvitals.metrics.colours import ALL_FAIL, ALL_PASS, CONSTANT, LIVE
from rlvitals.metrics.gradient import robust_baseline

from rlvitals_dashboard import figures as fg
from rlvitals_dashboard import series as sr
from rlvitals_dashboard import words
from rlvitals_dashboard.figures import PERCENT, PLAIN, Trace
from rlvitals_dashboard.series import EMPTY, Columns, Series
from rlvitals_dashboard.theme import WARNING, between

Drawing = tuple[list[Trace], dict[str, Any]]

SHARE_AXIS = {"range": [0, 1.02], "tickformat": ".0%", "dtick": 0.25}
SPIKE_SIGMAS = 10.0
SPIKE_FACTOR = 3.0
MANY_TRIES = "#C07BD8"
PASS_AT = re.compile(r"pass_at_(\d+)\Z")
SAME = 1e-9
WIDE_REWARD = 1.5


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
    causes = (
        ("acr_all_fail", "all fail", ALL_FAIL),
        ("acr_all_pass", "all pass", ALL_PASS),
        ("acr_constant", "constant", CONSTANT),
    )
    steps, shares = sr.aligned(columns, [name for name, _, _ in causes])
    traces = [fg.stack(steps, shares[key], label, colour) for key, label, colour in causes]
    if {"acr_pooled", "acr_pooled_low", "acr_pooled_high"} <= set(columns):
        traces += fg.band(columns["acr_pooled_low"], columns["acr_pooled_high"], "95% interval")
        pooled = columns["acr_pooled"]
        traces.append(
            fg.line(pooled.step, pooled.value, "collapsed, pooled", PERCENT, line={"width": 2})
        )
    elif "acr" in columns:
        traces += fg.raw_and_trend(columns["acr"], "collapsed", PERCENT)
    after = _once_different(columns.get("acr_effective", EMPTY), columns.get("acr", EMPTY))
    if after.step:
        dashed = {"width": 2, "dash": "dash"}
        name = "still collapsed after the remedy"
        traces.append(fg.line(after.step, sr.trend(after), name, PERCENT, line=dashed))
    return traces, SHARE_AXIS


def spikes(series: Series) -> list[tuple[int, float]]:
    """Give the steps whose gradient norm stands far above the usual one of the range shown.

    Far is ten robust sigmas and three times the median, so that dust is no spike.
    """
    steps, values = series.finite()
    median, sigma = robust_baseline(values)
    limit = max(median + SPIKE_SIGMAS * sigma, SPIKE_FACTOR * median)
    return [(step, v) for step, v in zip(steps, values, strict=True) if v > limit]


def gradient(columns: Columns, _evaluated: Columns) -> Drawing:
    """Draw the gradient norm on a log axis; spikes, zeros and non-finite steps are marked."""
    series = columns.get("grad_norm", EMPTY)
    positive = Series(series.step, [v if v and v > 0 else None for v in series.value], [])
    zeros = [(s, "exactly 0") for s, v in zip(series.step, series.value, strict=True) if v == 0]
    traces: list[Trace] = []
    if series.step:
        traces = fg.raw_and_trend(positive, "gradient norm", PLAIN, LIVE)
        traces[1]["y"] = sr.rounded(sr.geometric_trend(positive))
    if high := spikes(series):
        marker = {"symbol": "diamond", "size": 8, "color": WARNING}
        steps, values = [s for s, _ in high], [v for _, v in high]
        traces.append(
            fg.line(steps, values, "spike", PLAIN, marker=marker) | {"mode": "markers"}
        )
    traces += fg.nonfinite_marks(columns, ["grad_norm"])
    traces += fg.edge_marks(zeros, "exactly zero", symbol="triangle-down", upper=False)
    return traces, {"type": "log", "dtick": 1, "exponentformat": "none"}


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


def pass_ks(names: Iterable[str]) -> list[int]:
    """Give, in order, every k for which there is a pass@k among the names."""
    return sorted(int(found[1]) for found in map(PASS_AT.match, names) if found)


def coverage(columns: Columns, _evaluated: Columns) -> Drawing:
    """Draw pass@k for each k as a family of one hue, few tries blue and many tries violet."""
    ks = pass_ks(columns)
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
    return traces + [mark | {"showlegend": False} for mark in marks], axis | {"nticks": 4}


def label(name: str) -> str:
    """Give a metric's label: the catalog's, or its own name."""
    known = describe(name)
    return known.label if known else name


def help_text(*names: str) -> str:
    """Explain metrics by the catalog's definitions and references."""
    entries = [known for name in names if (known := describe(name))]
    return "\n\n".join(
        f"{m.label}: {m.definition}" + (f" [{m.reference}]" if m.reference else "")
        for m in entries
    )


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
    """Give the effective rate from the step on at which a remedy first changed it."""
    rate = dict(zip(before.step, before.value, strict=True))
    for index, (step, value) in enumerate(zip(effective.step, effective.value, strict=True)):
        if value is not None and value < (rate.get(step) or 0.0) - SAME:
            return Series(effective.step[index:], effective.value[index:], [])
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


def _collapse_answer(columns: Columns) -> str:
    last = {name: series.last for name, series in columns.items()}
    share = last.get("acr_pooled", last.get("acr"))
    if share is None:
        return "No groups yet."
    low, high = last.get("acr_pooled_low"), last.get("acr_pooled_high")
    interval = f" ({words.percent(low)} to {words.percent(high)})" if low is not None else ""
    fail, passed = last.get("acr_all_fail"), last.get("acr_all_pass")
    sides = f": {words.percent(fail)} all fail, {words.percent(passed)} all pass"
    return f"Now {words.percent(share)}{interval} of groups{sides if fail is not None else ''}."


def _gradient_answer(columns: Columns) -> str:
    series = columns.get("grad_norm", EMPTY)
    if not series.step:
        return "No gradient norm yet: log it as grad_norm."
    median, _ = robust_baseline(series.finite()[1])
    found = spikes(series)
    parts = [f"Now {words.number(series.last)}, usually {words.number(median)}"]
    if found:
        parts.append(f"spike at step {fg.named_steps([s for s, _ in found])}")
    if series.nonfinite:
        parts.append(f"not finite at step {fg.named_steps([s for s, _ in series.nonfinite])}")
    return "; ".join(parts) + "."


def _reward_answer(columns: Columns) -> str:
    for key, name, write in (
        ("success_rate", "Success", words.percent),
        ("reward_mean", "Mean reward", words.number),
    ):
        series = columns.get(key, EMPTY)
        if series.last is not None:
            moved = sr.change(series)
            change = words.points(moved) if key == "success_rate" else words.number(moved)
            over = f", {change} over the last fifth of the range" if moved is not None else ""
            return f"{name} {write(series.last)}{over}."
    return "No rewards yet."


def _coverage_answer(columns: Columns) -> str:
    ks = [k for k in pass_ks(columns) if columns[f"pass_at_{k}"].last is not None]
    if not ks:
        return "No success definition yet: pass correct=, or set success_threshold."
    least, most = (columns[f"pass_at_{k}"].last or 0.0 for k in (ks[0], ks[-1]))
    return (
        f"pass@{ks[0]} {words.percent(least)}, pass@{ks[-1]} {words.percent(most)}: "
        f"more tries give {words.points(most - least)}."
    )


def _tail_answer(columns: Columns) -> str:
    risk = columns.get("tail_miss_risk", EMPTY).last
    if risk is None:
        return "No success definition yet."
    return f"Now {words.percent(risk)} of groups update the policy without the rarest right answers."


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
        _collapse_answer,
    ),
    Panel("gradient", "Is the gradient sane?", ("grad_norm",), gradient, _gradient_answer),
    Panel(
        "reward", "Is it learning?", ("success_rate", "reward_mean"), reward, _reward_answer
    ),
    Panel(
        "passk",
        "What would k tries give?",
        tuple(f"pass_at_{2**power}" for power in range(7)),
        coverage,
        _coverage_answer,
    ),
    Panel(
        "tail",
        "How likely is a rare correct answer missed?",
        ("tail_miss_risk",),
        tail,
        _tail_answer,
    ),
)
