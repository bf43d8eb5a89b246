"""Detectors and causes: tallies and series in, incidents out; pure, incremental, bounded."""

from rlvitals.judgement.incidents import Cause, Change, Observation, OpenIncident
from rlvitals.judgement.judge import Judge
from rlvitals.judgement.settings import JudgeSettings
from rlvitals.judgement.stale import stale_change

__all__ = [
    "Cause",
    "Change",
    "Judge",
    "JudgeSettings",
    "Observation",
    "OpenIncident",
    "stale_change",
]
