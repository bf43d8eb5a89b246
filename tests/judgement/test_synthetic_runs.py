"""A known pathology is found, split by side and dated; a healthy run is left in peace."""

from __future__ import annotations

import pytest
from tests.judgement.observed import of_row, opened, watch
from tests.judgement.synthetic import HEALTHY, make

from rlvitals.judgement import Judge
from rlvitals.metrics.tally import Tally


def test_the_generator_gives_the_published_side_shares() -> None:
    """Over the last 75 steps of the mixed run .475 of groups are all correct, .467 all wrong."""
    tallies = [of_row(row).tally for row in make()][225:]
    total = sum((tally for tally in tallies if tally is not None), Tally())
    assert total.all_pass / total.groups == pytest.approx(0.475, abs=5e-4)
    assert total.all_fail / total.groups == pytest.approx(0.467, abs=5e-4)


def test_a_mixed_collapse_is_found_in_time_with_spike_and_nan_and_nothing_else() -> None:
    """Spike at 90, NaN at 120 and the collapse by step 200 each open one incident."""
    changes = watch(Judge(), map(of_row, make()))
    found = opened(changes)
    assert found[:2] == [("gradient_spike", 90), ("gradient_nonfinite", 120)]
    assert [kind for kind, _ in found] == [
        "gradient_spike",
        "gradient_nonfinite",
        "advantage_collapse",
    ]
    assert 190 <= found[2][1] <= 200


def test_a_mixed_collapse_names_both_sides_with_their_shares() -> None:
    """Title, causes and evidence hold both sides, and the run ends critical."""
    collapse = [c for c in watch(Judge(), map(of_row, make())) if c.kind == "advantage_collapse"]
    first, last = collapse[0], collapse[-1]
    assert "solved" in first.title
    assert "out of reach" in first.title
    assert {cause.name for cause in first.causes} == {"all_pass", "all_fail"}
    assert all(cause.share > 0.2 for cause in first.causes)
    assert first.severity == "warning"
    assert last.severity == "critical"
    assert last.evidence["all_pass"] == pytest.approx(last.evidence["all_fail"], abs=0.1)


def test_spike_and_nan_of_the_mixed_run_are_over_after_20_quiet_steps() -> None:
    """Both incidents close by themselves and stay one each."""
    changes = watch(Judge(), map(of_row, make()))
    closed = [(c.kind, c.step) for c in changes if c.action == "closed"]
    assert closed == [("gradient_spike", 110), ("gradient_nonfinite", 140)]


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_run_opens_nothing(seed: int) -> None:
    """300 steps at a level reward near one half are healthy, and called so."""
    judge = Judge()
    assert watch(judge, map(of_row, make(seed=seed, **HEALTHY))) == []
    assert judge.finish() == []
    assert judge.verdict().startswith("Healthy: ")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mode", ["mixed", "correct", "wrong"])
def test_a_collapse_is_one_incident_within_six_steps_of_its_middle(mode: str, seed: int) -> None:
    """Each mode and seed opens one collapse, when between .5 and .62 of groups are dead."""
    changes = watch(Judge(), map(of_row, make(mode=mode, seed=seed, spike=-1, nan=-1)))
    assert [kind for kind, _ in opened(changes)] == ["advantage_collapse"]
    assert 0.5 < changes[0].evidence["acr"] < 0.62
    assert changes[0].onset_step <= changes[0].step <= 204


def test_a_solved_task_is_no_failure() -> None:
    """A collapse to all-correct is information, and both title and verdict say solved."""
    judge = Judge()
    changes = watch(judge, map(of_row, make(mode="correct", spike=-1, nan=-1)))
    assert {change.severity for change in changes} == {"info"}
    assert all("solved" in change.title for change in changes)
    assert changes[0].causes[0].name == "all_pass"
    assert judge.verdict().startswith("Solved: ")


def test_a_task_out_of_reach_names_its_side() -> None:
    """A collapse to all-wrong becomes critical and blames the failing side."""
    changes = watch(Judge(), map(of_row, make(mode="wrong", spike=-1, nan=-1)))
    assert changes[-1].severity == "critical"
    assert changes[-1].causes[0].name == "all_fail"
    assert "out of reach" in changes[-1].title
