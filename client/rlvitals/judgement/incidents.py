"""What a detector reads and what it says: observations in, changes of incidents out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from rlvitals.metrics.tally import Tally

Severity: TypeAlias = Literal["info", "warning", "critical"]
Action: TypeAlias = Literal["opened", "escalated", "updated", "closed"]
Evidence: TypeAlias = Mapping[str, float | int | str]

RANK: Mapping[Severity, int] = {"info": 0, "warning": 1, "critical": 2}


@dataclass(frozen=True, slots=True)
class Observation:
    """Hold what is known of one step of one attempt, merged over its sources.

    ``tally`` counts the groups as sampled, ``tally_trained`` those left after dynamic
    sampling. ``scalars`` have canonical names and may hold non-finite values. Observing a
    step again replaces all that was known of it.
    """

    step: int
    tally: Tally | None = None
    tally_trained: Tally | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """Name one reason for an incident and the share (0..1) of what it explains."""

    name: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Describe what a detector sees now, in words and numbers."""

    severity: Severity
    title: str
    text: str
    advice: str = ""
    causes: tuple[Cause, ...] = ()
    evidence: Evidence = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """Say how one incident changed at one step; a row of the incident log."""

    kind: str
    action: Action
    severity: Severity
    onset_step: int
    step: int
    title: str
    text: str
    causes: tuple[Cause, ...]
    evidence: dict[str, float | int | str]
    advice: str
    reference: str


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """Carry an incident from one Judge to the next, as its newest change left it.

    ``last_step`` is the step of that change. A Judge that is given the incident takes its
    state as settled up to that step, and goes on judging after it.
    """

    kind: str
    severity: Severity
    onset_step: int
    last_step: int
    evidence: Evidence = field(default_factory=dict)
    causes: tuple[Cause, ...] = ()

    @classmethod
    def from_change(cls, change: Change) -> OpenIncident:
        """Take over what a change that did not close the incident says."""
        return cls(
            kind=change.kind,
            severity=change.severity,
            onset_step=change.onset_step,
            last_step=change.step,
            evidence=change.evidence,
            causes=change.causes,
        )
