"""How success rates spread over prompts: some never solved, some always, the rest Beta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics.beta import all_fail_chance, all_pass_chance
from rlvitals.metrics.binomial import log_choose

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Spread:
    """Say how success rates spread over prompts.

    A share ``never`` of the prompts is never solved, a share ``always`` always; the rates of the
    others are Beta(alpha, beta).
    """

    alpha: float
    beta: float
    never: float = 0.0
    always: float = 0.0

    @property
    def between(self) -> float:
        """Give the share of prompts that are neither never nor always solved."""
        return max(0.0, 1.0 - self.never - self.always)

    def all_fail(self, n: int) -> float:
        """Give the chance that all n >= 1 rollouts of a prompt fail."""
        return min(1.0, self.never + self.between * all_fail_chance(self.alpha, self.beta, n))

    def all_pass(self, n: int) -> float:
        """Give the chance that all n >= 1 rollouts of a prompt are correct."""
        return min(1.0, self.always + self.between * all_pass_chance(self.alpha, self.beta, n))

    def chances(self, n: int) -> FloatArray:
        """Tabulate the chance of c = 0..n correct among n >= 1 rollouts."""
        c = np.arange(n + 1)
        log_beta = log_beta_part(self.alpha, self.beta, np.full(n + 1, n), c)
        chances: FloatArray = self.between * np.exp(log_choose(n) + log_beta)
        chances[0] += self.never
        chances[n] += self.always
        return chances


def log_beta_part(alpha: float, beta: float, n: IntArray, c: IntArray) -> FloatArray:
    """Give log B(alpha + c, beta + n - c) / B(alpha, beta), by sums of logs of alpha + i."""
    steps = np.arange(n.max())
    rising = [running(np.log(x + steps)) for x in (alpha, beta, alpha + beta)]
    log_beta: FloatArray = rising[0][c] + rising[1][n - c] - rising[2][n]
    return log_beta


def running(terms: FloatArray) -> FloatArray:
    """Sum the first 0, 1, 2, … terms."""
    return np.concatenate([[0.0], np.cumsum(terms)])
