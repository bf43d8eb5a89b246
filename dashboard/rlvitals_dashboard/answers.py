"""Answer each panel's question in a sentence about now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals_dashboard import series as sr
from rlvitals_dashboard import words
from rlvitals_dashboard.series import EMPTY, Columns
from rlvitals_dashboard.shares import at, causes, windowed

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMED_STEPS = 4


def collapse(columns: Columns) -> str:
    """Say how many groups collapsed, with the interval, and on which side."""
    last = {name: series.last for name, series in columns.items()}
    share = last.get("acr_pooled", last.get("acr"))
    if share is None:
        return "No groups yet."
    low, high = last.get("acr_pooled_low"), last.get("acr_pooled_high")
    interval = f" ({words.percent(low)} to {words.percent(high)})" if low is not None else ""
    steps, shares = causes(columns)
    if not steps:
        return f"Now {words.percent(share)}{interval} of groups."
    # The last bucket of a thinned run may hold more steps than the pooled rate does.
    mean = float(at(windowed(columns, columns.get("acr", EMPTY)), steps[-1:], share)[0])
    scale = share / mean if mean else 1.0
    named = {"acr_all_fail": "all fail", "acr_all_pass": "all pass", "acr_constant": "constant"}
    sides = [
        f"{words.percent(scale * float(shares[key][-1]))} {name}"
        for key, name in named.items()
        if key in columns and (key != "acr_constant" or shares[key][-1] > 0)
    ]
    return f"Now {words.percent(share)}{interval} of groups: {', '.join(sides)}."


def gradient(columns: Columns) -> str:
    """Say how large the gradient is, against its usual size, and what went wrong with it."""
    series = columns.get("grad_norm", EMPTY)
    if not series.step:
        return "No gradient norm yet: log it as grad_norm."
    found = sr.spikes(series)
    parts = [f"Now {words.number(series.last)}, usually {words.number(sr.usual(series))}"]
    if found:
        parts.append(f"spike at step {named_steps([s for s, _ in found])}")
    if series.nonfinite:
        parts.append(f"not finite at step {named_steps([s for s, _ in series.nonfinite])}")
    return "; ".join(parts) + "."


def reward(columns: Columns) -> str:
    """Say how good the run is and how it moved."""
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


def coverage(columns: Columns) -> str:
    """Say what more tries are worth."""
    ks = [k for k in sr.pass_ks(columns) if columns[f"pass_at_{k}"].last is not None]
    if not ks:
        return "No success definition yet: pass correct=, or set success_threshold."
    least, most = (columns[f"pass_at_{k}"].last or 0.0 for k in (ks[0], ks[-1]))
    if len(ks) == 1:
        return f"pass@{ks[0]} {words.percent(least)}."
    return (
        f"pass@{ks[0]} {words.percent(least)}, pass@{ks[-1]} {words.percent(most)}: "
        f"more tries give {words.points(most - least)}."
    )


def tail(columns: Columns) -> str:
    """Say how often the rarest right answers are missed."""
    risk = columns.get("tail_miss_risk", EMPTY).last
    if risk is None:
        return "No success definition yet."
    return (
        f"Now {words.percent(risk)} of groups update the policy without the rarest right answers."
    )


def named_steps(steps: Sequence[int]) -> str:
    """List a few steps in words, and how many more there are."""
    shown = ", ".join(f"{step:,}" for step in steps[:NAMED_STEPS])
    more = len(steps) - NAMED_STEPS
    return f"{shown} and {more:,} more" if more > 0 else shown
