"""How many groups teach nothing, why, and how sure that number is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.outcomes import COLLAPSE_TOLERANCE, collapsed
from rlvitals.metrics.resampling import DRAWS, Estimate, bootstrap_ratio, normal_quantile
from rlvitals.metrics.tally import Tally

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import BoolArray

Z_95 = 1.959963984540054  # the normal quantile that leaves 2.5 % on each side


class Share(NamedTuple):
    """Hold how many of some groups have a property."""

    part: int
    groups: int

    @property
    def rate(self) -> float | None:
        """Give the share; None without groups."""
        return self.part / self.groups if self.groups else None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Give the Wilson interval; groups count as drawn independently."""
        return wilson_interval(self.part, self.groups, normal_quantile(level))


class Collapse(NamedTuple):
    """Hold the advantage collapse rate by rewards and by outcome, with its causes.

    ``by_rewards`` is ``acr``: of the groups of two or more, dynamic sampling's removed ones
    included, those whose rewards are all equal. It is the sum of ``all_fail``, ``all_pass``,
    ``constant`` (equal rewards of another or unknown kind) and ``filtered``. ``by_outcome`` is
    ``acr_outcome``: of the groups with known success, those with all rollouts correct
    (``outcome_all_pass``) or none (``outcome_all_fail``), whatever their rewards are.
    ``shaping_only`` groups are the ones by outcome but not by rewards. ``effective`` counts the
    groups whose final advantages, after any remedy, are all zero.
    """

    by_rewards: Share
    all_fail: Share
    all_pass: Share
    constant: Share
    filtered: Share
    by_outcome: Share
    outcome_all_fail: Share
    outcome_all_pass: Share
    shaping_only: Share
    effective: Share

    @classmethod
    def from_tally(cls, tally: Tally) -> Collapse:
        """Read the shares from one Tally, of a step, a window or a run (arXiv 2605.21125)."""
        seen, judged = tally.groups + tally.filtered, tally.judged
        rows = tally.counts.values()
        fail, passed = sum([row[0] for row in rows]), sum([row[-1] for row in rows])
        return cls(
            Share(tally.collapsed + tally.filtered, seen),
            Share(tally.all_fail, seen),
            Share(tally.all_pass, seen),
            Share(tally.constant, seen),
            Share(tally.filtered, seen),
            Share(fail + passed, judged),
            Share(fail, judged),
            Share(passed, judged),
            Share(tally.shaping_only, judged),
            Share(tally.advantage_zero, tally.advantage_groups),
        )


def advantage_collapse_rate(
    rewards: Any, *, tolerance: float = COLLAPSE_TOLERANCE, **layout: Any
) -> float:
    """Give the share of groups of two or more whose rewards are all equal (arXiv 2605.21125).

    Takes what ``Groups.from_rewards`` takes. NaN when no group has two rewards.
    """
    tally = Tally.from_groups(Groups.from_rewards(rewards, **layout), tolerance)
    return tally.collapsed / tally.groups if tally.groups else math.nan


def collapse_rate_by_prompt(
    groups: Groups,
    *,
    tolerance: float = COLLAPSE_TOLERANCE,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Estimate the collapse rate with an interval that knows which groups share a prompt.

    Groups of one prompt, from as many steps as ``Groups.concat`` put together, tend to collapse
    together, which makes Wilson's interval too narrow; whole prompts are drawn with replacement
    instead. Where every group collapsed, or none, the draws all agree and the interval is
    Wilson's with one trial a prompt. A group without prompt id stands alone. Raises ValueError
    when no group has two rewards.
    """
    several: BoolArray = groups.size > 1
    flat = collapsed(groups, tolerance)[several]
    if not len(flat):
        raise ValueError("groups: none has two rewards")
    prompts = _prompts(groups, several)
    if flat.all() or not flat.any():
        kinds, value = len(set(prompts)), float(flat.all())
        return Estimate(value, *wilson_interval(kinds * value, kinds, normal_quantile(level)))
    return bootstrap_ratio(flat, [1.0] * len(flat), prompts, draws=draws, level=level, seed=seed)


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


def _prompts(groups: Groups, several: BoolArray) -> list[str]:
    """Name the prompt of each group of two or more; a group without one by its place."""
    named = groups.prompt_id or [""] * len(groups)
    return [
        f"p{name}" if name else f"g{place}"
        for place, (name, counts) in enumerate(zip(named, several.tolist(), strict=True))
        if counts
    ]
