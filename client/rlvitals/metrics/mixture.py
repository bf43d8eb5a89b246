"""The likelihood of group counts when prompts are never, always, or Beta often solved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvitals.metrics.spread import Spread, log_beta_part, running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import BoolArray, FloatArray, IntArray


NOBODY = 1e-9  # a share of prompts too small to be told from none


class Slopes(NamedTuple):
    """Hold a log likelihood with its gradient (4,) and second derivatives (4, 4)."""

    value: float
    gradient: FloatArray
    curvature: FloatArray


class Shape(NamedTuple):
    """Hold a Beta(alpha, beta) and, as logarithms, the weights of never, always and it."""

    alpha: float
    beta: float
    log_weights: FloatArray


def shape_at(at: FloatArray) -> Shape:
    """Read a point: logit of the Beta's mean, log(alpha + beta), weights by softmax.

    The last two coordinates are log(never / Beta) and log(always / Beta).
    """
    concentration, odds = np.exp(at[1]), np.exp(at[0])
    alpha, beta = concentration * odds / (1 + odds), concentration / (1 + odds)
    logits = np.array([at[2], at[3], 0.0])
    return Shape(float(alpha), float(beta), logits - np.logaddexp.reduce(logits))


def spread_at(at: FloatArray) -> Spread:
    """Turn a point into the spread of rates that it stands for; a part of nobody is exactly 0."""
    alpha, beta, log_weights = shape_at(at)
    never, always = (part if part > NOBODY else 0.0 for part in np.exp(log_weights[:2]).tolist())
    return Spread(alpha, beta, never, always)


def point_of(spread: Spread) -> FloatArray:
    """Give the point of a spread, parts that hold nobody counting for a few in a thousand."""
    ends = [np.log(max(part / spread.between, 5e-3)) for part in (spread.never, spread.always)]
    whole = spread.alpha + spread.beta
    return np.array([np.log(spread.alpha / spread.beta), np.log(whole), *ends])


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Hold what was counted: ``times`` groups of n rollouts had c correct, for each cell.

    Chances leave out C(n, c), which no parameter moves.
    """

    n: IntArray
    c: IntArray
    times: FloatArray

    @classmethod
    def from_counts(cls, counts: Mapping[int, Sequence[int]]) -> Cells:
        """List the cells that are not empty."""
        rows = [(n, c, times) for n in counts for c, times in enumerate(counts[n]) if times]
        table = np.array(rows, np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2].astype(np.float64))

    def counted(self, times: ArrayLike) -> Cells:
        """Give the same cells with other numbers of groups."""
        return replace(self, times=np.asarray(times, np.float64))

    def log_likelihood(self, at: FloatArray) -> float:
        """Sum the log chances of all groups."""
        alpha, beta, log_weights = shape_at(at)
        log_beta = log_beta_part(alpha, beta, self.n, self.c)
        return float(self.times @ self._mixed(log_beta, log_weights))

    def slopes(self, at: FloatArray) -> Slopes:
        """Differentiate the log likelihood twice; sums of 1 / (alpha + i) make that exact.

        In each cell the score of a coordinate is that of its part times the part's share of the
        chance, and mixing adds the spread of those shares to the second derivatives.
        """
        alpha, beta, log_weights = shape_at(at)
        log_beta = log_beta_part(alpha, beta, self.n, self.c)
        mixed = self._mixed(log_beta, log_weights)
        inside = np.exp(log_weights[2] + log_beta - mixed)
        outside = np.exp(np.where(self.ends(), log_weights[:2, None] - mixed, -np.inf))
        first, second = self._beta_slopes(alpha, beta)
        weights = np.exp(log_weights[:2])
        gradient = np.concatenate([inside * first, outside - weights[:, None]]) @ self.times
        turned = -(first * inside * self.times) @ outside.T
        bent = (second * inside) @ self.times
        bent += (first * inside * (1 - inside) * self.times) @ first.T
        moved = np.diag(outside @ self.times) - (outside * self.times) @ outside.T
        moved -= self.times.sum() * (np.diag(weights) - np.outer(weights, weights))
        curvature = np.block([[bent, turned], [turned.T, moved]])
        return Slopes(float(self.times @ mixed), gradient, curvature)

    def _mixed(self, log_beta: FloatArray, log_weights: FloatArray) -> FloatArray:
        """Give the log chance of each cell over the three parts."""
        mixed: FloatArray = log_weights[2] + log_beta
        for weight, reached in zip(log_weights[:2], self.ends(), strict=True):
            mixed[reached] = np.logaddexp(mixed[reached], weight)
        return mixed

    def ends(self) -> BoolArray:
        """Mark the cells that never, and that always solved prompts fall into: (2, cells)."""
        ends: BoolArray = np.stack([self.c == 0, self.c == self.n])
        return ends

    def _beta_slopes(self, alpha: float, beta: float) -> tuple[FloatArray, FloatArray]:
        """Differentiate the Beta part by its two coordinates: (2, cells) and (2, 2, cells)."""
        whole = alpha + beta
        steps = np.arange(self.n.max())
        ends = ((alpha, self.c), (beta, self.n - self.c), (whole, self.n))
        inverse = [running(1 / (x + steps))[end] for x, end in ends]
        square = [running((x + steps) ** -2.0)[end] for x, end in ends]
        by_alpha, by_beta = inverse[0] - inverse[2], inverse[1] - inverse[2]
        aa, ab, bb = square[2] - square[0], square[2], square[2] - square[1]
        moved = alpha * beta / whole  # alpha gains this by the logit and beta loses it
        tilt = moved * (by_alpha - by_beta)
        scale = alpha * by_alpha + beta * by_beta
        both = tilt + moved * (alpha * aa + (beta - alpha) * ab - beta * bb)
        tilts = moved**2 * (aa - 2 * ab + bb) + (beta - alpha) / whole * tilt
        scales = scale + alpha**2 * aa + 2 * alpha * beta * ab + beta**2 * bb
        return np.stack([tilt, scale]), np.array([[tilts, both], [both, scales]])
