"""Say numbers, times and states in words: the same words on every page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rlvitals_dashboard.theme import SEVERITY_SHAPE

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN = "–"
LARGE, SMALL, THOUSAND = 1e6, 1e-3, 1000
KIND_WORDS = {
    "advantage_collapse": "collapse",
    "gradient_nonfinite": "not finite",
    "gradient_spike": "spike",
    "shaping_only_gradient": "shaping only",
    "group_size_one": "groups of one",
    "stale": "silent",
}


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with ``digits`` significant digits, thousands apart."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    size = abs(value)
    if size >= LARGE or size < SMALL:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e")
    if size >= THOUSAND:
        return f"{value:,.0f}"
    return f"{float(f'{value:.{digits}g}'):g}"


def percent(value: float | None) -> str:
    """Write a share as a percentage: whole, or one decimal where whole would hide it."""
    if value is None:
        return UNKNOWN
    fine, whole = f"{value:.1%}", f"{value:.0%}"
    hidden = whole in ("0%", "100%") and value not in (0, 1)
    return fine if hidden and fine not in ("0.0%", "100.0%") else whole


def points(value: float | None) -> str:
    """Write a change of a share in percentage points, always with its sign."""
    if value is None:
        return UNKNOWN
    shown = round(value * 100)
    return f"{'+' if shown >= 0 else '−'}{abs(shown)} points"


def kind(name: str) -> str:
    """Name a kind of incident in a word or two."""
    return KIND_WORDS.get(name, name.replace("_", " "))


def severity(name: str) -> str:
    """Write a severity as shape and word."""
    return f"{SEVERITY_SHAPE.get(name, '●')} {name}"


def ago(moment: str | None, now: datetime | None = None) -> str:
    """Say how long ago an ISO time was, in its largest unit."""
    if not moment:
        return UNKNOWN
    then = datetime.fromisoformat(moment)
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = max(0, int(((now or datetime.now(UTC)) - then).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def remedy(directive: Mapping[str, Any]) -> str:
    """Name the remedies that a directive asks for."""
    if directive["mode"] == "off":
        return "no remedy"
    focal, avspo = directive.get("focal"), directive.get("avspo")
    parts = [f"focal γ {focal['gamma']:g}"] if focal else []
    parts += ["AVSPO"] if avspo else []
    return " + ".join(parts) or "no remedy"


def directive_state(directive: Mapping[str, Any] | None) -> str:
    """Say in a sentence what became of a directive."""
    if directive is None:
        return "No directive yet. The trainer uses its advantages as they are."
    version, what = directive["version"], remedy(directive)
    taken = directive.get("acknowledged_step")
    acknowledged = ", ".join(sorted({a["source"] for a in directive.get("acks", ())}))
    sentences = {
        "pending": f"pending since version {version}; the trainer takes it up at its next step",
        "acknowledged": f"acknowledged by {acknowledged or 'the trainer'} at step {taken}",
        "effective": f"in force since step {directive.get('effective_step')}"
        + (f", acknowledged by {acknowledged}" if acknowledged else ""),
        "refused": f"refused: {directive.get('refusal') or 'no reason given'}",
        "expired": f"expired at step {directive.get('expires_at_step')}",
        "superseded": "superseded by a newer version",
        "withdrawn": "withdrawn; the trainer uses its advantages as they are",
    }
    sentence = f"{what}: {sentences.get(directive['state'], directive['state'])}"
    return sentence[0].upper() + sentence[1:] + _until(directive) + "."


def _until(directive: Mapping[str, Any]) -> str:
    ends = directive.get("expires_at_step")
    running = directive["state"] in ("pending", "acknowledged", "effective")
    return f", until step {ends:,}" if ends is not None and running else ""


def short(value: float) -> str:
    """Write a large count in a few letters: 1.2 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}"
