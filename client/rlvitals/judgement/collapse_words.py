"""How a collapse is put into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals.judgement.wording import listed, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlvitals.judgement.incidents import Cause, Severity
    from rlvitals.judgement.share import Level
    from rlvitals.judgement.window import Counts

NEARLY_ALL = 0.8


def describe(severity: Severity, causes: tuple[Cause, ...], held: Level) -> tuple[str, str]:
    """Give title and text of a collapse."""
    reasons = "; ".join(cause.text for cause in causes)
    text = (
        f"{held.sentence()} had equal rewards, so their advantages are all zero. "
        f"Most important first: {reasons}."
    )
    return _title(severity, causes, held.stretch.counts), text


def sides(counts: Counts) -> str:
    """Name each side of a collapse with its share of all groups, largest first."""
    names = {
        "all_pass": "solved",
        "all_fail": "out of reach",
        "constant": "with equal rewards",
        "filtered": "filtered out",
    }
    return listed([f"{share} {name}" for share, name in ranked(counts, names)])


def ranked(counts: Counts, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give the share, in words, and the name of each side that has any, largest first."""
    held = sorted(((counts.share(side), name) for side, name in names.items()), reverse=True)
    return [(percent(share), name) for share, name in held if share]


def _title(severity: Severity, causes: tuple[Cause, ...], counts: Counts) -> str:
    acr, leading = percent(counts.share("dead")), causes[0]
    if severity == "info":
        word = "solved" if counts.share("all_pass") > NEARLY_ALL else "largely solved"
        return f"Task {word}: all rollouts succeed in {percent(counts.share('all_pass'))} of groups"
    if leading.name == "truncation":
        return f"{percent(leading.share)} of rollouts are cut off and {acr} of groups teach nothing"
    if leading.name == "verifier":
        return "No rollout scores better than another: suspect the verifier or the answer format"
    if leading.name == "group_size":
        return f"{acr} of groups teach nothing because the groups are small"
    return f"{acr} of groups teach nothing: {sides(counts)}"
