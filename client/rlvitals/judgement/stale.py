"""Runs that have fallen silent."""

from __future__ import annotations

from rlvitals.judgement.incidents import Change

KIND = "stale"
ADVICE = (
    "See whether the job still runs: a killed or hung process, a lost network. A client that "
    "comes back sends what it kept, and the run goes on."
)


def stale_change(
    last_seen: float,
    now: float,
    limit_seconds: float,
    open: bool,  # noqa: A002
    *,
    last_step: int = 0,
) -> Change | None:
    """Say whether a running run fell silent, or was heard again; times are the service's own.

    ``open`` tells whether the incident is open already. None where nothing changed.
    """
    silent = max(0.0, now - last_seen)
    if (silent > limit_seconds) is bool(open):
        return None
    opened = not open
    return Change(
        kind=KIND,
        action="opened" if opened else "closed",
        severity="warning",
        onset_step=last_step,
        step=last_step,
        title=f"Nothing heard for {_duration(silent)}" if opened else "Heard from again",
        text=f"The last sign of life came after step {last_step}, {_duration(silent)} ago.",
        causes=(),
        evidence={"silent_seconds": silent, "limit_seconds": limit_seconds},
        advice=ADVICE if opened else "",
        reference="",
    )


def _duration(seconds: float) -> str:
    minute, hour = 60, 3600
    if seconds < 2 * minute:
        return f"{seconds:.0f} s"
    if seconds < 2 * hour:
        return f"{seconds / minute:.0f} min"
    return f"{seconds / hour:.1f} h"
