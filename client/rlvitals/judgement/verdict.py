"""One plain sentence about how a run is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlvitals.judgement.collapse_words import ranked
from rlvitals.judgement.wording import counted, listed, percent

if TYPE_CHECKING:
    from rlvitals.judgement.incidents import Severity
    from rlvitals.judgement.settings import JudgeSettings
    from rlvitals.judgement.window import Counts, GroupWindow


# Causes that make the split by side meaningless.
BLAMED = {
    "truncation": "Most rollouts are cut off at the length limit",
    "verifier": "No rollout scores better than another, suspect the verifier or the answer format",
    "group_size": "Groups are too small",
}


class Signs(NamedTuple):
    """Hold what is open at present, beside the window of groups."""

    warm: bool
    collapse: Severity | None = None
    cause: str = ""
    nonfinite_steps: int = 0
    vanished: bool = False
    shaping: bool = False
    stagnant_steps: int | None = None
    singletons: bool = False
    trained_only: bool = False


def sentence(window: GroupWindow, signs: Signs, settings: JudgeSettings) -> str:
    """Say the one thing a person should know first."""
    if signs.nonfinite_steps:
        return (
            f"The gradient norm has not been finite for {counted(signs.nonfinite_steps, 'step')}."
        )
    if not window.total.seen:
        return _without_groups(signs)
    if signs.collapse is not None:
        return _collapsed(window, signs.collapse, signs.cause)
    return _live(window.total, signs, settings)


def _without_groups(signs: Signs) -> str:
    if signs.singletons:
        return "Every group holds a single rollout, so collapse cannot be judged."
    if signs.trained_only:
        return "Groups are sent after dynamic sampling only, so collapse cannot be measured."
    return "No group data yet."


def _collapsed(window: GroupWindow, severity: Severity, cause: str) -> str:
    total = window.total
    teaching = percent(1 - total.share("dead"))
    if cause in BLAMED:
        return f"{BLAMED[cause]}: {teaching} of groups teach."
    if severity == "info":
        solved = percent(total.share("all_pass"))
        return f"Solved: all rollouts succeed in {solved} of groups, {teaching} still teach."
    return f"{_sides(total)}: {teaching} of {_unit(window)} teach."


def _live(total: Counts, signs: Signs, settings: JudgeSettings) -> str:
    live = f"{percent(1 - total.share('dead'))} of groups carry signal"
    if signs.vanished:
        return f"{live}, but the gradient is exactly zero."
    if signs.shaping:
        shaped = percent(total.shaping_only / total.judged if total.judged else 0.0)
        return f"{shaped} of groups teach nothing but the shaping terms of the reward."
    if signs.stagnant_steps is not None:
        return f"{live}, but the reward has not risen for {signs.stagnant_steps} steps."
    if not signs.warm:
        return f"Too early to judge: {live} so far."
    return f"Healthy: {live}." if total.share("dead") < settings.share_close else f"Only {live}."


def _sides(total: Counts) -> str:
    names = {
        "all_pass": "solved",
        "all_fail": "out of reach",
        "constant": "without any difference in reward",
        "filtered": "filtered out",
    }
    first, *others = ranked(total, names)
    named = [f"{first[0]} of groups are {first[1]}", *(f"{share} {name}" for share, name in others)]
    return listed(named)


def _unit(window: GroupWindow) -> str:
    """Call a share of groups one of rollouts where all groups have the same size."""
    sizes = {n for entry in window.entries.values for n in entry.tally.counts}
    whole = window.total.judged == window.total.seen
    return "rollouts" if whole and len(sizes) == 1 else "groups"
