"""What each group of rollouts was worth, as columns with one entry a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvitals.metrics import columns
from rlvitals.metrics.rollouts import labels, rollouts
from rlvitals.metrics.segments import moments, take_usable
from rlvitals.metrics.success import count_success

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.metrics.rollouts import FloatArray, IntArray, Rollouts


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Hold the groups of one generation as columns of equal length.

    ``size`` counts the rewards present. ``reward_std`` has ddof=1. Reward columns are NaN where
    undefined: all four for a group without rewards, the std for a group of one. ``n_correct`` is
    -1 where success is unknown and None without any success definition; ``n_failed`` counts the
    rollouts that failed for certain, None meaning ``size - n_correct``. An empty id is no id.
    ``errored`` counts the rollouts without a usable reward.
    """

    size: IntArray
    reward_mean: FloatArray
    reward_std: FloatArray
    reward_min: FloatArray
    reward_max: FloatArray
    n_correct: IntArray | None = None
    n_failed: IntArray | None = None
    group_id: list[str] | None = None
    prompt_id: list[str] | None = None
    errored: int = 0

    def __len__(self) -> int:
        """Count the groups, those without rewards included."""
        return len(self.size)

    @classmethod
    def from_rewards(
        cls,
        rewards: Any,
        *,
        group_ids: Any = None,
        correct: Any = None,
        prompt_ids: Any = None,
        success_threshold: float | None = None,
        failure_threshold: float = 0.0,
    ) -> Groups:
        """Reduce rewards to groups.

        ``rewards`` is (n_groups, group_size), ragged rows, or flat with one group id a rollout in
        any order; None, NaN, infinite and absurdly large rewards are left out and counted as
        errored. ``correct`` has the layout of ``rewards`` and wins over the thresholds; without
        it a rollout is correct when its reward reaches ``success_threshold`` and has failed when
        its reward is at most ``failure_threshold`` (below ``success_threshold``, should that not
        lie above ``failure_threshold``). ``prompt_ids`` has one entry a group, or a rollout when
        rewards are flat. Raises ValueError naming the field.
        """
        return cls.from_rollouts(
            rollouts(rewards, group_ids),
            correct=correct,
            prompt_ids=prompt_ids,
            success_threshold=success_threshold,
            failure_threshold=failure_threshold,
        )

    @classmethod
    def from_rollouts(
        cls,
        laid_out: Rollouts,
        *,
        correct: Any = None,
        prompt_ids: Any = None,
        success_threshold: float | None = None,
        failure_threshold: float = 0.0,
    ) -> Groups:
        """Reduce rewards that are laid out already; the rest is as in ``from_rewards``."""
        taken = take_usable(laid_out)
        segments, values, low, high = taken
        n_correct, n_failed = count_success(
            laid_out, segments, values, correct, success_threshold, failure_threshold
        )
        mean, std = moments(taken)
        return cls(
            segments.size,
            mean,
            std,
            low,
            high,
            n_correct,
            n_failed,
            laid_out.group_id,
            None if prompt_ids is None else _prompts(prompt_ids, laid_out),
            len(laid_out.values) - values.size,
        )

    @classmethod
    def from_columns(cls, given: Mapping[str, Any], errored: int = 0) -> Groups:
        """Read columns as they travel, lists with None where a number is undefined.

        Raises ValueError naming the column whose length or content cannot be.
        """
        return cls(**columns.read(given), errored=errored)

    def to_columns(self) -> dict[str, list[Any] | None]:
        """Write columns as they travel: lists with None where a number is undefined."""
        return columns.write(self)

    def merged(self) -> Groups:
        """Pool rows of one group id into one, in order of first appearance (Chan et al., 1979).

        A row without an id stays alone.
        """
        return columns.merge(self)

    @staticmethod
    def concat(parts: Sequence[Groups]) -> Groups:
        """Put the groups of several parts one after another; what one part lacks is unknown."""
        return Groups(**columns.concat(parts), errored=sum(part.errored for part in parts))


def _prompts(prompt_ids: Any, laid_out: Rollouts) -> list[str]:
    names = labels(prompt_ids, "prompt_ids")
    if len(names) == len(laid_out.size):
        return names
    if len(names) != len(laid_out.values):
        raise ValueError(f"prompt_ids: {len(names)} entries for {len(laid_out.size)} groups")
    pairs = dict.fromkeys(zip(laid_out.group.tolist(), names, strict=True))
    by_group: dict[int, str] = {}
    for group, name in pairs:
        if by_group.setdefault(group, name) != name:
            raise ValueError(f"prompt_ids: one group has both {by_group[group]!r} and {name!r}")
    return [by_group.get(group, "") for group in range(len(laid_out.size))]
