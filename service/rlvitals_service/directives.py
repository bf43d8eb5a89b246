"""Derive where a directive stands from what the trainer said; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal[
    "pending", "acknowledged", "effective", "refused", "expired", "superseded", "withdrawn"
]


@dataclass(frozen=True, slots=True)
class Ack:
    """Hold what one source (rank) said last about a directive."""

    source: str
    step: int
    status: str  # acknowledged, refused or expired
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Issued:
    """Hold what is known of a directive besides its acknowledgements.

    ``newest``: no later version was issued for the run. ``effective_step``: the first step stored
    with group data and this version applied. ``last_step``: of the run, for the expiry.
    """

    mode: str
    newest: bool
    expires_at_step: int | None = None
    effective_step: int | None = None
    last_step: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Say where a directive stands, since which steps, and why not."""

    state: State
    acknowledged_step: int | None = None
    effective_step: int | None = None
    refusal: str | None = None


def standing(issued: Issued, acks: Sequence[Ack]) -> Standing:
    """Derive a directive's state; one refusing rank refuses it for the run.

    A refusal and a reported expiry stay visible after a later version was issued; all else is
    superseded by it. An `off` directive is withdrawn once the trainer knows of it.
    """
    refused = [ack for ack in acks if ack.status == "refused"]
    return Standing(
        state=_state(issued, {ack.status for ack in acks}),
        acknowledged_step=_first(ack.step for ack in acks if ack.status == "acknowledged"),
        effective_step=issued.effective_step,
        refusal=_reason(refused) if refused else None,
    )


def is_past(expires_at_step: int | None, last_step: int | None) -> bool:
    """Tell whether a run has come to the step from which its directive is void."""
    return expires_at_step is not None and last_step is not None and last_step >= expires_at_step


def _state(issued: Issued, statuses: set[str]) -> State:
    if "refused" in statuses:
        return "refused"
    if "expired" in statuses:
        return "expired"
    if not issued.newest:
        return "superseded"
    known = "acknowledged" in statuses or issued.effective_step is not None
    if issued.mode == "off":
        return "withdrawn" if known else "pending"
    if is_past(issued.expires_at_step, issued.last_step):
        return "expired"
    if issued.effective_step is not None:
        return "effective"
    return "acknowledged" if known else "pending"


def _first(steps: Iterable[int]) -> int | None:
    return min(steps, default=None)


def _reason(refused: Sequence[Ack]) -> str:
    """Give the reasons in the ranks' words, each once, in the order they came."""
    said = dict.fromkeys(ack.reason for ack in refused if ack.reason)
    return "; ".join(said) or "the trainer gave no reason"
