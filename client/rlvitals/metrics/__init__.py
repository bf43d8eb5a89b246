"""The ground floor: pure formulas over groups of rollouts, NumPy only."""

from __future__ import annotations

from rlvitals.metrics.catalog import CATALOG, COLUMNS, Metric, canonical, describe
from rlvitals.metrics.collapse import advantage_collapse_rate, wilson_interval
from rlvitals.metrics.gradient import robust_baseline, spike_score
from rlvitals.metrics.groups import Groups
from rlvitals.metrics.pass_at_k import pass_at_k
from rlvitals.metrics.tail_miss import (
    peak_group_size,
    realised_tail_miss,
    tail_miss_probability,
)
from rlvitals.metrics.tally import Tally
from rlvitals.metrics.vitals import vitals

__all__ = [
    "CATALOG",
    "COLUMNS",
    "Groups",
    "Metric",
    "Tally",
    "advantage_collapse_rate",
    "canonical",
    "describe",
    "pass_at_k",
    "peak_group_size",
    "realised_tail_miss",
    "robust_baseline",
    "spike_score",
    "tail_miss_probability",
    "vitals",
    "wilson_interval",
]
