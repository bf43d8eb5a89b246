"""Between rows and the Judge: what it is shown, and what it says back; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rlvitals.judgement import Cause, Change, Judge, Observation, OpenIncident
from rlvitals_service.vitals import StepVitals

# A Judge made anew looks at so many of the newest steps of its attempt.
MEMORY = 512
ALERT = "alert"


@dataclass(slots=True)
class JudgedAttempt:
    """Keep the Judge of one attempt, and the newest step it was shown."""

    judge: Judge
    newest: int | None = None


def observation(step: StepVitals) -> Observation:
    """Say what the Judge is shown of a train step."""
    return Observation(step.step, step.tally, step.tally_trained, step.values, step.client_time)


def rebuilt(
    steps: Iterable[StepVitals],
    open_incidents: Iterable[OpenIncident],
    first_step: int | None,
) -> JudgedAttempt:
    """Make the Judge of an attempt anew from its newest train steps, ascending."""
    attempt = JudgedAttempt(Judge(open_incidents=tuple(open_incidents), first_step=first_step))
    listed = [step for step in steps if step.phase == "train"]
    attempt.judge.rebuild(map(observation, listed))
    attempt.newest = listed[-1].step if listed else None
    return attempt


def judge_steps(attempt: JudgedAttempt, steps: Iterable[StepVitals]) -> list[Change]:
    """Show new steps to the Judge in ascending order; write the pooled ACR onto the newest.

    A step that arrives late, behind the newest, keeps the pooled figures it was given then.
    """
    changes: list[Change] = []
    for step in sorted(steps, key=lambda one: one.step):
        if step.phase != "train":
            continue
        changes += attempt.judge.observe(observation(step))
        if attempt.newest is None or step.step >= attempt.newest:
            attempt.newest = step.step
            _pool(attempt.judge, step)
    return changes


def _pool(judge: Judge, step: StepVitals) -> None:
    pooled = judge.pooled()
    if pooled is not None and step.tally is not None:
        names = ("acr_pooled", "acr_pooled_low", "acr_pooled_high")
        step.values.update(zip(names, pooled, strict=True))


def reopened(row: Mapping[Any, Any]) -> OpenIncident:
    """Give an open incident back to a Judge, as its row says."""
    return OpenIncident(
        kind=row["kind"],
        severity=row["severity"],
        onset_step=row["onset_step"] or 0,
        last_step=row["last_step"] or 0,
        evidence=row["evidence"],
        causes=tuple(Cause(**cause) for cause in row["causes"]),
    )
