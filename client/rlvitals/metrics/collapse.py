"""How many groups teach nothing, and how sure that number is."""

from __future__ import annotations

import math
from typing import Any

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.outcomes import COLLAPSE_TOLERANCE
from rlvitals.metrics.tally import Tally

Z_95 = 1.959963984540054  # the normal quantile that leaves 2.5 % on each side


def advantage_collapse_rate(
    rewards: Any, *, tolerance: float = COLLAPSE_TOLERANCE, **layout: Any
) -> float:
    """Give the share of groups of two or more whose rewards are all equal (arXiv 2605.21125).

    Takes what ``Groups.from_rewards`` takes. NaN when no group has two rewards.
    """
    tally = Tally.from_groups(Groups.from_rewards(rewards, **layout), tolerance)
    return tally.collapsed / tally.groups if tally.groups else math.nan


def wilson_interval(k: float, n: float, z: float = Z_95) -> tuple[float, float]:
    """Give the Wilson score interval of a share k / n (Wilson, 1927); z = 1.96 covers 95 %.

    Without trials the share may be anything: (0, 1). Raises ValueError unless 0 <= k <= n.
    """
    if not 0 <= k <= n:
        raise ValueError(f"k: want 0 <= k <= n, got k={k} with n={n}")
    if n == 0:
        return 0.0, 1.0
    share, spread = k / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt((share * (1 - share) + spread / 4) / n) / (1 + spread)
    # Rounding must not push an end past the share itself when that is 0 or 1.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
