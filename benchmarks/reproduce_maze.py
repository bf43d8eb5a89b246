"""Measure what focal weighting keeps of pass@256 on mazes with one solution, and its price.

F-GRPO (arXiv 2602.06717, section 5.2 and appendix K) trains a decoder on mazes with one solution
each: GRPO raises pass@1 while pass@256 falls, and focal weights keep more of both. This is the
same experiment, small enough for one core. Beside the paper's sweep stands GRPO at lower learning
rates: focal weights shrink updates, so a gain must survive that comparison.
"""

from __future__ import annotations

import copy
import json
import time
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from measuring.maze import (
    Arm,
    Runs,
    check_table,
    control_table,
    curves,
    sweep_table,
    trade_off,
    weight_table,
)
from measuring.report import arguments, publish
from policies.maze import Mazes, make_mazes, without
from policies.maze_grpo import Row, Settings, train
from policies.maze_solver import Solver, fine_tune

from rlvitals.remedies import Focal, Remedies

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What the mean focal weight is if success rates are uniform (appendix N of the paper).
MEAN_WEIGHT = {0.5: 0.679, 1.0: 0.5}


@dataclass(frozen=True)
class Size:
    """Set how large the experiment is, apart from its seeds."""

    side: int
    width: int
    layers: int
    heads: int
    sft_steps: int
    steps: int
    every: int
    sizes: tuple[int, ...]
    gammas: tuple[float, ...]
    controls: tuple[int, ...]  # the N that are run at lower learning rates too
    slower: tuple[tuple[float, tuple[float, ...]], ...]  # factor of the rate, and its gammas
    lr: float = 1e-3
    mazes: int = 16
    pool: int = 20_000
    test: int = 256

    def arms(self) -> Iterator[Arm]:
        """Give every combination to run."""
        for n in self.sizes:
            yield from (Arm(n, gamma, self.lr) for gamma in self.gammas)
            for factor, gammas in self.slower if n in self.controls else ():
                yield from (Arm(n, gamma, self.lr * factor) for gamma in gammas)


CI = Size(
    side=4,
    width=32,
    layers=2,
    heads=2,
    sft_steps=600,
    steps=250,
    every=25,
    sizes=(8, 32),
    gammas=(0.0, 1.0),
    controls=(32,),
    slower=((0.5, (0.0,)),),
)
FULL = Size(
    side=5,
    width=48,
    layers=3,
    heads=4,
    sft_steps=750,
    steps=1200,
    every=60,
    sizes=(4, 8, 16, 32),
    gammas=(0.0, 0.5, 1.0),
    controls=(8, 32),
    slower=((0.679, (0.0,)), (0.5, (0.0, 0.5, 1.0))),
)
OPTIONS = {
    "runs": {"type": Path, "help": "file that finished runs are kept in and read from"},
    "steps": {"type": int, "help": "train for longer or shorter"},
    "n": {"type": int, "nargs": "+", "help": "group sizes to run"},
    "first_seed": {"type": int, "default": 0},
}


@cache
def all_mazes(size: Size) -> tuple[Mazes, Mazes]:
    """Make the mazes to train on and, apart from them, those to test on."""
    test = make_mazes(size.test, size.side, np.random.default_rng(1))
    return without(make_mazes(size.pool, size.side, np.random.default_rng(0)), test), test


@cache
def start(size: Size, seed: int) -> Solver:
    """Fine-tune the solver that all runs of a seed start from."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        solver = Solver(size.side, size.width, size.layers, size.heads)
    fine_tune(solver, all_mazes(size)[0], size.sft_steps, np.random.default_rng([seed, 0]))
    return solver


def run(size: Size, arm: Arm, seed: int) -> list[Row]:
    """Train one arm from its seed's start; gamma 0 runs without any remedy."""
    settings = Settings(
        seed=seed,
        steps=size.steps,
        lr=arm.lr,
        group_size=arm.group_size,
        mazes=size.mazes,
        every=size.every,
        remedies=Remedies(focal=Focal(arm.gamma)) if arm.gamma else None,
    )
    return train(copy.deepcopy(start(size, seed)), *all_mazes(size), settings)


def run_all(size: Size, seeds: Sequence[int], store: Path | None) -> Runs:
    """Run every arm and seed, or read it from the store, a JSON line for each run."""
    text = store.read_text(encoding="utf-8") if store and store.is_file() else ""
    known = {line["key"]: line["rows"] for line in map(json.loads, text.splitlines())}
    runs: Runs = {arm: {} for arm in size.arms()}
    for seed in seeds:
        for arm in runs:
            key = json.dumps({"seed": seed, **asdict(arm), "size": fixed_part(size)})
            if key not in known:
                started = time.perf_counter()
                known[key] = run(size, arm, seed)
                print(f"seed {seed} {arm}: {time.perf_counter() - started:.0f} s", flush=True)
                if store:
                    with store.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps({"key": key, "rows": known[key]}) + "\n")
            runs[arm][seed] = known[key]
    return runs


def fixed_part(size: Size) -> dict[str, object]:
    """Give the settings that every run of a size shares; its arms may grow."""
    arms = ("sizes", "gammas", "controls", "slower", "lr")
    return {name: value for name, value in asdict(size).items() if name not in arms}


def tables_of(runs: Runs, size: Size) -> dict[str, str]:
    """Lay out what the runs show, in percent, under its headings."""
    return {
        "Final and lowest pass@k": sweep_table(runs, size.lr),
        "The same at half the learning rate": sweep_table(runs, size.lr / 2),
        "F-GRPO minus GRPO at lower learning rates": control_table(runs, size.lr),
        "Mean focal weight of mixed groups": weight_table(runs, MEAN_WEIGHT),
        "Sampled minus exact pass@k at the end of every run": check_table(runs),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run the experiment and publish its tables and figures."""
    args = arguments("Focal weighting on mazes with one solution.", argv, **OPTIONS)
    size, number = (FULL, 3) if args.full else (CI, 2)
    size = replace(size, steps=args.steps or size.steps, sizes=tuple(args.n or size.sizes))
    torch.set_num_threads(1)
    first = args.first_seed
    runs = run_all(size, range(first, first + (args.seeds or number)), args.runs)
    figures = {
        "maze-curves": curves(runs, size.lr, size.sizes),
        "maze-trade-off": trade_off(runs, size.lr, [n for n in size.sizes if n in size.controls]),
    }
    publish("maze", tables_of(runs, size), figures, args.save)


if __name__ == "__main__":
    main()
