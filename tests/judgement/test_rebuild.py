"""A Judge made anew from open incidents and recent steps goes on as if nothing had happened."""

from __future__ import annotations

import math
import random
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.judgement.observed import flat, groups, of_row, watch
from tests.judgement.synthetic import make

from rlvitals.judgement import Change, Judge, JudgeSettings, Observation, OpenIncident

MEMORY = 512


def on_record(changes: list[Change]) -> list[OpenIncident]:
    """Keep what a table of incidents would hold: the newest change of each open one."""
    held: dict[str, OpenIncident] = {}
    for change in changes:
        if change.action == "closed":
            del held[change.kind]
        else:
            held[change.kind] = OpenIncident.from_change(change)
    return list(held.values())


def resumed(past: list[Observation], changes: list[Change]) -> Judge:
    """Make a Judge anew from the record and the newest steps."""
    judge = Judge(open_incidents=on_record(changes), first_step=past[0].step)
    judge.rebuild(past[-MEMORY:])
    return judge


def eventful(seed: int, length: int) -> list[Observation]:
    """Draw a run of calm, collapse, spikes, NaN, plateaus and gaps, a few hundred steps each."""
    rng = np.random.default_rng(seed)
    rows: list[Observation] = []
    for step in range(length):
        era = (step // 130 + seed) % 4
        dead = rng.binomial(8, (0.1, 0.75, 0.5, 0.97)[era])
        solved = rng.binomial(dead, 0.5 if seed % 2 else 0.9)
        norm = abs(1 + 0.2 * rng.standard_normal()) * (30 if rng.random() < 0.01 else 1)
        if rng.random() < (0.02, 0.0, 0.3, 0.0)[era]:
            norm = math.nan
        tally = groups(fail=dead - solved, solved=solved, mixed=8 - dead)
        rows.append(flat(step, tally, grad_norm=norm if era != 3 else 0.0))
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_at_any_step_changes_nothing(seed: int) -> None:
    """Whatever was open, closed or counted, the changes after a restart are the same."""
    rows = eventful(seed, 1100)
    judge, changes = Judge(), []
    cuts = sorted(random.Random(seed).sample(range(1, 1090), 12))
    for cut, until in zip([0, *cuts], [*cuts, 1100], strict=True):
        changes += watch(judge, rows[cut:until])
        if until == 1100:
            continue
        anew = resumed(rows[:until], changes)
        assert anew.open_incidents() == judge.open_incidents()
        assert anew.pooled() == judge.pooled()
        assert anew.verdict() == judge.verdict()
        after = rows[until : until + 100]
        assert settled(watch(anew, after)) == settled(watch(deepcopy(judge), after))
        judge = resumed(rows[:until], changes)


def settled(changes: list[Change]) -> list[Change]:
    """Leave out what was counted since the start, which memory does not reach back to."""
    return [
        replace(
            change,
            evidence={k: v for k, v in change.evidence.items() if not k.startswith("run_")},
        )
        for change in changes
    ]


def test_a_restart_in_a_collapse_opens_no_second_incident() -> None:
    """Restarted at step 250 of the mixed run, the one collapse stays one."""
    rows = [of_row(row) for row in make()]
    changes = watch(Judge(), rows[:250])
    later = watch(resumed(rows[:250], changes), rows[250:])
    assert all(change.action != "opened" for change in later)
    assert later == watch(Judge(), rows)[len(changes) :]


def test_a_finished_run_without_signal_is_told_after_a_restart_too() -> None:
    """What the run has ever shown travels in the evidence, beyond the steps seen again."""
    rows = [flat(s, groups(fail=8)) for s in range(2000)]
    (change,) = resumed(rows, watch(Judge(), rows)).finish()
    assert change.title == "Finished, no learning signal"


def test_settings_are_respected() -> None:
    """A stricter threshold opens where the default does not."""
    rows = [flat(s, groups(fail=3, mixed=7)) for s in range(60)]
    assert watch(Judge(), rows) == []
    strict = JudgeSettings(share_open=0.2, share_close=0.15)
    assert len(watch(Judge(strict), rows)) == 1


numbers = st.floats(allow_nan=True, allow_infinity=True)
names = ["grad_norm", "loss", "reward_mean", "kl", "truncated_fraction", "eval_reward_mean"]
tallies = st.builds(
    lambda fail, solved, mixed: groups(4, fail=fail, solved=solved, mixed=mixed),
    *(st.integers(0, 30) for _ in range(3)),
)
observations = st.builds(
    Observation,
    st.integers(0, 120),
    st.none() | tallies,
    st.none() | tallies,
    st.dictionaries(st.sampled_from(names), numbers),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(observations, max_size=100), st.booleans())
def test_no_input_raises_and_each_kind_has_one_open_incident(
    rows: list[Observation], ordered: bool
) -> None:
    """Any numbers in any order of steps: opened and closed alternate, bounds hold, words come."""
    judge, open_kinds = Judge(), set()
    for row in sorted(rows, key=lambda one: one.step) if ordered else rows:
        for change in judge.observe(row):
            assert (change.action == "opened") is (change.kind not in open_kinds)
            (open_kinds.discard if change.action == "closed" else open_kinds.add)(change.kind)
            assert change.onset_step <= change.step
            values = [v for v in change.evidence.values() if not isinstance(v, str)]
            assert all(math.isfinite(value) for value in values)
        assert {incident.kind for incident in judge.open_incidents()} == open_kinds
        pooled = judge.pooled()
        assert pooled is None or 0 <= pooled[1] <= pooled[0] <= pooled[2] <= 1
        assert judge.verdict()
    judge.finish()


def test_memory_does_not_grow_with_the_run() -> None:
    """After 3,000 steps the series hold what their limits say."""
    judge = Judge()
    watch(judge, eventful(1, 3000))
    assert len(judge.window.entries) <= 64
    assert len(judge.spike.baseline.values) == len(judge.spike.baseline.ordered) <= 128
    assert len(judge.stagnation.rewards) <= 350
    assert len(judge.nonfinite.flags) <= 80
