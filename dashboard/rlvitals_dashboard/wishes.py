"""Decide what the control card may ask for, and say it before it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OVER = ("finished", "failed", "crashed")


def seen(run: Mapping[str, Any], directives: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up what the form needs to know: version, step, what is in force, what forbids change."""
    current = directives[0] if directives else None
    return {
        "version": current["version"] if current else 0,
        "step": run.get("step"),
        "blocked": blocked(run),
        "abilities": list(run.get("abilities") or ()),
        "active": bool(
            current
            and current["mode"] != "off"
            and current["state"] in ("pending", "acknowledged", "effective")
        ),
        "focal": bool(current and current["mode"] != "off" and current.get("focal")),
        "gamma": ((current or {}).get("focal") or {}).get("gamma"),
        "avspo": bool(current and current["mode"] != "off" and current.get("avspo")),
    }


def blocked(run: Mapping[str, Any]) -> str:
    """Say why no directive can be given; empty when one can."""
    if run["state"] in OVER:
        return f"This run has {run['state']}; nothing can be changed any more."
    if not run.get("abilities"):
        return (
            "This trainer's hook cannot change advantages. Pass them through run.reweight(...) "
            "before the loss, and the remedies here can be used."
        )
    return ""


def plan(known: Mapping[str, Any], wish: Mapping[str, bool], gamma: float, ends: Any) -> str:
    """Say what Apply will do, before it is done."""
    if known["blocked"]:
        return str(known["blocked"])
    parts = []
    if wish["focal"]:
        parts.append(f"multiply the advantages of mixed groups by (1 − success rate)^{gamma:g}")
    if wish["avspo"]:
        parts.append("add virtual rewards to collapsed groups when collapse is high (AVSPO)")
    if not parts:
        return "Switch on a remedy to apply it."
    until = ""
    if ends:
        until = f" and end after {int(ends):,} steps"
        until += f", at step {(known['step'] or 0) + int(ends):,}" if known["step"] else ""
    return f"Apply will {' and '.join(parts)}, from the trainer's next step on{until}."


def wanted(
    known: Mapping[str, Any], wish: Mapping[str, bool], gamma: float, ends: Any, reason: str | None
) -> dict[str, Any]:
    """Give the directive that the form asks for."""
    asked: dict[str, Any] = {"mode": "on", "expected_version": known["version"]}
    if wish["focal"]:
        asked["focal"] = {"gamma": float(gamma)}
    if wish["avspo"]:
        asked["avspo"] = {}
    if ends:
        asked["expires_at_step"] = (known["step"] or 0) + int(ends)
    if reason:
        asked["reason"] = reason
    return asked
