"""Sum a run up in a row of tiles: a number, how it moves, in a word, and a sparkline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from rlvitals.metrics.catalog import describe
from rlvitals_dashboard import series as sr
from rlvitals_dashboard import shares, words
from rlvitals_dashboard.series import EMPTY, Columns, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SPARK_POINTS = 48
STEADY = 0.05  # share of the range seen that still counts as no movement
WIDTH, HEIGHT = 100.0, 24.0
TILE_METRICS = frozenset({"acr_trained", "acr_effective", "step_seconds"})


@dataclass(frozen=True, slots=True)
class Tile:
    """Hold what one tile says."""

    key: str
    label: str
    value: str
    word: str
    spark: list[float | None]


def tiles(columns: Columns, total_steps: int) -> list[Tile]:
    """Give the tiles of a run of ``total_steps`` steps, always the same ones in the same order."""
    ks = sr.pass_ks(columns)
    least, most = (ks[0] if len(ks) > 1 else 1), max(ks, default=1)
    pooled = "acr_pooled" if "acr_pooled" in columns else "acr"
    last_pass = f"pass_at_{most}" if most > 1 else "pass_at_max"
    return [
        _tile(columns, pooled, "Collapsed groups", words.percent),
        _tile(columns, "acr_trained", "… among trained", words.percent),
        _tile(columns, "acr_effective", "Zero advantages", words.percent),
        _tile(columns, "acr_all_fail", "All fail", words.percent),
        _tile(columns, "acr_all_pass", "All pass", words.percent),
        _tile(columns, "success_rate", "Success", words.percent),
        _tile(columns, f"pass_at_{least}", f"pass@{least}", words.percent),
        _tile(columns, last_pass, f"pass@{most if most > 1 else 'max'}", words.percent),
        _tile(columns, "tail_miss_risk", "Tail-miss risk", words.percent),
        _tile(columns, "grad_norm", "Gradient norm", words.number),
        _tile(columns, "step_seconds", "Step time", _seconds),
        _wasted(columns, total_steps),
    ]


def movement(series: Series, key: str) -> str:
    """Say in a word how a metric moved over the last fifth of the steps shown."""
    moved = sr.change(series)
    if moved is None:
        return "too short to tell" if series.step else "not logged"
    _, values = series.level.finite()
    reach = max(values) - min(values)
    if abs(moved) <= STEADY * reach or reach == 0:
        return "→ steady"
    word = "↗ rising" if moved > 0 else "↘ falling"
    better = getattr(describe(key), "better", None)
    if better is None:
        return word
    return f"{word}, {'better' if (better == 'up') == (moved > 0) else 'worse'}"


def sparkline(series: Series, points: int = SPARK_POINTS) -> list[float | None]:
    """Thin the trend of a series to a few points, the last one among them."""
    smooth = sr.trend(series.level)
    if len(smooth) <= points:
        return smooth
    gap = (len(smooth) - 1) / (points - 1)
    return [smooth[round(i * gap)] for i in range(points)]


def spark_image(values: Sequence[float | None]) -> str:
    """Draw a sparkline as a data URI to be used as a mask, so that the page colours it."""
    known = [(i, v) for i, v in enumerate(values) if v is not None]
    if len(known) <= 1:
        return "none"
    low, high = min(v for _, v in known), max(v for _, v in known)
    reach = (high - low) or 1.0
    flat = high == low
    path = " ".join(
        f"{WIDTH * i / (len(values) - 1):.1f},"
        f"{HEIGHT / 2 if flat else 2 + (HEIGHT - 4) * (high - v) / reach:.1f}"
        for i, v in known
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" '
        f'preserveAspectRatio="none"><polyline points="{path}" fill="none" stroke="#000" '
        'stroke-width="1.5" vector-effect="non-scaling-stroke"/></svg>'
    )
    return f'url("data:image/svg+xml,{quote(svg)}")'


def _tile(columns: Columns, key: str, label: str, write: Callable[[float | None], str]) -> Tile:
    series = columns.get(key, EMPTY)
    value = write(series.last)
    if series.nonfinite and series.nonfinite[-1][0] >= series.step[-1]:
        value = series.nonfinite[-1][1].replace("Infinity", "∞").replace("-", "−")
    return Tile(key, label, value, movement(series, key), sparkline(series))


def _wasted(columns: Columns, total_steps: int) -> Tile:
    share = shares.wasted(columns)
    rollouts = total_steps * (columns.get("rollouts", EMPTY).level.mean_value() or 0)
    known = "not logged" if share is None else "of all, each step alike"
    word = f"of {words.short(rollouts)} seen" if rollouts else known
    series = columns.get("acr", EMPTY)
    return Tile("wasted", "Wasted rollouts", words.percent(share), word, sparkline(series))


def _seconds(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{words.number(value)} s"
