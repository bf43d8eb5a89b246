"""Remedies: pure formulas that change how a batch weighs its advantages, NumPy only."""

from __future__ import annotations

from rlvitals.remedies.avspo import Avspo, next_threshold, virtual_advantage, virtual_count
from rlvitals.remedies.focal import Focal, focal_weight
from rlvitals.remedies.reweighting import Outcome, reweight
from rlvitals.remedies.settings import Remedies

__all__ = [
    "Avspo",
    "Focal",
    "Outcome",
    "Remedies",
    "focal_weight",
    "next_threshold",
    "reweight",
    "virtual_advantage",
    "virtual_count",
]
