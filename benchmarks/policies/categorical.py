"""A softmax over a thousand actions, of which some are correct: what one prompt's update does.

F-GRPO (arXiv 2602.06717, section 3 and figure 2): one anchor among the correct actions is likely,
the other correct ones are each rare and together common. The paper names neither the optimiser
nor the surrogate in full; Adam and the importance ratio are what reproduces its figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.metrics import Groups
from rlvitals.remedies.avspo import virtual_advantage_bound, virtual_count
from rlvitals.remedies.focal import focal_weight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

ANCHOR, OTHER = 5.0, 3.0  # logits of the correct actions; the wrong ones have 0
BETA_1, BETA_2, EPS = 0.9, 0.999, 1e-8  # Adam's defaults


@dataclass(frozen=True, slots=True)
class Setting:
    """Set a run. The first ``correct`` of ``actions`` are worth 1, the others -1.

    Advantages are centred, or divided by the std of the group too. ``wrong_gain`` and
    ``right_gain`` scale the advantage of groups in which all failed or all passed: 0 leaves them
    without one, 1 gives it the bound sqrt(K/N) of AVSPO, with K for a collapse rate of ``acr``.
    """

    n: int
    gamma: float = 0.0
    actions: int = 1280
    correct: int = 100
    steps: int = 1000
    lr: float = 1e-2
    std_division: bool = False
    wrong_gain: float = 0.0
    right_gain: float = 0.0
    acr: float = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Hold what the policy of each seed knows after every step, and what taught it.

    ``q_path`` is the mass of correct actions, ``retention_path`` the share of the first correct
    mass whose actions did not lose it: a row for the start and one for each step, a column for
    each seed. ``active`` is the share of steps whose group was mixed.
    """

    q_path: Floats
    retention_path: Floats
    active: Floats

    @property
    def q(self) -> Floats:
        """Give the mass of correct actions at the end, one a seed."""
        last: Floats = self.q_path[-1]
        return last

    @property
    def retention(self) -> Floats:
        """Give the share of the first correct mass kept at the end, one a seed."""
        last: Floats = self.retention_path[-1]
        return last

    def first_at(self, q: Floats) -> Integers:
        """Give the first step at which each seed has a correct mass of ``q``, -1 where none has."""
        reached = self.q_path >= q
        return np.where(reached.any(axis=0), reached.argmax(axis=0), -1)


def start(setting: Setting) -> Floats:
    """Give the logits of the policy before training."""
    logits = np.zeros(setting.actions)
    logits[: setting.correct] = OTHER
    logits[0] = ANCHOR
    return logits


def softmax(logits: Floats) -> Floats:
    """Give the probabilities along the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    chances: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return chances


def draw(chances: Floats, n: int, sources: list[np.random.Generator]) -> Integers:
    """Draw n actions for each row and count them; a row's luck comes from its own source."""
    counts = np.empty(chances.shape, np.int64)
    for row, (chance, source) in enumerate(zip(chances, sources, strict=True)):
        steps = np.cumsum(chance)
        drawn = np.searchsorted(steps, np.sort(source.random(n)) * steps[-1], side="right")
        counts[row] = np.bincount(drawn, minlength=chance.size)
    return counts


def advantages(solved: Integers, setting: Setting) -> tuple[Floats, Floats]:
    """Give the advantage of correct and of wrong rollouts in groups with so many correct.

    ``solved`` and both results have one entry a group. Rewards are 1 and -1, the std that of a
    population; the focal weight is the product's own.
    """
    rate = solved / setting.n
    spread = 2.0 * np.sqrt(rate * (1.0 - rate)) if setting.std_division else np.ones(rate.shape)
    spread[spread == 0] = 1.0  # a collapsed group, whose centred rewards are 0
    weight = _focal(solved, setting) / spread
    right, wrong = weight * 2.0 * (1.0 - rate), weight * -2.0 * rate
    right[solved == setting.n] = setting.right_gain * _virtual(setting)
    wrong[solved == 0] = -setting.wrong_gain * _virtual(setting)
    return right, wrong


def gradient(chances: Floats, counts: Integers, setting: Setting) -> Floats:
    """Give the gradient of (1/N) sum of A_j p_j / p_j,old for each row's group.

    At p = p_old it is w_i - p_i sum(w), with w_i = A_i counts_i / N.
    """
    right, wrong = advantages(counts[:, : setting.correct].sum(axis=1), setting)
    pull = counts / setting.n
    pull[:, : setting.correct] *= right[:, None]
    pull[:, setting.correct :] *= wrong[:, None]
    total = pull.sum(axis=1, keepdims=True)
    return pull - chances * total


def train(setting: Setting, seeds: int) -> Outcome:
    """Train one policy for each seed, side by side; all settings of equal N share their luck."""
    sources = [np.random.default_rng([seed, setting.n]) for seed in range(seeds)]
    logits = np.tile(start(setting), (seeds, 1))
    first = softmax(logits)[:, : setting.correct]
    speed, energy, active = np.zeros_like(logits), np.zeros_like(logits), np.zeros(seeds)
    paths = np.empty((2, setting.steps + 1, seeds))
    for step in range(1, setting.steps + 1):
        chances = softmax(logits)
        paths[:, step - 1] = _kept(chances, first)
        counts = draw(chances, setting.n, sources)
        solved = counts[:, : setting.correct].sum(axis=1)
        active += (solved > 0) & (solved < setting.n)
        slope = gradient(chances, counts, setting)
        speed += (1 - BETA_1) * (slope - speed)
        energy += (1 - BETA_2) * (slope * slope - energy)
        rate = setting.lr / (1 - BETA_1**step)
        logits += rate * speed / (np.sqrt(energy / (1 - BETA_2**step)) + EPS)
    paths[:, -1] = _kept(softmax(logits), first)
    return Outcome(paths[0], paths[1], active / setting.steps)


def _kept(chances: Floats, first: Floats) -> tuple[Floats, Floats]:
    now = chances[:, : first.shape[1]]
    lost = np.maximum(0.0, first - now).sum(axis=1) / first.sum(axis=1)
    return now.sum(axis=1), 1.0 - lost


def _focal(solved: Integers, setting: Setting) -> Floats:
    unknown = np.full(len(solved), np.nan)
    size = np.full(len(solved), setting.n)
    groups = Groups(size, unknown, unknown, unknown, unknown, n_correct=solved)
    return focal_weight(groups, setting.gamma)


def _virtual(setting: Setting) -> float:
    count = virtual_count(setting.n, setting.acr, 0.5)
    return virtual_advantage_bound(setting.n, count, ddof=0)
