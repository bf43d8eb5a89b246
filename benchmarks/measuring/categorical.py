"""Tables of the categorical policy, beside an earlier run of the same recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from measuring.categorical_reference import REFERENCE, REFERENCE_SIDES
from measuring.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from policies.categorical import Outcome

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

    Runs = Mapping[tuple[int, float], Outcome]  # by N and gamma


@dataclass(frozen=True, slots=True)
class Spot:
    """Hold a mean over seeds with their std (ddof=1), NaN for a single seed."""

    mean: float
    sd: float

    def __str__(self) -> str:
        """Write both to three decimals."""
        return f"{self.mean:.3f}" + (f" ± {self.sd:.3f}" if math.isfinite(self.sd) else "")


def spot(values: Floats) -> Spot:
    """Sum up one number of all seeds."""
    return Spot(float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else math.nan)


def sweep_table(runs: Runs, actions: int) -> str:
    """Lay out what every N and gamma ended with, beside the earlier run."""
    known = REFERENCE.get(actions, {})
    rows = []
    for (n, gamma), outcome in runs.items():
        q, retention = known.get((n, gamma), (math.nan, math.nan))
        measured = [str(spot(outcome.q)), str(spot(outcome.retention))]
        earlier = [f"{q:.3f}" if known else "-", f"{retention:.3f}" if known else "-"]
        active = f"{outcome.active.mean():.2f}"
        rows.append(
            [f"{n:,}", f"{gamma:g}", measured[0], earlier[0], measured[1], earlier[1], active]
        )
    columns = ("N", "γ", "Q_pos ± sd", "earlier", "M_ret ± sd", "earlier", "active groups")
    return _unequal(columns, rows)


def sides_table(runs: Mapping[tuple[int, float], Sequence[Outcome]], arms: Sequence[str]) -> str:
    """Lay out mass and retention for each way to treat collapsed groups."""
    rows = []
    for (n, gamma), outcomes in runs.items():
        known = REFERENCE_SIDES.get((n, gamma), (None,) * len(arms))
        for arm, outcome, earlier in zip(arms, outcomes, known, strict=True):
            was = "-" if earlier is None else f"{earlier:.3f}"
            found = [str(spot(outcome.q)), str(spot(outcome.retention))]
            rows.append([f"{n}", f"{gamma:g}", arm, *found, was])
    columns = ("N", "γ", "virtual rewards for", "Q_pos ± sd", "M_ret ± sd", "earlier M_ret")
    return _unequal(columns, rows)


def equal_mass_table(runs: Runs) -> str:
    """Lay out what focal weights keep beside plain GRPO that is stopped at the same mass.

    For every seed the plain run is read at the first step at which its correct mass is what the
    focal run ended with.
    """
    rows = []
    for (n, gamma), focal in runs.items():
        if not gamma or (n, 0.0) not in runs:
            continue
        row = [f"{n:,}", f"{gamma:g}", str(spot(focal.q)), str(spot(focal.retention))]
        step, kept = at_equal_mass(runs[n, 0.0], focal)
        if (step < 0).any():
            rows.append([*row, "-", f"not in {(step < 0).sum()} of {step.size}", "-"])
            continue
        apart = spot(focal.retention - kept)
        error = "" if step.size == 1 else f" ± {apart.sd / math.sqrt(step.size):.3f}"
        rows.append([*row, f"{step.mean():.0f}", str(spot(kept)), f"{apart.mean:+.3f}{error}"])
    columns = ("N", "γ", "Q_pos ± sd", "M_ret ± sd")
    more = ("γ = 0 is there at step", "M_ret ± sd of γ = 0 then", "difference ± SE")
    return _unequal(columns + more, rows)


def at_equal_mass(plain: Outcome, focal: Outcome) -> tuple[Integers, Floats]:
    """Give the first step at which ``plain`` has the last mass of ``focal``, and its retention.

    Both have one entry a seed; where it never has that mass they are -1 and NaN.
    """
    step = plain.first_at(focal.q)
    kept = plain.retention_path[step, np.arange(step.size)]
    return step, np.where(step < 0, np.nan, kept)


def _unequal(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table whose headings may repeat, which a mapping could not hold."""
    sides = {f"{place}": ">" for place in range(len(columns))}
    lines = table(sides, rows).split("\n")
    lines[0] = "| " + " | ".join(columns) + " |"
    return "\n".join(lines)
