"""The hook a trainer holds: copies, queues, returns; never raises, never waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, cast

from rlvitals import capture
from rlvitals.ending import State
from rlvitals.items import Advantages, Rewards, Scalars
from rlvitals.line import Line
from rlvitals.losses import Guard, describe
from rlvitals.numbering import Numbering, checked_step
from rlvitals.plain import clean_text
from rlvitals.records import AlertRecord, Phase, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlvitals.settings import Settings

__all__ = ["Level", "Run", "State"]

Level = Literal["info", "warning", "critical"]
PHASES, STAGES, LEVELS = ("train", "eval"), ("sampled", "trained"), ("info", "warning", "critical")

LOG_KINDS = {phase: f"log/{phase}" for phase in PHASES}
GROUP_KINDS = {stage: {phase: f"{stage}/{phase}" for phase in PHASES} for stage in STAGES}
REWEIGHT_KINDS = {phase: f"reweight/{phase}" for phase in PHASES}


class Run(Line):
    """One training job's line to the service.

    After construction nothing raises: what cannot be used is dropped, counted by reason in
    `losses`, and warned about once a reason. In a forked child every method does nothing but
    count; call `rlvitals.init` there for a line of its own.
    """

    def __init__(self, settings: Settings, config: Any = None) -> None:
        self._numbering = Numbering()
        super().__init__(settings, config)

    def log(
        self,
        metrics: Mapping[str, Any],
        step: Any = None,
        *,
        phase: Phase = "train",
        commit: bool | None = None,
    ) -> None:
        """Record named numbers of a step.

        Takes Python and NumPy numbers, tensors of one value on any device, texts of numbers and
        None; NaN and infinities keep their class. Without `step` the last one given holds, or a
        counter of the run's own when none ever was; `commit=False` keeps that counter in place.
        """
        if self._closed:
            return self._ignore()
        try:
            kind = LOG_KINDS[phase]
            at = self._numbering.step(step, None if commit is False else kind)
            self._put(Scalars(at, phase, time.time(), capture.copy_scalars(metrics)))
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("log", error)

    def log_groups(
        self,
        rewards: Any,
        step: Any = None,
        *,
        group_ids: Any = None,
        correct: Any = None,
        prompt_ids: Any = None,
        phase: Phase = "train",
        stage: Stage = "sampled",
        generation: Any = None,
        filtered: int = 0,
        dropped: int = 0,
    ) -> None:
        """Record the rewards of groups of rollouts.

        `rewards` is (n_groups, group_size), ragged rows, or flat with `group_ids`; None and NaN
        are missing rewards. `correct` has the layout of `rewards` and defines success; without it
        the run's `success_threshold` does. `stage` is "sampled" before dynamic filtering and
        "trained" after it. `filtered` counts groups removed for carrying no signal, `dropped`
        groups lost otherwise. Several calls in one step are several generations unless
        `generation` says otherwise; the same generation at a later step counts once.
        """
        if self._closed:
            return self._ignore()
        try:
            kind = GROUP_KINDS[stage][phase]
            at = self._numbering.step(step, kind)
            self._put(
                Rewards(
                    at,
                    phase,
                    stage,
                    self._numbering.generation(generation, kind, at),
                    generation is not None,
                    time.time(),
                    capture.copy_values(rewards),
                    capture.copy_values(group_ids),
                    capture.copy_values(correct),
                    capture.copy_values(prompt_ids),
                    checked_step(filtered, "filtered"),
                    checked_step(dropped, "dropped"),
                )
            )
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("log_groups", error)

    def reweight(
        self,
        advantages: Any,
        rewards: Any,
        *,
        group_ids: Any = None,
        step: Any = None,
        correct: Any = None,
        success_threshold: float | None = None,
        phase: Phase = "train",
        generation: Any = None,
        std_division: bool = True,
    ) -> Any:
        """Give the advantages to train with: the same object unless a directive is on.

        `advantages` and `rewards` have the same shape, (n_groups, group_size) or flat with
        `group_ids`. What comes back has the kind, dtype and device of what was given. Any trouble
        gives the advantages back unchanged and tells the service why. Without a service the last
        directive stays in force until it expires.
        """
        if self._closed:
            self._ignore()
            return advantages
        try:
            kind = REWEIGHT_KINDS[phase]
            at = self._numbering.step(step, kind)
            given = None if generation is None else checked_step(generation, "generation")
            index = self._numbering.generation(generation, kind, at)
            directive = self._control.decide(phase, at, given)
            if directive is not None:
                from rlvitals.reweighting import Reweighting

                return Reweighting(self._control, self._put, self.settings).apply(
                    directive,
                    advantages,
                    rewards,
                    step=at,
                    generation=index,
                    group_ids=group_ids,
                    correct=correct,
                    success_threshold=success_threshold,
                    std_division=std_division,
                )
            self._note_advantages(advantages, rewards, group_ids, at, phase, index)
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("reweight", error)
        return advantages

    def refuse(self, reason: str, step: Any = None) -> None:
        """Tell the service that the trainer cannot do what the directive in force asks."""
        directive = self._control.directive
        if self._closed or directive is None:
            return
        with self._losses.guard("refuse_refused", "a refusal was dropped"):
            at = self._numbering.current if step is None else checked_step(step)
            self._control.refuse(directive.version, at, clean_text(str(reason)))

    def alert(self, title: str, text: str = "", level: Level = "warning", step: Any = None) -> None:
        """Raise an alert of your own."""
        if self._closed:
            return self._ignore()
        try:
            at = self._numbering.current if step is None else checked_step(step)
            title, text = clean_text(str(title))[:200] or "alert", clean_text(str(text))[:10_000]
            self._put(AlertRecord(title=title, text=text, level=_level(level), step=at))
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("alert", error)
        return None

    def guard(self, what: str) -> Guard:
        """Give a with-block in which any error is counted as a loss; for hooks of trainers."""
        return self._losses.guard("hook_failed", what)

    def _refused(self, call: str, error: Exception) -> None:
        said = describe(error)
        if isinstance(error, KeyError):
            said = f"no phase or stage is called {said} (phases: train, eval; stages: {STAGES})"
        self._losses.add(f"{call}_refused", f"a call of {call} had no effect: {said}")

    def _ignore(self) -> None:
        if self._deaf:
            self._losses.add(self._deaf, "" if self._deaf == "forked" else "the run has finished")

    def _note_advantages(
        self, advantages: Any, rewards: Any, group_ids: Any, step: int, phase: Phase, index: int
    ) -> None:
        if phase != "train":
            return
        self._put(
            Advantages(
                step,
                phase,
                index,
                time.time(),
                capture.copy_values(advantages),
                capture.copy_values(rewards),
                capture.copy_values(group_ids),
            )
        )


def _level(level: Any) -> Level:
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    return cast("Level", level)
