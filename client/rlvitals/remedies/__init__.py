"""Remedies: pure formulas that change how a batch weighs its advantages, NumPy only.

They act in one order, on advantages that any variant made (``group_advantages``):

1. statistics of the raw rewards: which groups collapsed, which are mixed, the collapse rate;
2. focal weights on mixed groups, 0 < c < n;
3. virtual rewards (AVSPO) on collapsed groups, if the collapse rate is above the threshold;
4. token weights (GRPO-SG) on the tokens of every rollout: ``token_advantages``.

``reweight`` takes the first three and counts what it did; no group meets both the second and the
third. Rewards are never changed, and what no remedy touches stays bit-identical.
"""

from __future__ import annotations

from rlvitals.remedies.avspo import (
    Avspo,
    closed_form_advantage,
    next_threshold,
    virtual_advantage,
    virtual_advantage_bound,
    virtual_count,
    virtual_offsets,
)
from rlvitals.remedies.focal import Focal, focal_weight, mean_update_scale
from rlvitals.remedies.reweighting import Outcome, reweight
from rlvitals.remedies.settings import Remedies
from rlvitals.remedies.sharpness import Sharpness, TokenWeights, token_advantages, token_weights
from rlvitals.remedies.variants import GroupAdvantages, group_advantages

__all__ = [
    "Avspo",
    "Focal",
    "GroupAdvantages",
    "Outcome",
    "Remedies",
    "Sharpness",
    "TokenWeights",
    "closed_form_advantage",
    "focal_weight",
    "group_advantages",
    "mean_update_scale",
    "next_threshold",
    "reweight",
    "token_advantages",
    "token_weights",
    "virtual_advantage",
    "virtual_advantage_bound",
    "virtual_count",
    "virtual_offsets",
]
