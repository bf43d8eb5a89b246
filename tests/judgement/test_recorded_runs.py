"""Recorded runs of other people: what must be found in them, and what must not."""

from __future__ import annotations

import pytest
from tests.judgement.observed import (
    flat,
    needs_cases,
    opened,
    recorded,
    trainer_log,
    watch,
)

from rlvitals.judgement import Change, Judge, Observation
from rlvitals.metrics.tally import Tally

pytestmark = needs_cases


def of_kind(changes: list[Change], kind: str) -> list[Change]:
    """Keep the changes of one kind."""
    return [change for change in changes if change.kind == kind]


def group_means() -> list[Observation]:
    """Observe 800 binary groups of four, four a step."""
    rows: dict[int, list[int]] = {}
    for row in recorded("group_means_g4_s42.csv"):
        histogram = rows.setdefault(int(row["step"]), [0] * 5)
        histogram[round(4 * float(row["mean_reward"]))] += 1
    return [flat(step, Tally.from_counts({4: row})) for step, row in sorted(rows.items())]


def test_a_healthy_run_with_spikes_gets_no_critical_alert() -> None:
    """250 rows of learning with three gradient spikes: each noted, nothing critical."""
    changes = watch(Judge(), trainer_log("trl_old_keys_250.json", 1))
    assert opened(changes) == [
        ("gradient_spike", 51),
        ("gradient_spike", 84),
        ("gradient_spike", 206),
    ]
    assert all(change.severity != "critical" for change in changes)


def test_a_healthy_run_logged_every_ten_steps_gets_no_alert() -> None:
    """25 rows, no dead group, no spike."""
    assert watch(Judge(), trainer_log("trl_old_keys_log10.json", 10, 10)) == []


def test_a_run_that_never_learned_is_stagnation_without_collapse() -> None:
    """400 flat rows with ACR 0: stagnation fires, and collapse is ruled out as its reason."""
    changes = watch(Judge(), trainer_log("trl_wordle_flat_400.json", 2))
    assert [kind for kind, _ in opened(changes)] == ["stagnation"]
    assert changes[0].severity == "warning"
    assert changes[0].causes[0].name == "no_collapse"


def test_2400_rows_at_the_edge_of_collapse_are_one_incident() -> None:
    """One group a row, ACR .59: one collapse opened near row 306, one stagnation, few changes."""
    changes = watch(Judge(), trainer_log("trl_finqa_2400.csv", 1))
    collapse, stagnation = of_kind(changes, "advantage_collapse"), of_kind(changes, "stagnation")
    assert [c.step for c in collapse if c.action == "opened"] == [307]
    assert stagnation[0].action == "opened"
    assert len(opened(changes)) == 2
    assert len(changes) <= 6


def test_binary_groups_of_four_are_one_collapse_with_both_sides() -> None:
    """800 groups: opened at step 19, out of reach first, solved second."""
    changes = watch(Judge(), group_means())
    assert opened(changes) == [("advantage_collapse", 19)]
    assert [cause.name for cause in changes[0].causes] == ["all_fail", "all_pass"]
    assert len(changes) <= 3


def test_a_fast_collapse_in_a_short_log_is_one_incident() -> None:
    """18 rows of ten groups and ten steps: opened at the seventh row, once 64 groups were seen."""
    changes = watch(Judge(), trainer_log("trl_vl_length_collapse.jsonl", 10, 10))
    assert opened(changes) == [("advantage_collapse", 70)]
    assert len(changes) <= 3


def test_a_rise_and_fall_with_growing_collapse_raises_stagnation() -> None:
    """500 steps of game scores in 50 rows: stagnation opens, and truncation leads the collapse."""
    changes = watch(Judge(), trainer_log("trl_minesweeper_500.json", 20))
    assert of_kind(changes, "stagnation")[0].action == "opened"
    assert of_kind(changes, "advantage_collapse")[0].causes[0].name == "truncation"


def test_gradients_that_start_as_nan_and_recover_close_their_incident() -> None:
    """20 NaN rows, then finite: one incident, closed by itself."""
    changes = watch(Judge(), trainer_log("unsloth_grad_nan.jsonl", 1))
    broken = of_kind(changes, "gradient_nonfinite")
    assert [change.action for change in broken].count("opened") == 1
    assert broken[-1].action == "closed"
    assert broken[-1].evidence["count"] == 20


@pytest.mark.parametrize("name", ["trl_xling_a2_50.json", "trl_xling_openrs_50.json"])
def test_a_loss_of_zero_and_tiny_gradients_are_healthy(name: str) -> None:
    """Loss rounds to 0.0 on every row and norms are .004 or .03: no alert."""
    assert watch(Judge(), trainer_log(name, 1, 5)) == []


def test_a_thousand_steps_of_slow_saturation_are_a_late_note() -> None:
    """A reward that rises for 500 steps and levels off: information, long after the rise."""
    rows = recorded("fair_batch_1000.csv")
    changes = watch(
        Judge(), [flat(int(r["step"]), reward_mean=float(r["avg_r_total"])) for r in rows]
    )
    assert [(change.kind, change.severity) for change in changes] == [("stagnation", "info")]
    assert changes[0].step > 700
