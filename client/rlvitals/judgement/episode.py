"""One incident from opening to closing, however often the condition flickers in between."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlvitals.judgement.incidents import (
    RANK,
    Action,
    Change,
    Evidence,
    Finding,
    OpenIncident,
    Severity,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Episode:
    """Keep the open incident of one kind, if there is one, and write its changes."""

    def __init__(
        self, kind: str, reference: str = "", incidents: Sequence[OpenIncident] = ()
    ) -> None:
        self.kind = kind
        self.reference = reference
        self.incident = next((one for one in incidents if one.kind == kind), None)
        # What was settled before a restart is not judged again.
        self._settled = self.incident.last_step if self.incident else None

    @property
    def is_open(self) -> bool:
        """Say whether an incident of this kind is open."""
        return self.incident is not None

    @property
    def severity(self) -> Severity | None:
        """Give the severity of the open incident."""
        return self.incident.severity if self.incident else None

    @property
    def evidence(self) -> Evidence:
        """Give the evidence of the newest change of the open incident."""
        return self.incident.evidence if self.incident else {}

    def number(self, name: str) -> float:
        """Give one number of the evidence, 0 where it is missing."""
        value = self.evidence.get(name, 0)
        return value if isinstance(value, (int, float)) else 0.0

    def settled(self, step: int) -> bool:
        """Say whether a step was judged before this Judge was made."""
        return self._settled is not None and step <= self._settled

    def open(self, step: int, finding: Finding, onset_step: int | None = None) -> Change:
        """Open an incident that began at ``onset_step``."""
        return self._change("opened", step, finding, step if onset_step is None else onset_step)

    def revise(self, step: int, finding: Finding) -> Change:
        """Escalate the incident where the severity rose, else update it."""
        before = self.severity
        worse = before is not None and RANK[finding.severity] > RANK[before]
        return self._change("escalated" if worse else "updated", step, finding)

    def close(self, step: int, finding: Finding) -> Change:
        """Close the incident, which keeps its severity for the record."""
        change = self._change("closed", step, replace(finding, severity=self.severity or "info"))
        self.incident = None
        self._settled = None
        return change

    def _change(
        self, action: Action, step: int, finding: Finding, onset_step: int | None = None
    ) -> Change:
        if onset_step is None:
            onset_step = self.incident.onset_step if self.incident else step
        change = Change(
            kind=self.kind,
            action=action,
            severity=finding.severity,
            onset_step=onset_step,
            step=step,
            title=finding.title,
            text=finding.text,
            causes=finding.causes,
            evidence=dict(finding.evidence),
            advice=finding.advice,
            reference=self.reference,
        )
        self.incident = OpenIncident.from_change(change)
        return change
