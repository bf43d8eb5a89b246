"""The spread of success rates under which counted groups are most likely."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvitals.metrics.mixture import spread_at
from rlvitals.metrics.spread import Spread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlvitals.metrics.mixture import Cells, Slopes
    from rlvitals.metrics.rollouts import BoolArray, FloatArray

# Where a search starts: the share of all-fail and all-pass groups laid to prompts that are never
# and always solved, and alpha + beta. The likelihood can have a hill for each explanation.
STARTS = ((0.8, 3.0), (0.1, 1.0), (0.5, 30.0))

# Bounds of a point (see ``shape_at``). Beyond them the likelihood is flat: rates all equal, rates
# all 0 or 1, or a part that holds nobody.
LOWEST = np.array([-18.0, -9.0, -25.0, -25.0])
HIGHEST = np.array([18.0, 14.0, 25.0, 25.0])

# Below that a part is nearly gone; nothing of the kind holds for mean and concentration.
FADING = np.array([-np.inf, -np.inf, -5.0, -5.0])

STEPS = 200
LONGEST_STEP = 3.0
SETTLED = 1e-9  # of log likelihood still to gain; the parameters are then 1e-4 SE from the top
HALVINGS = 40
FLAT = 1e-10  # of curvature a group, below which a direction counts as bent this much


class Top(NamedTuple):
    """Hold the spread where a search ended, and whether it settled there."""

    spread: Spread
    settled: bool


def likeliest(
    cells: Cells, *, inflated: bool = True, starts: Iterable[FloatArray] | None = None
) -> Top:
    """Climb to the highest likelihood from several starts (from ``starts`` when given).

    Without a mixed group the ends alone explain everything: never and always are then the shares
    of all-fail and all-pass groups, whatever ``inflated`` says, as a Beta with alpha + beta
    towards 0 comes to the same.
    """
    none, every = (float(cells.times @ reached) for reached in cells.ends())
    groups = float(cells.times.sum())
    never, always = none / groups, every / groups
    if none + every == groups:
        return Top(Spread(1.0, 1.0, never, 1.0 - never), settled=True)
    begun = _starts(cells, never, always) if starts is None else starts
    free = np.array([True, True, inflated, inflated])
    tops = [_climb(cells, np.where(free, at, LOWEST), free) for at in begun]
    at, _, settled = max(tops, key=lambda top: top[1])
    return Top(spread_at(at), settled)


def _starts(cells: Cells, never: float, always: float) -> list[FloatArray]:
    """Lay part of the all-fail and all-pass groups to the ends, the rest to the Beta part."""
    mean = float(cells.times @ cells.c / (cells.times @ cells.n))
    mixed = cells.times * ~cells.ends().any(0)
    inner = float(mixed @ cells.c / (mixed @ cells.n))
    made = []
    for laid, concentration in STARTS:
        centre = laid * inner + (1 - laid) * mean
        rest = 1 - laid * (never + always)
        ends = [np.log(max(laid * share, 1e-3) / rest) for share in (never, always)]
        made.append(np.array([np.log(centre / (1 - centre)), np.log(concentration), *ends]))
    return made


def _climb(cells: Cells, at: FloatArray, free: BoolArray) -> tuple[FloatArray, float, bool]:
    """Take Newton steps uphill within the bounds until little is left to gain."""
    for _ in range(STEPS):
        at = _faded(cells, at, free)
        slopes = cells.slopes(at)
        step = _uphill(slopes, _movable(at, slopes.gradient, free))
        gain = float(slopes.gradient @ step)
        if gain < SETTLED:
            return at, slopes.value, True
        for halving in range(HALVINGS):
            reached = np.clip(at + step / 2**halving, LOWEST, HIGHEST)
            if cells.log_likelihood(reached) > slopes.value:
                break
        else:  # no digit of the likelihood is left to gain
            return at, slopes.value, True
        at = reached
    return at, cells.log_likelihood(at), False


def _faded(cells: Cells, at: FloatArray, free: BoolArray) -> FloatArray:
    """Drop a part that is nearly gone where that gains; Newton steps would only thin it by e."""
    fading = free & (at < FADING)
    if (fading & (at > LOWEST)).any():
        without = np.where(fading, LOWEST, at)
        if cells.log_likelihood(without) > cells.log_likelihood(at):
            return without
    return at


def _movable(at: FloatArray, gradient: FloatArray, free: BoolArray) -> BoolArray:
    """Leave out what is fixed and what stands at its bound and would leave it."""
    stuck = ((at <= LOWEST) & (gradient <= 0)) | ((at >= HIGHEST) & (gradient >= 0))
    return free & ~stuck


def _uphill(slopes: Slopes, movable: BoolArray) -> FloatArray:
    """Give a Newton step, turned uphill where the likelihood is not concave."""
    step: FloatArray = np.zeros(4)
    if movable.any():
        bend, turns = np.linalg.eigh(slopes.curvature[np.ix_(movable, movable)])
        bend = np.maximum(np.abs(bend), FLAT * max(1.0, np.abs(bend).max()))
        step[movable] = turns @ ((turns.T @ slopes.gradient[movable]) / bend)
    step *= min(1.0, LONGEST_STEP / max(np.abs(step).max(), LONGEST_STEP))
    return step
