"""Print the tables of group-size.md and collapse.md: errors, flags and coverage over many samples.

python docs/science/measure_group_size.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics import (
    bootstrap_ratio,
    collapse_at_larger,
    collapse_at_smaller,
    fit_beta_binomial,
    wilson_interval,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from measuring.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    Rates = Callable[[np.random.Generator, int], np.ndarray]

ROLLOUTS = 8
POPULATIONS: dict[str, Rates] = {
    "Beta(.4, .6)": lambda source, m: source.beta(0.4, 0.6, m),
    "Beta(2, 2)": lambda source, m: source.beta(2, 2, m),
    "20 % impossible, else Beta(1, 2)": lambda source, m: (
        source.binomial(1, 0.8, m) * source.beta(1, 2, m)
    ),
    "logit-normal(-1, 2)": lambda source, m: 1 / (1 + np.exp(-source.normal(-1, 2, m))),
    "half .05, half .9": lambda source, m: source.choice([0.05, 0.9], m),
    "half .2, half .7": lambda source, m: source.choice([0.2, 0.7], m),
}


def main() -> None:
    """Print every table."""
    _show("forecast errors, 3,200 groups of 8, 30 samples", errors(3200, 30))
    _show("share called no fit, 60 samples each", flags((50, 100, 400, 1600), 60))
    _show("coverage of 95 % intervals at 16 rollouts, 50 samples", coverage((300,), 50))
    _show("coverage at 4 rollouts, counted, 1,000 samples", counted((60, 200), 1000))
    _show("coverage by prompt, 60 prompts, 1,000 samples", by_prompt((1, 3, 6), 1000))


def _show(heading: str, rows: str) -> None:
    print(f"### {heading}\n\n{rows}\n", flush=True)


def draw(source: np.random.Generator, rates: Rates, groups: int) -> dict[int, list[int]]:
    """Draw groups of a population."""
    c = source.binomial(ROLLOUTS, rates(source, groups))
    return {ROLLOUTS: np.bincount(c, minlength=ROLLOUTS + 1).tolist()}


def true_rate(rates: Rates, n: int) -> float:
    """Average p^n + (1-p)^n over a million prompts."""
    p = rates(np.random.default_rng(99), 1_000_000)
    return float((p**n + (1 - p) ** n).mean())


def errors(groups: int, samples: int) -> str:
    """Tabulate mean errors of forecasts at 16 and 32, plain and inflated."""
    rows = []
    for name, rates in POPULATIONS.items():
        row = [name]
        for inflated in (False, True):
            source, found = np.random.default_rng(0), []
            for _ in range(samples):
                spread = fit_beta_binomial(draw(source, rates, groups), inflated=inflated).spread
                found.append([spread.all_fail(n) + spread.all_pass(n) for n in (16, 32)])
            error = np.mean(found, axis=0) - [true_rate(rates, n) for n in (16, 32)]
            row += [f"{e:+.3f}" for e in error]
        rows.append(row)
    return table({"spread": "<", "16": ">", "32": ">", "16 ": ">", "32 ": ">"}, rows)


def flags(sizes: tuple[int, ...], samples: int) -> str:
    """Tabulate how often the fit is not called reliable."""
    rows = []
    for name, rates in POPULATIONS.items():
        source, row = np.random.default_rng(1), [name]
        for groups in sizes:
            fits = [fit_beta_binomial(draw(source, rates, groups)) for _ in range(samples)]
            untested = np.mean([fit.test.p_value is None for fit in fits])
            row.append(f"{np.mean([not fit.reliable for fit in fits]) - untested:.2f}")
            row[-1] += f" + {untested:.2f}" if untested else ""
        rows.append(row)
    return table({"spread": "<"} | {f"{size:,}": ">" for size in sizes}, rows)


def coverage(sizes: tuple[int, ...], samples: int) -> str:
    """Tabulate how often intervals, and bounds without a fit, hold the true rate at 16."""
    rows = []
    for name, rates in POPULATIONS.items():
        truth, row = true_rate(rates, 16), [name]
        for groups in sizes:
            source = np.random.default_rng(2)
            ats = [
                collapse_at_larger(draw(source, rates, groups), 16, refits=60, seed=seed)
                for seed in range(samples)
            ]
            row.append(f"{np.mean([at.rate.low <= truth <= at.rate.high for at in ats]):.2f}")
            row.append(f"{np.mean([at.rate.high - at.rate.low for at in ats]):.3f}")
            row.append(f"{np.mean([at.bounds[1] - at.bounds[0] for at in ats]):.3f}")
        rows.append(row)
    columns = {"spread": "<"}
    for size in sizes:
        columns |= {f"{size} held": ">", f"{size} width": ">", f"{size} bounds": ">"}
    return table(columns, rows)


def counted(sizes: tuple[int, ...], samples: int) -> str:
    """Tabulate how often the interval at 4 rollouts, without a fit, holds the truth."""
    rows = []
    for name, rates in POPULATIONS.items():
        truth, row = true_rate(rates, 4), [name]
        for groups in sizes:
            source = np.random.default_rng(3)
            ats = [collapse_at_smaller(draw(source, rates, groups), 4).rate for _ in range(samples)]
            row.append(f"{np.mean([at.low <= truth <= at.high for at in ats]):.3f}")
        rows.append(row)
    return table({"spread": "<"} | {f"{size}": ">" for size in sizes}, rows)


def by_prompt(visits: tuple[int, ...], samples: int) -> str:
    """Tabulate how often Wilson's and the bootstrap's interval hold the rate of Beta(.4, .6)."""
    rows, truth = [], true_rate(POPULATIONS["Beta(.4, .6)"], ROLLOUTS)
    for times in visits:
        source, prompts = np.random.default_rng(4), np.repeat(np.arange(60), times)
        held = np.zeros(2)
        for seed in range(samples):
            rates = source.beta(0.4, 0.6, 60)[prompts]
            flat = np.isin(source.binomial(ROLLOUTS, rates), (0, ROLLOUTS))
            low, high = wilson_interval(int(flat.sum()), len(flat))
            held[0] += low <= truth <= high
            _, low, high = bootstrap_ratio(flat, np.ones(len(flat)), prompts, draws=400, seed=seed)
            held[1] += low <= truth <= high
        rows.append([str(times), *(f"{share:.3f}" for share in held / samples)])
    return table({"visits a prompt": ">", "Wilson": ">", "bootstrap by prompt": ">"}, rows)


if __name__ == "__main__":
    main()
