"""Follow a run: ask what changed since a cursor, and fetch only that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvitals_dashboard import marks as mk
from rlvitals_dashboard import panels as pn
from rlvitals_dashboard import series as sr
from rlvitals_dashboard.figures import frame
from rlvitals_dashboard.tiles import TILE_METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlvitals.api import Api
    from rlvitals_dashboard.series import Columns
    from rlvitals_dashboard.theme import Figure

MAX_POINTS = 1200  # a range of 1,000 steps and its margins come whole
SMALL_POINTS = 400
OVERVIEW_POINTS = 400
PAD = 0.02  # a zoomed range is fetched a little wider, so that lines reach the panel's edge
FIRST_SMALL = 9
FEW_TICKS = 5  # on the time axis of a small panel
# Derived from the panels' metrics, or counts that only tiles need.
NOT_ALONE = frozenset({"groups", "rollouts", "singletons"})
USUAL_ORDER = (
    "loss",
    "entropy",
    "kl",
    "response_length_mean",
    "truncated_fraction",
    "clip_fraction",
    "learning_rate",
    "step_seconds",
    "reward_std",
    "reward_std_within",
    "acr_trained",
    "acr_outcome",
    "shaping_only",
)
View = tuple[int, int] | None
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hold all that a run page shows at one revision."""

    run: Record
    columns: dict[str, sr.Series]  # over the whole run
    shown: dict[str, sr.Series]  # over the range in view
    evaluated: dict[str, sr.Series]
    total_steps: int
    incidents: list[Record]
    directives: list[Record]
    small: list[str]


def cursor(run: Mapping[str, Any], view: View, small: int) -> str:
    """Name what is on the page in a few letters: while it stays, nothing is sent again."""
    head = {k: v for k, v in run.items() if k not in ("latest", "sparkline", "config")}
    return digest([head, view, small])


def data_cursor(run: Mapping[str, Any], view: View, small: int) -> str:
    """Name the data on the page; a mere sign of life does not change it."""
    return digest([run["id"], run["revision"], run["state"], view, small])


def digest(value: Any) -> str:
    """Give eight bytes that change with the value."""
    packed = json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.blake2b(packed, digest_size=8).hexdigest()


def snapshot(api: Api, run: Mapping[str, Any], view: View, small: int) -> Snapshot:
    """Fetch all that a run page shows: the whole run thinned, and the range in view finely."""
    run_id, names = run["id"], list(run["metrics"])
    alone = small_metrics(names)
    main = [name for name in names if name not in alone or name in TILE_METRICS]
    wanted = main + [name for name in alone[:small] if name not in main]
    ends = padded(view)
    points = MAX_POINTS if small <= FIRST_SMALL else SMALL_POINTS
    shown = api.history(run_id, wanted, *ends, max_points=points)
    whole = shown
    if view is not None:
        whole = api.history(run_id, wanted, max_points=OVERVIEW_POINTS)
    evaluated = api.history(
        run_id, ["success_rate", "reward_mean"], *ends, max_points=SMALL_POINTS, phase="eval"
    )
    return Snapshot(
        run=dict(run),
        columns=sr.read_columns(whole),
        shown=sr.read_columns(shown),
        evaluated=sr.read_columns(evaluated),
        total_steps=whole["total_steps"],
        incidents=[dict(incident) for incident in api.incidents(run_id)],
        directives=[dict(directive) for directive in api.directives(run_id)],
        small=alone,
    )


def padded(view: View) -> tuple[int | None, int | None]:
    """Widen a range a little; None for the whole run."""
    if view is None:
        return None, None
    pad = max(1, round((view[1] - view[0]) * PAD))
    return max(0, view[0] - pad), view[1] + pad


def small_metrics(names: Sequence[str]) -> list[str]:
    """Order the metrics that no main panel shows: usual ones first, then by name."""
    taken = {name for panel in pn.PANELS for name in panel.metrics} | NOT_ALONE
    free = [name for name in names if name not in taken and not sr.pass_ks([name])]
    order = {name: index for index, name in enumerate(USUAL_ORDER)}
    return sorted(free, key=lambda name: (order.get(name, len(order)), name))


def figures(snap: Snapshot, view: View, small: int) -> dict[str, Figure]:
    """Build the figure of each panel over one time axis, with incidents and directives."""
    ends = view or sr.span(snap.shown)
    last = snap.run.get("step") or 0
    every = mk.incident_marks(snap.incidents, last) + mk.directive_marks(snap.directives, last)
    built = {
        panel.id: mk.draw(frame(*_drawing(panel, snap, ends), key=snap.run["id"]), every)
        for panel in pn.PANELS
    }
    for name in snap.small[:small]:
        if name in snap.shown:
            traces, axis = pn.single(name, snap.shown[name])
            figure = frame(traces, ends, axis, snap.run["id"])
            figure["layout"]["xaxis"] |= {"nticks": FEW_TICKS, "tickangle": 0}
            built[name] = mk.draw(figure, every, labelled=False)
    return built


def answers(snap: Snapshot) -> dict[str, str]:
    """Give each panel's sentence about now, whatever range is in view."""
    columns: Columns = snap.columns
    return {panel.id: panel.answer(columns) for panel in pn.PANELS}


def _drawing(
    panel: pn.Panel, snap: Snapshot, ends: View
) -> tuple[list[dict[str, Any]], View, dict[str, Any]]:
    traces, axis = panel.draw(snap.shown, snap.evaluated)
    return traces, ends, axis
