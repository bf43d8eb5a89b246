"""Tables of the remedies on a tiny transformer, a row an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from measuring.collapse_paper import MAIN_TABLE
from measuring.paired import difference, ratio
from measuring.tables import table
from rlvitals.metrics import log_norm_variation, outlier_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Run = dict[str, Any]

BASE_ARM = "GRPO"


def by_arm(runs: Sequence[Run], mix: str) -> dict[str, list[Run]]:
    """Give the runs of a mix by arm, in the order of their seeds."""
    arms = dict.fromkeys(run["arm"] for run in runs)
    return {arm: [r for r in runs if (r["arm"], r["mix"]) == (arm, mix)] for arm in arms}


def mixes(runs: Sequence[Run]) -> list[str]:
    """Give the mixes there are runs of."""
    return list(dict.fromkeys(run["mix"] for run in runs))


def points(runs: Sequence[Run], k: int = 1) -> list[float]:
    """Give pass@k at the end of each run in points."""
    return [100 * run[f"pass_{k}"] for run in runs]


def variations(runs: Sequence[Run]) -> list[float]:
    """Give the mean change of the log gradient norm from step to step of each run."""
    return [log_norm_variation(run["grad_norm"]) or 0.0 for run in runs]


def spikes(runs: Sequence[Run]) -> list[float]:
    """Give the spikes per 100 steps of each run."""
    return [outlier_rate(run["grad_norm"]) or 0.0 for run in runs]


def collapse_table(runs: Sequence[Run]) -> str:
    """Tabulate collapse: raw on both sides, effective, and its change against GRPO's."""
    columns = {
        "mix": "<",
        "arm": "<",
        "all-fail": ">",
        "all-pass": ">",
        "raw ACR": ">",
        "effective ACR": ">",
        "effective against GRPO": ">",
    }

    def cells(own: list[Run], base: list[Run]) -> list[str]:
        fail, solved, effective = (_mean(own, n) for n in ("all_fail", "all_pass", "acr_effective"))
        change = effective / _mean(base, "acr_effective") - 1
        shares = (fail, solved, fail + solved, effective)
        return [*(f"{share:.3f}" for share in shares), "" if own is base else f"{change:+.0%}"]

    return table(columns, list(_rows(runs, cells)))


def end_table(runs: Sequence[Run]) -> str:
    """Tabulate pass@1 and pass@8 at the end, and their paired differences to GRPO in points."""
    columns = {
        "mix": "<",
        "arm": "<",
        "pass@1": ">",
        "difference": ">",
        "pass@8": ">",
        "difference of pass@8": ">",
    }

    def cells(own: list[Run], base: list[Run]) -> list[str]:
        found = []
        for k in (1, 8):
            mine, theirs = points(own, k), points(base, k)
            gain = "" if own is base else difference(mine, theirs).written()
            found += [f"{np.mean(mine):.1f}", gain]
        return found

    return table(columns, list(_rows(runs, cells)))


def gradient_table(runs: Sequence[Run]) -> str:
    """Tabulate smoothness and spikes of the gradient norm, and what happened to tokens."""
    columns = {
        "mix": "<",
        "arm": "<",
        "mean norm": ">",
        "change of log norm a step": ">",
        "ratio to GRPO": ">",
        "spikes per 100 steps": ">",
        "difference": ">",
        "norm clipped": ">",
        "mean weight": ">",
        "at low / high": ">",
        "tokens without gradient": ">",
    }

    def cells(own: list[Run], base: list[Run]) -> list[str]:
        mine, theirs = variations(own), variations(base)
        names = ("at_low", "at_high", "silenced", "weight", "grad_clipped")
        low, high, silent, weight, cut = (_mean(own, name) for name in names)
        weighed = any(run["weighed"] for run in own)
        same = own is base
        return [
            f"{_mean(own, 'grad_norm'):.2f}",
            f"{np.mean(mine):.3f}",
            "" if same else ratio(mine, theirs).written(2, ""),
            f"{np.mean(spikes(own)):.1f}",
            "" if same else difference(spikes(own), spikes(base)).written(),
            f"{cut:.0%}",
            f"{weight:.2f}" if weighed else "",
            f"{low:.0%} / {high:.0%}" if weighed else "",
            f"{silent:.1%}",
        ]

    return table(columns, list(_rows(runs, cells)))


def paper_table() -> str:
    """Tabulate what the two papers report, on language models."""
    rows = [
        [
            f"AVSPO, {model}",
            f"{before:.2f} → {after:.2f} ({after / before - 1:+.0%})",
            f"{high - low:+.1f}",
            f"{mean_after - mean_before:+.1f}",
        ]
        for model, (before, after, low, high, mean_before, mean_after) in MAIN_TABLE.items()
    ]
    rows.append(["GRPO-SG, mathematics", "", "", "+2.7 to +6.0 %"])
    columns = {"paper": "<", "ACR": ">", "MATH-500, points": ">", "mean of benchmarks": ">"}
    return table(columns, rows)


def _rows(
    runs: Sequence[Run], cells: Callable[[list[Run], list[Run]], list[str]]
) -> Iterator[list[str]]:
    for mix in mixes(runs):
        arms = by_arm(runs, mix)
        for arm, own in arms.items():
            yield [mix if arm == BASE_ARM else "", arm, *cells(own, arms[BASE_ARM])]


def _mean(runs: Sequence[Run], name: str) -> float:
    return float(np.mean([run[name] for run in runs]))
