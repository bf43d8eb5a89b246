"""How much correct probability mass no rollout has shown yet, from solution signatures."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvitals.metrics.means import Mean, mean_of_shares, share_interval

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from rlvitals.metrics.rollouts import FloatArray, IntArray

FEWEST_GROUPS = 20  # with two correct or more: below it the error is as large as the figure
FEWEST_REPEATS = 0.05  # share of those groups in which some signature comes twice


@dataclass(frozen=True, slots=True)
class UnseenMass:
    """Hold the mean correct mass that a group leaves unseen, and its share of the correct mass.

    Means over groups, by two estimators: ``good_turing`` and the lower ``chao_jost``; ``share``
    is pooled over all correct rollouts, a value for rho in ``realised_tail_miss``. Of all groups
    ``informative`` had two correct or more, and ``repeating`` of these a signature twice.
    """

    good_turing: Mean
    chao_jost: Mean
    share: Mean
    informative: int
    repeating: int


def unseen_mass(
    signatures: Sequence[Iterable[Hashable]],
    sizes: ArrayLike,
    prompts: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
) -> UnseenMass:
    """Estimate the unseen correct mass from the signatures of correct rollouts, over many groups.

    ``signatures`` lists for each group the signatures of its correct rollouts, ``sizes`` the
    rollouts of the group, wrong ones included; groups of one of ``prompts`` are put together.
    With f1 and f2 the signatures seen once and twice among n rollouts, Good-Turing gives f1 / n
    (bias: sum of p^2 (1-p)^(n-1) >= 0) and Chao-Jost (2012) f1 / n times
    (n-1) f1 / ((n-1) f1 + 2 f2). ``share`` is sum f1 / sum k, its error by linearisation. The
    number of one group is worthless (at n = 8 it is off by .2), so none is given; standard
    errors are between groups.

    Raises ValueError naming the argument and saying why when the signatures carry nothing: fewer
    than 20 groups with two correct or more, a signature twice in under 5 % of them (every
    rollout is its own kind), or one signature only in each (it may hash no more than the answer).
    """
    groups = _groups(signatures, sizes, prompts)
    informative, repeating = _refuse_uninformative(groups)
    once = np.ones(len(groups.n), np.int64)
    turing = groups.f1 / groups.n
    return UnseenMass(
        mean_of_shares(turing, once, level),
        mean_of_shares(turing * _chao_jost_factor(groups), once, level),
        _pooled_share(groups, level),
        informative,
        repeating,
    )


class _Groups(NamedTuple):
    """Hold rollouts n, correct k, kinds of correct, and kinds seen once and twice, by group."""

    n: IntArray
    k: IntArray
    kinds: IntArray
    f1: IntArray
    f2: IntArray


def _groups(
    signatures: Sequence[Iterable[Hashable]], sizes: ArrayLike, prompts: Sequence[Hashable] | None
) -> _Groups:
    n = np.asarray(sizes)
    if n.shape != (len(signatures),) or (len(n) and n.dtype.kind not in "iu"):
        raise ValueError(f"sizes: want one whole number a group, {len(signatures)} of them")
    names = range(len(signatures)) if prompts is None else prompts
    if len(names) != len(signatures):
        raise ValueError(f"prompts: {len(names)} entries for {len(signatures)} groups")
    seen: dict[Hashable, Counter[Hashable]] = {}
    rollouts: Counter[Hashable] = Counter()
    for name, group, size in zip(names, signatures, n.tolist(), strict=True):
        correct = _counted(group)
        if not max(correct.total(), 1) <= size:
            raise ValueError(f"signatures: {correct.total()} correct in a group of {size}")
        rollouts[name] += size
        seen.setdefault(name, Counter()).update(correct)
    rows = [(rollouts[name], *_occupancy(kinds)) for name, kinds in seen.items()]
    return _Groups(*np.array(rows, np.int64).reshape(-1, 5).T)


def _counted(group: Iterable[Hashable]) -> Counter[Hashable]:
    if isinstance(group, (str, bytes)):  # its characters would pass for signatures
        raise ValueError("signatures: want a list of them for each group, got text")  # noqa: TRY004
    try:
        return Counter(group)
    except TypeError:
        raise ValueError("signatures: want hashable ones, in a list for each group") from None


def _occupancy(kinds: Counter[Hashable]) -> tuple[int, int, int, int]:
    times = list(kinds.values())
    return sum(times), len(times), times.count(1), times.count(2)


def _refuse_uninformative(groups: _Groups) -> tuple[int, int]:
    several = groups.k > 1
    informative = int(several.sum())
    if informative < FEWEST_GROUPS:
        raise ValueError(
            f"signatures: {informative} groups have two correct rollouts or more, "
            f"want {FEWEST_GROUPS}; pool more steps"
        )
    repeating = int((groups.kinds < groups.k)[several].sum())
    if repeating < FEWEST_REPEATS * informative:
        raise ValueError(
            f"signatures: only {repeating} of {informative} groups have one twice, so they carry "
            "nothing; make them coarser"
        )
    if (groups.kinds[several] == 1).all():
        raise ValueError(
            "signatures: each group has a single one, so they carry nothing; "
            "make them finer than the final answer"
        )
    return informative, repeating


def _chao_jost_factor(groups: _Groups) -> FloatArray:
    """Give (n-1) f1 / ((n-1) f1 + 2 f2), and 1 where there is nothing to correct."""
    once = (groups.n - 1.0) * groups.f1
    total = once + 2.0 * groups.f2
    return np.where(total > 0, once / np.where(total > 0, total, 1.0), 1.0)


def _pooled_share(groups: _Groups, level: float) -> Mean:
    """Give sum f1 / sum k with the error of a ratio of means over groups (linearised)."""
    count, correct = len(groups.n), int(groups.k.sum())
    share = int(groups.f1.sum()) / correct
    apart = groups.f1 - share * groups.k
    se = math.sqrt(float(apart @ apart) * count / (count - 1)) / correct
    return Mean(share, se, *share_interval(share, se, count, level), count)
