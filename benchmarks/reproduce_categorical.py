"""Measure which correct actions a softmax policy keeps, by group size and focal weight.

F-GRPO (arXiv 2602.06717, figure 2): small groups teach too seldom to harm, very large ones see
all; in between the policy becomes right and forgets most ways to be right. Focal weights keep
more of them after as many steps; a second table asks whether they do at the same correct mass. A
third asks what virtual rewards for collapsed groups do to the same policy.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from measuring.categorical import equal_mass_table, sides_table, sweep_table
from measuring.categorical_figures import curves, paths
from measuring.report import arguments, publish
from policies.categorical import Outcome, Setting, train

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL, LARGE = Setting(2), Setting(2, actions=128_000, correct=10_000)
SIZES = tuple(2**power for power in range(1, 12))
LARGE_SIZES = (2, 32, 256, 2048, 8192, 32_768, 131_072)
# Gains of (all wrong, all right) groups.
SIDES = {"none": (0.0, 0.0), "all wrong": (1.0, 0.0), "all right": (0.0, 1.0), "both": (1.0, 1.0)}
SIDE_SIZES = (2, 4, 8, 16)
PATH_SIZES = (4, 16, 64, 256)  # far enough apart to be told from each other
OPTIONS = {"n": {"type": int, "nargs": "+", "help": "group sizes to run"}}


def sweep(
    base: Setting, sizes: Sequence[int], gammas: Sequence[float], seeds: int
) -> dict[tuple[int, float], Outcome]:
    """Train at every group size and focal weight; keyed by both."""
    runs = {}
    for n in sizes:
        for gamma in gammas:
            started = time.perf_counter()
            runs[n, gamma] = train(replace(base, n=n, gamma=gamma), seeds)
            print(f"N={n} γ={gamma:g}: {time.perf_counter() - started:.1f} s", flush=True)
    return runs


def sides(
    base: Setting, sizes: Sequence[int], gammas: Sequence[float], seeds: int
) -> dict[tuple[int, float], list[Outcome]]:
    """Train with AVSPO's advantage in no, one or both kinds of collapsed groups.

    Advantages are divided by the std here, as AVSPO's are.
    """
    scaled = replace(base, std_division=True)
    return {
        (n, gamma): [
            train(replace(scaled, n=n, gamma=gamma, wrong_gain=wrong, right_gain=right), seeds)
            for wrong, right in SIDES.values()
        ]
        for gamma in gammas
        for n in sizes
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run the experiment and publish its tables and figures."""
    args = arguments("Retained correct mass of a categorical policy.", argv, **OPTIONS)
    base = LARGE if args.full else SMALL
    sizes = args.n or (LARGE_SIZES if args.full else SIZES)
    seeds = args.seeds or (1 if args.full else 4)
    runs = sweep(base, sizes, (0.0, 1.0) if args.full else (0.0, 0.5, 1.0), seeds)
    heading = f"{base.actions:,} actions, {base.correct:,} correct, {seeds} seeds"
    tables = {heading: sweep_table(runs, base.actions), "At equal mass": equal_mass_table(runs)}
    if not args.full:
        gains = sides(base, SIDE_SIZES, (0.0, 1.0), min(seeds, 3))
        tables["Virtual rewards for collapsed groups"] = sides_table(gains, list(SIDES))
    name = "categorical-full" if args.full else "categorical"
    figures = {f"{name}-retention": curves(runs, base.actions)}
    if not args.full:
        figures[f"{name}-paths"] = paths(runs, PATH_SIZES)
    publish(name, tables, figures, args.save)


if __name__ == "__main__":
    main()
