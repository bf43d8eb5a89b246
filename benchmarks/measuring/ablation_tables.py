"""Tables of the AVSPO ablation, each beside the numbers of the paper (arXiv 2605.21125)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from measuring.arms import written
from measuring.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from measuring.arms import Result

# Paper: collapse rate and MATH-500 of Math-1.5B by kind of value.
PAPER_VALUES = {
    "none": (0.40, 58.6),
    "random uniform": (0.22, 62.1),
    "fixed .5": (0.19, 63.5),
    "exponential": (0.18, 64.2),
    "stratified": (0.15, 67.2),
}
# Paper: steps to 60 % and MATH-500 at the end, by threshold.
PAPER_THRESHOLDS = {
    "fixed at .3": ("420", "64.8"),
    "fixed at .5": ("380", "65.4"),
    "fixed at .7": ("350", "63.9"),
    "adaptive, controller": ("295", "67.2"),
}
# Paper: shares of all-wrong and all-right groups left, and MATH-500, by side.
PAPER_SIDES = {
    "none": (24.8, 15.2, 58.6),
    "all-wrong only": (9.1, math.nan, 63.2),
    "all-right only": (math.nan, 4.2, 60.8),
    "both": (8.7, 6.3, 67.2),
}
UNKNOWN = (math.nan, math.nan, math.nan)

COLUMNS = {
    "values": {
        "virtual values": "<",
        "abs A, K = 6": ">",
        "without std division": ">",
        "raw ACR": ">",
        "effective ACR": ">",
        "gain, points": ">",
        "paper: ACR": ">",
        "paper: gain": ">",
    },
    "thresholds": {
        "threshold": "<",
        "effective ACR": ">",
        "steps to .6": ">",
        "final success": ">",
        "gain, points": ">",
        "paper: steps to 60 %": ">",
        "paper: final": ">",
    },
    "sides": {
        "side": "<",
        "all-wrong": ">",
        "all-right": ">",
        "gain, points": ">",
        "paper: all-wrong left": ">",
        "paper: all-right left": ">",
        "paper: gain": ">",
    },
}


def value_table(results: Sequence[Result], foreseen: Mapping[str, tuple[float, float]]) -> str:
    """Lay out, by kind of value, the size of the advantage foreseen for K = 6 of 8 and the gain.

    ``foreseen`` holds it with std division and without.
    """
    base = results[0]
    out = []
    for result, (paper_acr, paper_end) in zip(results, PAPER_VALUES.values(), strict=True):
        plain = result is base
        out.append(
            [
                "none" if plain else result.name,
                "" if plain else f"{foreseen[result.name][0]:.3f}",
                "" if plain else f"{foreseen[result.name][1]:.3f}",
                f"{result.share('acr'):.3f}",
                f"{result.share('effective'):.3f}",
                "" if plain else _points(result, base),
                f"{paper_acr:.2f}",
                "" if plain else f"{paper_end - 58.6:+.1f}",
            ]
        )
    return table(COLUMNS["values"], out)


def threshold_table(results: Sequence[Result]) -> str:
    """Lay out, by threshold, what collapse is left, how fast and how far it went."""
    base = results[0]
    rows = [
        [
            "none" if result is base else result.name,
            f"{result.share('effective'):.3f}",
            written(result.steps_to(0.6), 0),
            written(result.finals()),
            "" if result is base else _points(result, base),
            *PAPER_THRESHOLDS.get(result.name, ("", "")),
        ]
        for result in results
    ]
    return table(COLUMNS["thresholds"], rows)


def side_table(results: Sequence[Result]) -> str:
    """Lay out, by side, the shares before and after the remedy, and the gain."""
    base = results[0]
    out = []
    for result in results:
        plain = result is base
        fail, solved, end = PAPER_SIDES.get("none" if plain else result.name, UNKNOWN)
        out.append(
            [
                "none" if plain else result.name,
                f"{result.share('all_fail'):.3f} → {result.share('left_fail'):.3f}",
                f"{result.share('all_pass'):.3f} → {result.share('left_pass'):.3f}",
                "" if plain else _points(result, base),
                "" if math.isnan(fail) else f"{fail:.1f} %",
                "" if math.isnan(solved) else f"{solved:.1f} %",
                "" if plain or math.isnan(end) else f"{end - 58.6:+.1f}",
            ]
        )
    return table(COLUMNS["sides"], out)


def _points(result: Result, base: Result) -> str:
    return written([100 * gain for gain in result.gains(base)], 2, "+")
