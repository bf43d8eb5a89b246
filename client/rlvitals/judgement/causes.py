"""Why groups teach nothing, ranked, with the share of groups behind each reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlvitals.judgement.group_size import collapse_at_size
from rlvitals.judgement.incidents import Cause
from rlvitals.judgement.wording import number, percent
from rlvitals.metrics.outcomes import COLLAPSE_TOLERANCE

if TYPE_CHECKING:
    from rlvitals.judgement.settings import JudgeSettings
    from rlvitals.judgement.window import Counts
    from rlvitals.metrics.tally import Tally


class Grounds(NamedTuple):
    """Hold what a collapse is explained from: a stretch, and what the run has ever shown."""

    counts: Counts
    tally: Tally
    truncated: float | None
    reported: float | None
    ever_live: bool
    settings: JudgeSettings

    @property
    def group_size(self) -> int | None:
        """Give the group size where all judged groups have the same."""
        sizes = [n for n, row in self.tally.counts.items() if any(row)]
        return sizes[0] if len(sizes) == 1 else None

    @property
    def larger_size(self) -> int:
        """Give the group size to compare with."""
        return max(self.settings.larger_group, 2 * (self.group_size or 0))

    def at_larger_size(self) -> float | None:
        """Predict the share of dead groups at the larger size, if every group was judged."""
        if self.group_size is None or self.counts.judged < self.counts.seen:
            return None
        return collapse_at_size(self.tally.counts, self.larger_size)

    def by_chance(self) -> float | None:
        """Give the share that would agree by chance if all prompts had one success rate."""
        size = self.group_size
        if size is None:
            return None
        row = self.tally.counts[size]
        success = sum(c * held for c, held in enumerate(row)) / (size * sum(row))
        return float(success**size + (1 - success) ** size)

    def disagreement(self) -> str:
        """Say so where the trainer's own figure contradicts the groups."""
        if self.reported is None:
            return ""
        if abs(self.reported - self.counts.share("dead")) < self.settings.update_share:
            return ""
        return (
            f" The trainer itself reports frac_reward_zero_std {percent(self.reported)}; some "
            "trainers take that over the whole batch, here groups are counted."
        )

    def evidence(self) -> dict[str, float | int | str]:
        """Give the numbers behind the causes."""
        predicted = self.at_larger_size()
        known: dict[str, float | int | None] = {
            "truncated_fraction": self.truncated,
            "reported_frac_reward_zero_std": self.reported,
            "group_size": self.group_size,
            "acr_by_chance": self.by_chance(),
            "larger_group_size": None if predicted is None else self.larger_size,
            "acr_at_larger_group_size": predicted,
        }
        return {name: value for name, value in known.items() if value is not None}


def ranked(grounds: Grounds) -> tuple[Cause, ...]:
    """Rank the causes: what makes the others meaningless first, then by share of groups.

    Cut rollouts fail whatever the task, a verifier that accepts nothing fails them all, and
    groups too small agree by chance: each would be mistaken for difficulty.
    """
    for suspect in (_truncation, _verifier, _group_size):
        cause = suspect(grounds)
        if cause is not None:
            return (cause, *_sides(grounds.counts))
    return _sides(grounds.counts)


def _truncation(grounds: Grounds) -> Cause | None:
    share, counts = grounds.truncated, grounds.counts
    if share is None or share < grounds.settings.truncated_high:
        return None
    if counts.all_pass + counts.filtered >= counts.all_fail + counts.constant:
        return None
    text = (
        f"{percent(share)} of rollouts are cut at the length limit, before they can answer, and "
        "fail whatever the task"
    )
    return Cause("truncation", share, text)


def _verifier(grounds: Grounds) -> Cause | None:
    counts, tally, least = grounds.counts, grounds.tally, grounds.settings.suspect_share
    if grounds.ever_live:
        return None
    if counts.all_fail >= least * counts.seen:
        text = (
            "not one rollout has succeeded in this run, and the verifier, the answer format or "
            "the prompt template is a likelier reason than difficulty"
        )
        return Cause("verifier", counts.share("all_fail"), text)
    one_reward = tally.reward_max - tally.reward_min <= COLLAPSE_TOLERANCE
    if counts.constant >= least * counts.seen and one_reward:
        text = f"every rollout gets the same reward, {number(tally.reward_max)}"
        return Cause("verifier", counts.share("constant"), text)
    return None


def _group_size(grounds: Grounds) -> Cause | None:
    larger, chance = grounds.at_larger_size(), grounds.by_chance()
    acr = grounds.counts.share("dead")
    if larger is None or chance is None or acr - larger < grounds.settings.revived_share * acr:
        return None
    text = (
        f"groups of {grounds.group_size} agree by chance ({percent(chance)} of them would at one "
        f"success rate for all prompts), and of groups of {grounds.larger_size} about "
        f"{percent(larger)} would teach nothing (an estimate that takes difficulty to vary "
        "smoothly over prompts)"
    )
    return Cause("group_size", acr - larger, text)


def _sides(counts: Counts) -> tuple[Cause, ...]:
    unknown = "have equal rewards, solved or failed (success is not declared)"
    texts = {
        "all_fail": "fail throughout (too hard, or the verifier or the answer format)",
        "all_pass": "are solved (all rollouts succeed)",
        "constant": "have equal rewards between failure and success" if counts.judged else unknown,
        "filtered": "were removed by dynamic sampling",
    }
    causes = [
        Cause(name, counts.share(name), f"{percent(counts.share(name))} of groups {text}")
        for name, text in texts.items()
        if getattr(counts, name)
    ]
    return tuple(sorted(causes, key=lambda cause: -cause.share))
