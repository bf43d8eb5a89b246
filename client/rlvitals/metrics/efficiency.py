"""What collapsed groups cost, and how much a prompt has to teach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvitals.metrics.binomial import binomial_chances

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray
    from rlvitals.metrics.tally import Tally


class RolloutUse(NamedTuple):
    """Hold what became of the rollouts that were generated.

    ``effective`` ones lie in groups with 0 < c < n; ``collapsed`` ones in groups with one
    outcome; ``alone`` ones are the only one of their group; ``unjudged`` ones lie in groups whose
    success is not known, and count neither as effective nor as wasted. ``filtered`` is an
    estimate: groups that dynamic sampling removed, times the mean size of the others.
    """

    effective: int
    collapsed: int
    alone: int
    unjudged: int
    filtered: float

    @classmethod
    def from_tally(cls, tally: Tally) -> RolloutUse:
        """Read it from one Tally, of a step, a window or a run."""
        judged = sum(n * sum(row) for n, row in tally.counts.items())
        effective = sum(n * sum(row[1:-1]) for n, row in tally.counts.items())
        grouped = tally.rollouts - tally.singletons
        return cls(
            effective,
            judged - effective,
            tally.singletons,
            grouped - judged,
            tally.filtered * grouped / tally.groups if tally.groups else 0.0,
        )

    @property
    def wasted(self) -> float:
        """Count the rollouts whose group has one outcome, or that have no group.

        By outcome: where rewards hold more than success, shaping may still move the policy.
        """
        return self.collapsed + self.alone + self.filtered

    @property
    def wasted_share(self) -> float | None:
        """Give the share wasted of the rollouts whose use is known; None without any."""
        known = self.effective + self.wasted
        return self.wasted / known if known else None


def learnability(p: ArrayLike, n: int, *, ddof: int = 1) -> FloatArray:
    """Give the expected std of the rewards of a group of n whose prompt is solved at rate p.

    Rewards are 0 or 1, so it is the sum over c of C(n, c) p^c (1-p)^(n-c) times
    sqrt(c (n-c) / (n (n-ddof))), with c ~ Binomial(n, p): largest at p = 1/2, 0 at 0 and 1.
    Array in, array of the same shape out. Raises ValueError unless 0 <= p <= 1 and
    n > ddof >= 0.
    """
    if not n > ddof >= 0:
        raise ValueError(f"n: want more than ddof rollouts, and ddof from 0 up; got {n} and {ddof}")
    std = binary_std(n, ddof=ddof)
    rates, where = np.unique(np.asarray(p, np.float64), return_inverse=True)
    each = np.array([float(binomial_chances(n, float(rate)) @ std) for rate in rates])
    return each[where].reshape(np.shape(p))


def observed_learnability(counts: Mapping[int, Sequence[int]], *, ddof: int = 1) -> float | None:
    """Give the mean over groups of the std of their 0-1 outcomes; None without groups.

    Unbiased for the mean of ``learnability`` over prompts at the sizes at hand. ``counts`` is
    ``Tally.counts``.
    """
    groups = sum(map(sum, counts.values()))
    total = sum(float(binary_std(n, ddof=ddof) @ np.asarray(row)) for n, row in counts.items())
    return total / groups if groups else None


def binary_std(n: int, *, ddof: int = 1) -> FloatArray:
    """Tabulate the std of c ones among n for c = 0..n: sqrt(c (n-c) / (n (n-ddof)))."""
    c = np.arange(n + 1.0)
    std: FloatArray = np.sqrt(c * (n - c) / (n * (n - ddof)))
    return std


def dynamic_sampling_price(collapse_rate: float) -> float:
    """Give how many groups more than it keeps dynamic sampling generates: D / (1 - D) a group.

    With a share D of groups collapsed, a kept one takes 1 / (1 - D) draws (geometric), of which
    one is kept: 1 at D = 1/2, infinity at D = 1 (DAPO, arXiv 2503.14476). Raises ValueError
    unless 0 <= D <= 1.
    """
    if not 0 <= collapse_rate <= 1:
        raise ValueError(f"collapse_rate: want a share between 0 and 1, got {collapse_rate}")
    return collapse_rate / (1 - collapse_rate) if collapse_rate < 1 else math.inf


def wasted_gpu_hours(wasted_share: float, seconds: float, gpus: float) -> float:
    """Give the GPU-hours that went into wasted rollouts: share x seconds x GPUs / 3600.

    ``seconds`` is the wall-clock time that grows with the rollouts, summed over steps: whole
    steps where collapsed groups are trained on too, generation alone where dynamic sampling
    removes them first. Rollouts count alike, so groups of long failures cost more than this.
    Raises ValueError naming the argument.
    """
    if not 0 <= wasted_share <= 1:
        raise ValueError(f"wasted_share: want a share between 0 and 1, got {wasted_share}")
    for name, value in (("seconds", seconds), ("gpus", gpus)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name}: want a finite number from 0 up, got {value}")
    return wasted_share * seconds * gpus / 3600
