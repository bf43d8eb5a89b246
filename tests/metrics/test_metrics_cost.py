"""The benchmark of tallies compares like with like."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import metrics_cost as script


def test_floors_compute_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting scenarios up refuses a floor that computes other numbers; each can be timed."""
    monkeypatch.setattr(script, "MERGED", 5)
    monkeypatch.setattr(script, "BURSTS", 2)
    scenarios = script.scenarios()
    assert len(scenarios) == 2 * len(script.SHAPES) + 1
    for title, calls in scenarios.items():
        figures = script.measure(calls)
        assert figures.keys() == calls.keys()
        rounds = {name: {0: own} for name, own in figures.items()}
        assert f"| {script.FLOOR} |" in script.report(title, rounds)


def test_other_numbers_are_refused() -> None:
    """A floor that leaves out one failed group is found out."""
    given = script.rewards(64, 8, shaped=False)
    by_hand = script.plainly(given)
    del by_hand["by_group"]
    with pytest.raises(AssertionError, match=r"^all_fail: "):
        script.check_same({**by_hand, "all_fail": by_hand["all_fail"] + 1}, script.tallied(given))
