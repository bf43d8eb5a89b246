"""The one order in which remedies act on the advantages of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.outcomes import collapsed, outcomes
from rlvitals.metrics.rollouts import as_floats, rollouts
from rlvitals.metrics.segments import Segments
from rlvitals.remedies.avspo import virtual_advantage, virtual_count, virtual_offsets
from rlvitals.remedies.checks import check_trainer
from rlvitals.remedies.focal import focal_weight, is_mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlvitals.metrics.rollouts import BoolArray, FloatArray, Rollouts
    from rlvitals.remedies.settings import Remedies

ZERO_ADVANTAGE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Say what the advantages became and what was done to them.

    ``touched_focal`` and ``touched_avspo`` count groups; ``virtual`` is the largest number of
    virtual rewards K given to one; ``mean_weight`` is the mean focal weight over mixed groups, 1
    without any. Of ``advantage_groups`` groups of two or more, ``advantage_zero`` have nothing
    but zero advantages (at most 1e-8 in size).
    """

    advantages: NDArray[Any]
    touched_focal: int
    touched_avspo: int
    virtual: int
    mean_weight: float
    advantage_groups: int
    advantage_zero: int


def reweight(
    advantages: Any,
    rewards: Any,
    remedies: Remedies,
    *,
    group_ids: Any = None,
    correct: Any = None,
    success_threshold: float | None = None,
    failure_threshold: float = 0.0,
    threshold: float | None = None,
    std_division: bool = True,
    eps: float = 1e-4,
    ddof: int = 1,
) -> Outcome:
    """Apply remedies to the advantages of a batch of whole groups.

    Statistics come from raw rewards; then mixed groups get their focal weight; then collapsed
    groups get virtual rewards if the batch's collapse rate is above ``threshold`` (by default the
    one of the settings). Advantages of every other group stay bit-identical, as do those of
    rollouts without a usable reward in a collapsed group. Groups whose success is unknown, or
    that are constant without having failed or passed, are never touched: which way to push them
    is not known. ``advantages`` keeps its shape and float type, and is given back itself when no
    group is touched; ``std_division``, ``eps`` and ``ddof`` are the trainer's own. Ragged rewards
    go with flat advantages.

    A finite advantage stays finite. One that is not stays what it is, for it is the trainer's
    number, unless virtual rewards replace it. Rewards are only read. Raises ValueError naming the
    argument, also when a remedy is on and nothing says what success is.
    """
    check_trainer(eps, ddof)
    if (remedies.focal or remedies.avspo) and correct is None and success_threshold is None:
        raise ValueError(
            "success_threshold: a remedy needs it, or correct, to know what success is"
        )
    laid_out = rollouts(rewards, group_ids)
    given = _as_given(advantages, laid_out)
    groups = Groups.from_rollouts(
        laid_out,
        correct=correct,
        success_threshold=success_threshold,
        failure_threshold=failure_threshold,
    )
    weight = focal_weight(groups, remedies.focal.gamma if remedies.focal else 0.0)
    mixed = is_mixed(groups) & (remedies.focal is not None)
    limit = threshold if threshold is not None or not remedies.avspo else remedies.avspo.threshold
    lifted, count = _virtual_advantages(groups, remedies, limit, std_division, eps, ddof)
    start, group = given.ravel(), laid_out.group
    flat = _scale(start, mixed[group], weight[group])
    flat = _replace(flat, laid_out.usable, lifted[group])
    seen, zero = _count_zero(flat, Segments.of(group, laid_out.size), groups)
    return Outcome(
        given if flat is start else flat.reshape(given.shape),
        touched_focal=int(mixed.sum()),
        touched_avspo=int(np.isfinite(lifted).sum()),
        virtual=count,
        mean_weight=float(weight[mixed].mean()) if mixed.any() else 1.0,
        advantage_groups=seen,
        advantage_zero=zero,
    )


def _as_given(advantages: Any, laid_out: Rollouts) -> NDArray[Any]:
    """Give advantages as an array of their own float type, in the layout of the rewards."""
    if hasattr(advantages, "detach"):
        tensor = advantages.detach().cpu()
        advantages = (tensor if "float64" in str(tensor.dtype) else tensor.float()).numpy()
    is_float = isinstance(advantages, np.ndarray) and advantages.dtype.kind == "f"
    array = advantages if is_float else as_floats(advantages, "advantages")
    rows = array.ndim == 2 and not np.array_equal(laid_out.size, np.full(*array.shape))  # noqa: PLR2004
    if rows or array.ndim not in (1, 2) or array.size != len(laid_out.values):
        raise ValueError(f"advantages: shape {array.shape} does not match that of the rewards")
    return array


def _scale(flat: NDArray[Any], touched: BoolArray, weight: FloatArray) -> NDArray[Any]:
    if not touched.any():
        return flat
    scaled = flat.copy()
    scaled[touched] = flat[touched] * weight[touched]
    return scaled


def _replace(flat: NDArray[Any], usable: BoolArray, lifted: FloatArray) -> NDArray[Any]:
    touched = usable & np.isfinite(lifted)
    if not touched.any():
        return flat
    replaced = flat.copy()
    replaced[touched] = lifted[touched]
    return replaced


def _virtual_advantages(
    groups: Groups,
    remedies: Remedies,
    limit: float | None,
    std_division: bool,
    eps: float,
    ddof: int,
) -> tuple[FloatArray, int]:
    """Give each group its advantage beside virtual rewards, NaN where none apply; and largest K."""
    lifted = np.full(len(groups), np.nan)
    flat, outcome = collapsed(groups), outcomes(groups)
    acr = _share(flat, groups.size > 1)
    avspo, largest = remedies.avspo, 0
    if avspo is None or limit is None or not acr > limit:
        return lifted, largest
    sides = (
        (1, outcome.all_fail, avspo.gain_all_fail),
        (-1, outcome.all_pass, remedies.gain_all_pass),
    )
    for side, marks, gain in sides:
        for size in np.unique(groups.size[flat & marks]).tolist() if gain else ():
            count = virtual_count(size, acr, avspo.alpha, avspo.cap)
            offsets = virtual_offsets(count, side)
            advantage = virtual_advantage(
                size, offsets, std_division=std_division, eps=eps, ddof=ddof
            )
            lifted[flat & marks & (groups.size == size)] = gain * advantage
            largest = max(largest, count)
    return lifted, largest


def _share(part: BoolArray, whole: BoolArray) -> float:
    return float(part.sum() / max(whole.sum(), 1))


def _count_zero(flat: NDArray[Any], segments: Segments, groups: Groups) -> tuple[int, int]:
    """Count the groups of two or more, and those of them whose advantages are all zero."""
    largest = segments.reduce(np.maximum, segments.take(np.abs(flat)), np.nan)
    alive = groups.size > 1
    return int(alive.sum()), int((alive & (largest <= ZERO_ADVANTAGE)).sum())
