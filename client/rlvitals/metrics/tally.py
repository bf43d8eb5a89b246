"""The one summary that all numbers about groups come from; the sum of two is again one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from operator import attrgetter, mul
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.metrics.histograms import (
    check_histogram,
    check_sizes,
    histograms,
    merge_counts,
    total_counts,
)
from rlvitals.metrics.outcomes import COLLAPSE_TOLERANCE, collapsed, outcomes
from rlvitals.metrics.pooling import merge_moments, pooled_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlvitals.metrics.groups import Groups
    from rlvitals.metrics.histograms import Counts
    from rlvitals.metrics.rollouts import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Tally:
    """Sum up groups; ``a + b`` is associative and commutative with ``Tally()`` as zero.

    ``counts[n][c]`` is the number of groups of n >= 2 rewards with c correct, known success only.
    ``groups`` counts groups with n >= 2, ``rollouts`` every usable reward, singletons included.
    ``all_fail``, ``all_pass`` and ``constant`` are the collapsed groups by cause;
    ``shaping_only`` counts groups whose outcome is constant while rewards differ. ``filtered``
    counts groups that dynamic sampling removed for carrying no signal. ``std_sum`` and
    ``std_sumsq`` run over within-group std (ddof=1). Of ``advantage_groups`` groups whose final
    advantages were seen, ``advantage_zero`` had nothing but zeros.
    """

    counts: Counts = field(default_factory=dict)
    groups: int = 0
    rollouts: int = 0
    all_fail: int = 0
    all_pass: int = 0
    constant: int = 0
    shaping_only: int = 0
    singletons: int = 0
    dropped: int = 0
    errored: int = 0
    filtered: int = 0
    reward_mean: float = 0.0
    reward_m2: float = 0.0
    reward_min: float = math.inf
    reward_max: float = -math.inf
    std_sum: float = 0.0
    std_sumsq: float = 0.0
    advantage_groups: int = 0
    advantage_zero: int = 0

    @property
    def collapsed(self) -> int:
        """Count the groups whose rewards are all equal."""
        return self.all_fail + self.all_pass + self.constant

    @property
    def judged(self) -> int:
        """Count the groups of n >= 2 rewards whose success is known."""
        return sum(map(sum, self.counts.values()))

    def __add__(self, other: Tally) -> Tally:
        """Merge two tallies; reward moments by Chan's formula."""
        if not isinstance(other, Tally):
            return NotImplemented
        mean, m2 = merge_moments(self, other)
        return Tally(
            merge_counts(self.counts, other.counts),
            self.groups + other.groups,
            self.rollouts + other.rollouts,
            self.all_fail + other.all_fail,
            self.all_pass + other.all_pass,
            self.constant + other.constant,
            self.shaping_only + other.shaping_only,
            self.singletons + other.singletons,
            self.dropped + other.dropped,
            self.errored + other.errored,
            self.filtered + other.filtered,
            mean,
            m2,
            min(self.reward_min, other.reward_min),
            max(self.reward_max, other.reward_max),
            self.std_sum + other.std_sum,
            self.std_sumsq + other.std_sumsq,
            self.advantage_groups + other.advantage_groups,
            self.advantage_zero + other.advantage_zero,
        )

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """Merge any number of tallies at once: what ``+`` gives, for a fraction of its cost."""
        rows = list(map(_VALUES, tallies))
        if not rows:
            return cls()
        column = dict(zip(_FIELDS, zip(*rows, strict=True), strict=True))
        size, means = np.array(column["rollouts"]), np.array(column["reward_mean"])
        mean, between = pooled_mean(size[size > 0], means[size > 0], int(np.add.reduce(size)))
        merged: dict[str, Any] = {name: sum(column[name]) for name in _FIELDS - _NOT_SUMMED}
        return cls(
            counts=total_counts(column["counts"]),
            reward_mean=mean,
            reward_m2=between + sum(column["reward_m2"]),
            reward_min=min(column["reward_min"]),
            reward_max=max(column["reward_max"]),
            **merged,
        )

    @classmethod
    def from_groups(cls, groups: Groups, tolerance: float = COLLAPSE_TOLERANCE) -> Tally:
        """Sum up groups; one is collapsed when max - min <= ``tolerance`` and n >= 2."""
        size, rollouts = groups.size, int(np.add.reduce(groups.size))
        largest = check_sizes(size)
        # Every group has the largest size if they add up to it: the usual case.
        width = largest if largest > 1 and rollouts == largest * len(size) else 0
        several = len(size) if width else _count(size > 1)
        some = len(size) if width else _count(size > 0)
        counts = histograms(groups, width)
        flat, outcome = collapsed(groups, tolerance, several=width > 0), outcomes(groups)
        all_fail, all_pass = _count(flat & outcome.all_fail), _count(flat & outcome.all_pass)
        uniform = sum(row[0] + row[-1] for row in counts.values())
        mean, between = pooled_mean(*_where(0, some, size, groups.reward_mean), rollouts)
        live_size, std = _where(1, several, size, groups.reward_std)
        squares = float(std.dot(std))
        within = squares * (width - 1) if width else float((live_size - 1.0).dot(std * std))
        return cls(
            counts=counts,
            groups=several,
            rollouts=rollouts,
            all_fail=all_fail,
            all_pass=all_pass,
            constant=_count(flat) - all_fail - all_pass,
            shaping_only=uniform - _count(flat & outcome.none_correct) - all_pass,
            singletons=some - several,
            dropped=len(size) - some,
            errored=groups.errored,
            reward_mean=mean,
            reward_m2=between + within,
            # Groups without rewards have NaN, which these pass over.
            reward_min=float(np.fmin.reduce(groups.reward_min, initial=math.inf)),
            reward_max=float(np.fmax.reduce(groups.reward_max, initial=-math.inf)),
            std_sum=float(np.add.reduce(std)),
            std_sumsq=squares,
        )

    @classmethod
    def from_counts(cls, counts: Mapping[int, Sequence[int]]) -> Tally:
        """Sum up groups known by their number of correct rollouts alone, rewards being 0 or 1.

        ``counts[n]`` lists how many groups of n rollouts had c = 0..n correct.
        """
        return sum((_from_histogram(int(n), counts[n]) for n in counts), cls())

    def to_dict(self) -> dict[str, Any]:
        """Give plain builtins that JSON can hold; an infinite min or max becomes None."""
        plain = {name: getattr(self, name) for name in _FIELDS}
        plain["counts"] = {str(n): list(row) for n, row in self.counts.items()}
        for name in ("reward_min", "reward_max"):
            plain[name] = plain[name] if math.isfinite(plain[name]) else None
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Tally:
        """Read what ``to_dict`` wrote; a field left out or None keeps its default."""
        unknown = plain.keys() - _FIELDS
        if unknown:
            raise ValueError(f"{min(unknown)}: a tally has no such field")
        given = {name: value for name, value in plain.items() if value is not None}
        counts = given.pop("counts", {})
        return cls({int(n): tuple(row) for n, row in counts.items()}, **given)


_FIELDS = {item.name: None for item in fields(Tally)}.keys()
_VALUES = attrgetter(*_FIELDS)
_NOT_SUMMED = {"counts", "reward_mean", "reward_m2", "reward_min", "reward_max"}


def _count(mask: BoolArray) -> int:
    return int(np.count_nonzero(mask))


def _where(
    above: int, count: int, size: IntArray, column: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Keep the ``count`` groups of a size above; in the usual case, all of them."""
    if count == len(size):
        return size, column
    kept = size > above
    return size[kept], column[kept]


def _from_histogram(n: int, row: Sequence[int]) -> Tally:
    """Sum up groups of n binary rewards; std**2 of c ones is c (n - c) / (n (n - 1))."""
    check_histogram(n, row)
    counts = tuple(map(int, row))
    groups = sum(counts)
    rollouts, correct = n * groups, sum(map(mul, counts, range(n + 1)))
    if n == 0 or not groups:
        return Tally(dropped=groups)
    several = n > 1
    c = np.arange(n + 1.0)
    variance = c * (n - c) / (n * max(n - 1, 1))
    return Tally(
        counts={n: counts} if several else {},
        groups=groups if several else 0,
        rollouts=rollouts,
        all_fail=counts[0] if several else 0,
        all_pass=counts[n] if several else 0,
        singletons=0 if several else groups,
        reward_mean=correct / rollouts,
        reward_m2=correct * (rollouts - correct) / rollouts,
        reward_min=0.0 if correct < rollouts else 1.0,
        reward_max=1.0 if correct else 0.0,
        std_sum=float(counts @ np.sqrt(variance)),
        std_sumsq=float(counts @ variance),
    )
