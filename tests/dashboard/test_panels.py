"""What the charts show, by numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.dashboard.sample_api import SampleApi
from tests.dashboard.sample_runs import incident

from rlvitals.metrics import colours
from rlvitals_dashboard import answers, figures, incidents, live, panels
from rlvitals_dashboard.series import Series


def named(traces: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Give the one trace of a name."""
    (found,) = [trace for trace in traces if trace["name"] == name]
    return found


def snapshot(ward: SampleApi, run_id: str, view: live.View = None) -> live.Snapshot:
    """Fetch a sample run."""
    return live.snapshot(ward, ward.run(run_id), view, live.FIRST_SMALL)


def test_stack_of_causes_adds_up_to_the_pooled_rate() -> None:
    """0.1 failed and 0.3 passed of a pooled 0.4 stay as they are, in their own colours."""
    columns = {
        "acr_all_fail": Series([0, 1], [0.1, 0.1], []),
        "acr_all_pass": Series([0, 1], [0.3, 0.3], []),
        "acr_pooled": Series([0, 1], [0.4, 0.4], []),
        "acr_pooled_low": Series([0, 1], [0.3, 0.3], []),
        "acr_pooled_high": Series([0, 1], [0.5, 0.5], []),
    }
    traces, axis = panels.collapse(columns, {})
    failed, passed = named(traces, "all fail"), named(traces, "all pass")
    assert failed["y"] == [0.1, 0.1]
    assert passed["y"] == [0.3, 0.3]
    assert failed["stackgroup"] == passed["stackgroup"]
    assert failed["line"]["color"] == colours.ALL_FAIL
    assert named(traces, "collapsed, pooled")["y"] == [0.4, 0.4]
    assert axis["range"][0] == 0


def test_rate_after_a_remedy_is_drawn_from_where_it_differs() -> None:
    """While effective and raw rates agree there is one line; then a second begins."""
    columns = {
        "acr": Series([0, 1, 2], [0.8, 0.8, 0.8], []),
        "acr_effective": Series([0, 1, 2], [0.8, 0.8, 0.3], []),
    }
    after = named(panels.collapse(columns, {})[0], "still collapsed after the remedy")
    assert (after["x"], after["y"]) == ([2], [0.3])
    same = {**columns, "acr_effective": columns["acr"]}
    names = [trace["name"] for trace in panels.collapse(same, {})[0]]
    assert "still collapsed after the remedy" not in names


def test_gradient_marks_spikes_zeros_and_what_is_not_finite() -> None:
    """Spikes are points, NaN and infinity stand at the upper edge, zeros at the lower one."""
    values: list[float | None] = [1.0, 1.1, 0.9, 1.0] * 2 + [40.0, None, 0.0, 1.0]
    series = Series(list(range(12)), values, [(9, "NaN")])
    traces, axis = panels.gradient({"grad_norm": series}, {})
    assert axis["type"] == "log"
    assert named(traces, "spike")["x"] == [8]
    broken, zero = named(traces, "not finite"), named(traces, "exactly zero")
    assert (broken["x"], broken["text"]) == ([9], ["NaN"])
    assert (zero["x"], zero["yaxis"]) == ([10], "y2")
    assert broken["y"][0] > 0.9
    assert zero["y"][0] < 0.1
    assert all(trace["connectgaps"] for trace in traces if trace["mode"] == "lines")


def test_equal_reward_and_success_are_one_line() -> None:
    """With rewards of 0 and 1 both are the same number and are drawn once."""
    success, reward = Series([0, 1], [0.2, 0.4], []), Series([0, 1], [0.2, 0.4], [])
    traces, _ = panels.reward({"success_rate": success, "reward_mean": reward}, {})
    assert [t["name"] for t in traces if t.get("showlegend", True)] == [
        "success rate (= mean reward)"
    ]


def test_rewards_far_from_shares_get_a_plain_axis() -> None:
    """Percentages would be wrong for a reward of 7."""
    success, reward = Series([0, 1], [0.2, 0.4], []), Series([0, 1], [7.0, 6.0], [])
    _, axis = panels.reward({"success_rate": success, "reward_mean": reward}, {})
    assert "tickformat" not in axis


def test_evaluation_points_stand_beside_the_training_curve() -> None:
    """Evaluation success is drawn as markers at its own steps."""
    evaluated = {"success_rate": Series([0, 50], [0.3, 0.5], [])}
    train = {"success_rate": Series([0, 1], [0.2, 0.4], [])}
    points = named(panels.reward(train, evaluated)[0], "success, evaluation")
    assert (points["x"], points["y"], points["mode"]) == ([0, 50], [0.3, 0.5], "markers")


def test_any_k_of_pass_at_k_is_drawn() -> None:
    """A group size of 6 gives pass@6, which no list foresaw."""
    columns = {f"pass_at_{k}": Series([0], [0.1 * k], []) for k in (1, 2, 6)}
    names = {trace["name"] for trace in panels.coverage(columns, {})[0]}
    assert {"pass@1", "pass@2", "pass@6"} <= names


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.15, 0.9], [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0, 5.0, 7.0]),
        ([0.1, 100.0], [0.1, 1.0, 10.0, 100.0]),
        ([], None),
    ],
)
def test_log_axis_has_round_ticks(values: list[float], ticks: list[float] | None) -> None:
    """Short axes get 1, 2 and 5; long ones decades."""
    assert figures.log_ticks(values).get("tickvals") == ticks


def test_answers_name_numbers_and_steps(ward: SampleApi) -> None:
    """Each question of the collapsed run is answered with its numbers."""
    told = live.answers(snapshot(ward, "collapsed"))
    assert "all pass" in told["acr"]
    assert "spike at step 90" in told["gradient"]
    assert "not finite at step 120, 121" in told["gradient"]
    assert told["reward"].startswith("Success ")
    assert told["passk"].startswith("pass@1 ")


def test_answers_without_data_say_what_to_log() -> None:
    """An empty run is no error; it says what is missing."""
    assert "grad_norm" in answers.gradient({})
    assert "success_threshold" in answers.coverage({})


@pytest.mark.parametrize("run_id", ["healthy", "collapsed", "dense", "long", "empty"])
def test_all_panels_share_one_axis_and_are_strict_json(ward: SampleApi, run_id: str) -> None:
    """Every figure has the same range of steps and margins, and no NaN or numpy inside."""
    built = live.figures(snapshot(ward, run_id), None, live.FIRST_SMALL)
    assert set(built) >= {panel.id for panel in panels.PANELS}
    ranges = {tuple(figure["layout"]["xaxis"]["range"]) for figure in built.values()}
    sides = {(f["layout"]["margin"]["l"], f["layout"]["margin"]["r"]) for f in built.values()}
    assert len(ranges) == len(sides) == 1
    json.dumps(built, allow_nan=False)


def test_long_run_stays_within_its_points(ward: SampleApi) -> None:
    """A hundred thousand steps are drawn with at most 1,200 points a line, spike and NaN kept."""
    built = live.figures(snapshot(ward, "long"), None, live.FIRST_SMALL)
    raw = named(built["gradient"]["data"], "gradient norm, each step")
    assert len(raw["x"]) <= live.MAX_POINTS + 1
    assert 61_010 in raw["x"]
    assert named(built["gradient"]["data"], "not finite")["x"] == [40_000]


def test_zoom_fetches_the_range_at_full_resolution(ward: SampleApi) -> None:
    """A range of 400 steps of a long run has every step, and sentences still speak of now."""
    snap = snapshot(ward, "long", (50_000, 50_400))
    steps = snap.shown["acr"].step
    assert steps == list(range(49_992, 50_409))
    assert snap.columns["acr"].step[-1] == 99_999
    assert live.figures(snap, (50_000, 50_400), 0)["acr"]["layout"]["xaxis"]["range"] == [
        50_000,
        50_400,
    ]


def test_a_constant_metric_keeps_its_size_on_the_axis() -> None:
    """A learning rate of 1e-6 throughout is not drawn on an axis from -1 to 1."""
    _, axis = panels.single("learning_rate", Series([0, 1], [1e-6, 1e-6], []))
    assert axis["range"] == pytest.approx([0.8e-6, 1.2e-6])


def test_metric_that_was_never_finite_is_still_shown() -> None:
    """All-NaN gives marks at the edge and no line, and no error."""
    series = Series([0, 1], [None, None], [(0, "NaN"), (1, "Infinity")])
    traces, _ = panels.single("loss", series)
    assert named(traces, "not finite")["text"] == ["NaN", "Infinity"]
    assert not any(math.isfinite(v) for t in traces[:2] for v in t["y"] if v is not None)


def test_small_panels_have_room_for_the_numbers_of_long_runs(ward: SampleApi) -> None:
    """Steps like 100,000 stand upright below a small panel, five at the most."""
    axis = live.figures(snapshot(ward, "long"), None, 9)["entropy"]["layout"]["xaxis"]
    assert (axis["nticks"], axis["tickangle"]) == (5, 0)


def test_many_closed_incidents_are_folded() -> None:
    """Open incidents and the five newest closed ones are in the list, the others in a fold."""
    states = ["open"] * 2 + ["closed"] * 9
    every = [incident(number, state=state) for number, state in enumerate(states)]
    shown = incidents.listed(every)
    assert len(shown) == 8
    assert shown[-1].children[0].children == "4 more closed ones"
    assert len(shown[-1].children) == 5
    assert len(incidents.listed(every[:8])) == 8
