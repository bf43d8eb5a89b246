"""Name every colour once: what it means, and how light and dark pages draw it."""

from __future__ import annotations

from typing import Any, Final

from rlvitals.metrics.colours import LIVE

Figure = dict[str, Any]

# The meanings of the metrics' own colours are fixed beside the metrics; these are the page's.
REMEDY: Final = "#56B4E9"
ON_REMEDY: Final = "#0b2233"
CRITICAL: Final = "#C9357F"
WARNING: Final = "#E69F00"
INFO: Final = "#7C8794"

SEVERITY_COLOUR: Final = {"critical": CRITICAL, "warning": WARNING, "info": INFO}
RANK: Final = {"critical": 0, "warning": 1, "info": 2}
# Shapes repeat what the colours say.
SEVERITY_SHAPE: Final = {"critical": "▲", "warning": "◆", "info": "●"}
STATE_SHAPE: Final = {
    "running": "●",
    "stale": "◌",
    "finished": "✓",
    "failed": "✕",
    "crashed": "✕",
}

FONT: Final = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, '
    "sans-serif"
)


def translucent(colour: str, alpha: float) -> str:
    """Give ``#rrggbb`` as rgba with the given opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def between(start: str, end: str, share: float) -> str:
    """Mix two ``#rrggbb`` colours; share 0 gives the first, 1 the second."""
    pairs = ((int(start[i : i + 2], 16), int(end[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _template(ink: str, muted: str, grid: str, surface: str) -> dict[str, Any]:
    axis = {
        "color": muted,
        "gridcolor": grid,
        "linecolor": grid,
        "tickcolor": grid,
        "zeroline": False,
        "tickfont": {"size": 11, "color": muted},
    }
    return {
        "layout": {
            "font": {"family": FONT, "size": 12, "color": ink},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {
                "bgcolor": surface,
                "bordercolor": grid,
                "font": {"family": FONT, "size": 12, "color": ink},
            },
            "legend": {"font": {"size": 11, "color": muted}},
            "annotationdefaults": {"font": {"size": 11, "color": muted}},
        },
        # A trace that names no colour is drawn in ink.
        "data": {"scatter": [{"line": {"color": ink}, "marker": {"color": ink}}]},
    }


# What the browser puts on a figure: its template, and colours too dim for a dark page.
THEMES: Final[dict[str, dict[str, Any]]] = {
    "light": {"template": _template("#15202b", "#56616d", "#e4e7eb", "#ffffff"), "brighter": {}},
    "dark": {
        "template": _template("#e8ecf1", "#a3adb8", "#2b333d", "#1b2129"),
        "brighter": {LIVE: "#3d9be0", CRITICAL: "#ea5fa4"},
    },
}
