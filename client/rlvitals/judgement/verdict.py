"""One plain sentence about how a run is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.wording import listed, percent

if TYPE_CHECKING:
    from rlvitals.judgement.incidents import Severity
    from rlvitals.judgement.window import Counts, GroupWindow


def group_verdict(window: GroupWindow, collapse: Severity | None) -> str:
    """Say what the groups in the window teach; ``collapse`` is the open incident's severity."""
    total = window.total
    if not total.seen:
        return "No group data yet."
    live = total.seen - total.dead
    if collapse == "info":
        solved, teaching = percent(total.all_pass / total.seen), percent(live / total.seen)
        return f"Solved: all rollouts succeed in {solved} of groups, {teaching} still teach."
    if collapse is None:
        return f"Healthy: {percent(live / total.seen)} of groups carry signal."
    return f"{_sides(total)}: {percent(live / total.seen)} of {_unit(window)} teach."


def _sides(total: Counts) -> str:
    named = {
        "solved": total.all_pass,
        "out of reach": total.all_fail,
        "without any difference in reward": total.constant,
        "filtered out": total.filtered,
    }
    held = sorted(((k, name) for name, k in named.items() if k), reverse=True)
    first, *others = [f"{percent(k / total.seen)}{{}} {name}" for k, name in held]
    return listed([first.format(" of groups are"), *(text.format("") for text in others)])


def _unit(window: GroupWindow) -> str:
    """Call a share of groups one of rollouts where all groups have the same size."""
    sizes = {n for entry in window.entries.values for n in entry.tally.counts}
    whole = window.total.judged == window.total.seen
    return "rollouts" if whole and len(sizes) == 1 else "groups"
