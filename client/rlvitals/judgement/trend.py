"""Whether a noisy, autocorrelated series rises over a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


# The numbers are multiplied by a few hundred when they are told.
LARGEST_USE = 1e6


class Trend(NamedTuple):
    """Hold the slope a step, its standard error, and the newest quarter against earlier ones."""

    slope: float
    error: float
    newest: float
    best: float
    best_step: float
    noise: float

    @property
    def t(self) -> float:
        """Give slope over standard error; 0 for a series without any slope."""
        if self.error > 0:
            return self.slope / self.error
        return 0.0 if self.slope == 0 else float("inf") * (1 if self.slope > 0 else -1)

    @property
    def new_best(self) -> bool:
        """Say whether the newest quarter beats every earlier one by two standard errors."""
        return self.newest > self.best + 2 * self.noise


def trend(steps: Sequence[int], values: Sequence[float], blocks: int) -> Trend | None:
    """Fit a line to the means of equal blocks of rows.

    Block means (batch means, Conway 1963) make the standard error honest for a series whose
    neighbours resemble each other, once a block outlasts the resemblance. None where the
    numbers are too large to square. Needs at least ``blocks`` rows.
    """
    with np.errstate(all="ignore"):
        x, y = _block_means(steps, blocks), _block_means(values, blocks)
        away = x - x.mean()
        spread = float(away @ away)
        slope = float(away @ y) / spread
        residual = y - y.mean() - slope * away
        variance = float(residual @ residual) / (blocks - 2)
        quarter = blocks // 4
        means = np.convolve(y, np.full(quarter, 1 / quarter), "valid")
        earlier = means[: blocks - 2 * quarter + 1]
        best = int(earlier.argmax())
        found = Trend(
            slope,
            float(np.sqrt(variance / spread)),
            float(means[-1]),
            float(earlier[best]),
            float(x[best : best + quarter].mean()),
            float(np.sqrt(variance / quarter)),
        )
        usable = np.isfinite(np.multiply(found, LARGEST_USE)).all()
    return found if usable else None


def _block_means(values: Sequence[float], blocks: int) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    edges = np.arange(blocks) * len(array) // blocks
    sizes = np.diff(np.append(edges, len(array)))
    return np.add.reduceat(array, edges) / sizes
