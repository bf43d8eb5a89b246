"""Carry out a directive on the trainer's advantages, whatever kind of array they are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rlvitals.items import Item, Reweighted
from rlvitals.losses import describe
from rlvitals.remedies import Outcome, Remedies, reweight
from rlvitals.tensors import like, to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlvitals.control import Control
    from rlvitals.records import Directive
    from rlvitals.settings import Settings

NO_SUCCESS = (
    "success is not defined: give reweight `correct` or `success_threshold`, or init the latter"
)


class Reweighting:
    """Apply directives; any trouble leaves advantages alone and is told to the service."""

    def __init__(
        self,
        control: Control,
        put: Callable[[Item], None],
        settings: Settings,
    ) -> None:
        self._control, self._put, self._settings = control, put, settings

    def apply(
        self,
        directive: Directive,
        advantages: Any,
        rewards: Any,
        *,
        step: int,
        generation: int,
        group_ids: Any = None,
        correct: Any = None,
        success_threshold: float | None = None,
        std_division: bool = True,
    ) -> Any:
        """Give the advantages the directive asks for, in the kind they came in."""
        if success_threshold is None:
            success_threshold = self._settings.success_threshold
        if correct is None and success_threshold is None:
            self._control.refuse(directive.version, step, NO_SUCCESS)
            return advantages
        try:
            remedies = remedies_of(directive)
            outcome = reweight(
                to_numpy(advantages),
                to_numpy(rewards),
                remedies,
                group_ids=to_numpy(group_ids),
                correct=to_numpy(correct),
                success_threshold=success_threshold,
                failure_threshold=self._settings.failure_threshold,
                threshold=self._control.threshold(directive, remedies),
                std_division=std_division,
            )
            given_back = like(advantages, outcome.advantages)
            self._put(_report(directive, outcome, step, generation))
            self._control.learn(directive, remedies, _acr_effective(outcome))
        except Exception as error:  # noqa: BLE001 - whatever happens in here, training goes on
            self._control.refuse(directive.version, step, describe(error))
            return advantages
        return given_back


def remedies_of(directive: Directive) -> Remedies:
    """Read the remedies of a directive; ValueError names a field that cannot be meant."""
    wanted = {"focal": directive.focal, "avspo": directive.avspo}
    return Remedies.from_dict({name: value for name, value in wanted.items() if value is not None})


def _report(directive: Directive, outcome: Outcome, step: int, generation: int) -> Reweighted:
    return Reweighted(
        step=step,
        phase="train",
        generation=generation,
        time=time.time(),
        applied=directive.version,
        advantage_groups=outcome.advantage_groups,
        advantage_zero=outcome.advantage_zero,
        scalars={
            "touched_focal": outcome.touched_focal,
            "touched_avspo": outcome.touched_avspo,
            "virtual_rollouts": outcome.virtual,
            "focal_mean_weight": outcome.mean_weight,
        },
    )


def _acr_effective(outcome: Outcome) -> float | None:
    if outcome.advantage_groups == 0:
        return None
    return outcome.advantage_zero / outcome.advantage_groups
