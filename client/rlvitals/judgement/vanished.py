"""Gradient norms of exactly zero although groups carry signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.episode import Episode
from rlvitals.judgement.incidents import Change, Finding, Observation, OpenIncident
from rlvitals.judgement.series import Flags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlvitals.judgement.settings import JudgeSettings

ADVICE = (
    "The rewards are fine, so look behind them: are the trained parameters in the optimizer "
    "(adapters, frozen layers), is every token masked (mask_truncated_completions), is the loss "
    "scaled to nothing or the logged norm taken after it was reset?"
)


class VanishedGradient:
    """Judge whether groups with signal yield a gradient at all; dead groups have no say."""

    def __init__(self, settings: JudgeSettings, incidents: Sequence[OpenIncident] = ()) -> None:
        self.settings = settings
        self.episode = Episode("gradient_vanished", incidents=incidents)
        self.flags = Flags(2 * settings.vanished_rows)

    def observe(self, step: int, observation: Observation) -> list[Change]:
        """Judge one observation; ``step`` is the newest step seen so far."""
        value = observation.scalars.get("grad_norm")
        tally = observation.tally_trained or observation.tally
        if value is None or tally is None or tally.groups <= tally.collapsed:
            return []
        self.flags.put(observation.step, value == 0)
        if self.episode.settled(step):
            return []
        rows = self.flags.newest(flag=True)
        if self.episode.is_open:
            return [] if rows else [self.episode.close(step, _moving())]
        if rows < self.settings.vanished_rows:
            return []
        return [self.episode.open(step, self._still(rows), self.flags.steps[-rows])]

    def _still(self, rows: int) -> Finding:
        return Finding(
            severity="warning",
            title="Groups carry signal but the gradient is exactly zero",
            text=(
                f"The gradient norm was exactly 0 in the last {rows} steps that had groups with "
                "differing rewards, so nothing is learned from them."
            ),
            advice=ADVICE,
            evidence={"steps": rows},
        )


def _moving() -> Finding:
    return Finding("info", "Gradient is back", "A gradient norm other than 0 was seen.")
