"""Draw incidents and directives as labelled bands and lines over every panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvitals_dashboard import words
from rlvitals_dashboard.theme import (
    ON_REMEDY,
    RANK,
    REMEDY,
    SEVERITY_COLOUR,
    SEVERITY_SHAPE,
    Figure,
    translucent,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL_WIDTH = 0.0085  # share of a wide panel that one letter takes
MOST_BANDS = 60
ROOM = 1.02  # a label may end a little right of the panel
LEGEND, ROW, RIBBON, THIN = 26, 17, 15, 4  # heights in pixels


@dataclass(frozen=True, slots=True)
class Mark:
    """Say where a band or line lies, in steps, and what stands above it."""

    start: int
    end: int
    label: str
    colour: str
    kind: str  # incident or remedy
    rank: int = 3


def incident_marks(incidents: Sequence[Mapping[str, Any]], last_step: int) -> list[Mark]:
    """Give one mark an incident, newest first; an open one lasts until now."""
    return [
        Mark(
            start=incident["onset_step"],
            end=_end(incident, last_step),
            label=f"{SEVERITY_SHAPE.get(incident['severity'], '●')} {words.kind(incident['kind'])}",
            colour=SEVERITY_COLOUR.get(incident["severity"], SEVERITY_COLOUR["info"]),
            kind="incident",
            rank=RANK.get(incident["severity"], 3),
        )
        for incident in incidents[:MOST_BANDS]
        if incident.get("onset_step") is not None
    ]


def directive_marks(directives: Sequence[Mapping[str, Any]], last_step: int) -> list[Mark]:
    """Give one mark a directive that took effect; it lasts until the next one did."""
    marks: list[Mark] = []
    until = last_step
    for directive in directives:
        start = directive.get("effective_step")
        start = directive.get("acknowledged_step") if start is None else start
        if start is None:
            continue
        end = min(until, directive.get("expires_at_step") or until)
        if directive["mode"] != "off":
            label = f"{words.remedy(directive)}"
            marks.append(Mark(start, max(start, end), label, REMEDY, "remedy"))
        until = start
    return marks


def draw(figure: Figure, marks: Sequence[Mark], *, labelled: bool = True) -> Figure:
    """Add shapes, and labels where there is room, to a figure."""
    low, high = figure["layout"]["xaxis"]["range"]
    shown = [mark for mark in marks if mark.end >= low and mark.start <= high]
    shapes = [shape for mark in shown for shape in _shapes(mark, RIBBON if labelled else THIN)]
    rows = [[mark for mark in shown if mark.kind == kind] for kind in ("incident", "remedy")]
    layout = figure["layout"]
    layout |= {"shapes": shapes, "annotations": []}
    if not labelled:
        layout["margin"] = layout["margin"] | {"t": 12}
        return figure
    # Remedies lie as ribbons right above the plot; incidents have a row of words above those.
    lift = RIBBON if any(mark.kind == "remedy" for mark in marks) else 0
    layout["margin"] = layout["margin"] | {"t": LEGEND + lift + (ROW if marks else 0)}
    for row, shift in zip(rows, (lift, 0), strict=True):
        layout["annotations"] += [
            _label(mark, low, shift, text, side) for mark, text, side in placed(row, low, high)
        ]
    return figure


def placed(marks: Sequence[Mark], low: float, high: float) -> list[tuple[Mark, str, str]]:
    """Choose each mark's label and the side its start is on, so that none covers another.

    The gravest come first. An incident without room for its words keeps its shape; a remedy's
    words go left of a ribbon too short for them; what has no room at all is left out.
    """
    taken: list[tuple[float, float]] = []
    chosen: list[tuple[Mark, str, str]] = []
    for mark in sorted(marks, key=lambda m: (m.rank, -m.start)):
        at = (max(mark.start, low) - low) / (high - low)
        for text, side in _choices(mark, low, high):
            width = LABEL_WIDTH * (len(text) + 1)
            ends = (at, at + width) if side == "left" else (at - width, at)
            free = all(ends[1] <= a or ends[0] >= b for a, b in taken)
            if free and ends[0] >= 0 and ends[1] <= ROOM:
                taken.append(ends)
                chosen.append((mark, text, side))
                break
    return chosen


def _choices(mark: Mark, low: float, high: float) -> list[tuple[str, str]]:
    if mark.kind == "incident":
        return [(mark.label, "left"), (mark.label[0], "left")]
    ribbon = (min(mark.end, high) - max(mark.start, low)) / (high - low)
    fits = ribbon >= LABEL_WIDTH * (len(mark.label) + 1)
    return [(mark.label, "left" if fits else "right")]


def _end(incident: Mapping[str, Any], last_step: int) -> int:
    if incident["state"] == "open":
        return max(last_step, int(incident["onset_step"]))
    ends = incident.get("last_step")
    return max(int(incident["onset_step"]), -1 if ends is None else int(ends))


def _shapes(mark: Mark, ribbon_height: int) -> list[dict[str, Any]]:
    across = {"xref": "x", "yref": "paper", "x0": mark.start, "layer": "below"}
    begin = {
        "type": "line",
        "x1": mark.start,
        "y0": 0,
        "y1": 1,
        "line": {
            "color": mark.colour,
            "width": 1,
            "dash": "dash" if mark.kind == "remedy" else "solid",
        },
    }
    ribbon = {
        "type": "rect",
        "x1": mark.end,
        "ysizemode": "pixel",
        "yanchor": 1,
        "y0": 0,
        "y1": ribbon_height,
        "fillcolor": mark.colour,
    }
    wash = {"type": "rect", "x1": mark.end, "y0": 0, "y1": 1}
    wash["fillcolor"] = translucent(mark.colour, 0.08)
    parts = [begin, ribbon] if mark.kind == "remedy" else [wash, begin]
    return [across | {"line": {"width": 0}} | part for part in parts]


def _label(mark: Mark, low: float, lift: int, text: str, side: str) -> dict[str, Any]:
    on_ribbon = mark.kind == "remedy" and side == "left"
    ink = {"color": ON_REMEDY} if on_ribbon else {}
    return {
        "x": max(mark.start, low),
        "xref": "x",
        "xanchor": side,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": lift - 2,
        "xshift": 2 if side == "left" else -2,
        "text": text,
        "hovertext": mark.label,
        "showarrow": False,
        "font": {"size": 11, **ink},
    }
