"""Advantages as each variant of GRPO takes them from the rewards of its groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.outcomes import collapsed
from rlvitals.metrics.rollouts import rollouts
from rlvitals.metrics.segments import take_usable
from rlvitals.remedies.checks import check_trainer
from rlvitals.remedies.focal import is_mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlvitals.metrics.rollouts import BoolArray, FloatArray, IntArray, Rollouts

Variant: TypeAlias = Literal["grpo", "dapo", "cispo", "dr_grpo"]


@dataclass(frozen=True, slots=True, eq=False)
class GroupAdvantages:
    """Hold an advantage a rollout, and which groups are kept.

    Advantages are (n_groups, group_size) for rows of equal length without ids, else flat in the
    order of the rewards. ``kept`` has an entry a group: False where the variant drops the group
    from the batch. Rollouts of a dropped group, without a usable reward or alone in their group
    have advantage 0.
    """

    advantages: NDArray[np.float64]
    kept: BoolArray


def group_advantages(
    rewards: Any,
    variant: Variant = "grpo",
    *,
    group_ids: Any = None,
    correct: Any = None,
    success_threshold: float | None = None,
    eps: float = 1e-4,
    ddof: int = 1,
) -> GroupAdvantages:
    """Take advantages from the rewards of each group.

    "grpo" is (r - mean) / (std + eps), arXiv 2402.03300. "cispo" is the same: it clips the
    importance weight, not the advantage (arXiv 2506.13585). "dapo" is the same over the groups
    that dynamic sampling keeps, those with 0 < c < n (arXiv 2503.14476), or whose rewards differ
    when success is not defined. "dr_grpo" is r - mean, the centred one (arXiv 2503.20783).
    Rewards and their layout are as in ``Groups.from_rewards``.
    """
    if variant not in get_args(Variant):
        raise ValueError(f"variant: want one of {', '.join(get_args(Variant))}, got {variant!r}")
    check_trainer(eps, ddof)
    laid_out = rollouts(rewards, group_ids)
    groups = Groups.from_rollouts(laid_out, correct=correct, success_threshold=success_threshold)
    kept = _informative(groups) if variant == "dapo" else np.ones(len(groups), np.bool_)
    advantages = _centred(laid_out)
    group = laid_out.group
    if variant != "dr_grpo":
        advantages = _standardised(advantages, groups, group, eps, ddof)
    advantages[~kept[group]] = 0.0
    return GroupAdvantages(
        _in_rows(advantages, laid_out) if group_ids is None else advantages, kept
    )


def _informative(groups: Groups) -> BoolArray:
    if groups.n_correct is not None:
        return is_mixed(groups)
    return (groups.size > 1) & ~collapsed(groups)


def _centred(laid_out: Rollouts) -> FloatArray:
    """Give each usable reward less the mean of its group, in the order given; 0 for the others."""
    segments, values, low, _ = take_usable(laid_out)
    group = laid_out.group
    # Above the lowest first, as the moments are taken: equal rewards give exactly 0.
    total = segments.reduce(np.add, values - segments.spread(low), np.nan)
    shift = total / np.maximum(segments.size, 1)
    with np.errstate(invalid="ignore", over="ignore"):  # of rewards that are not usable
        centred = laid_out.values - low[group] - shift[group]
    return np.where(laid_out.usable, centred, 0.0)


def _standardised(
    centred: FloatArray, groups: Groups, group: IntArray, eps: float, ddof: int
) -> FloatArray:
    size = groups.size
    several = size > 1
    ratio = np.divide(size - 1, size - ddof, out=np.zeros(len(size)), where=several)
    scale = np.where(several, groups.reward_std * np.sqrt(ratio) + eps, 0.0)[group]
    return np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)


def _in_rows(advantages: FloatArray, laid_out: Rollouts) -> FloatArray:
    sizes = laid_out.size
    equal = len(sizes) > 0 and (sizes == sizes[0]).all()
    return advantages.reshape(len(sizes), sizes[0]) if equal else advantages
