"""Stagnation: a reward that has not risen for long, with the reason told apart."""

from __future__ import annotations

import math

import numpy as np
from tests.judgement.observed import flat, groups, opened, watch

from rlvitals.judgement import Judge, Observation
from rlvitals.judgement.trend import trend


def rewards(values: np.ndarray, **scalars: float) -> list[Observation]:
    """Observe mean rewards at consecutive steps."""
    return [flat(step, reward_mean=float(v), **scalars) for step, v in enumerate(values)]


def noise(count: int, seed: int = 0, correlation: float = 0.8) -> np.ndarray:
    """Draw autocorrelated noise of unit variance."""
    rng = np.random.default_rng(seed)
    out = np.zeros(count)
    for i in range(1, count):
        out[i] = correlation * out[i - 1] + rng.standard_normal()
    return out * math.sqrt(1 - correlation**2)


def test_a_level_reward_is_reported_after_350_steps_and_not_before() -> None:
    """Noise around one level: nothing for 349 steps, then one warning that it never improved."""
    values = 0.4 + 0.05 * noise(1000)
    assert watch(Judge(), rewards(values[:349])) == []
    changes = watch(Judge(), rewards(values))
    assert len(changes) == 1
    assert changes[0].severity == "warning"
    assert (changes[0].onset_step, changes[0].step) == (1, 350)


def test_a_rising_reward_is_none() -> None:
    """A slow rise beyond the noise opens nothing over 1,000 steps."""
    values = np.linspace(0.2, 0.7, 1000) + 0.05 * noise(1000)
    assert watch(Judge(), rewards(values)) == []


def test_a_level_after_a_rise_is_a_note() -> None:
    """What improved and then levels off is information first, a warning if it goes on."""
    values = np.concatenate([np.linspace(0.1, 0.8, 400), np.full(1000, 0.8)])
    changes = watch(Judge(), rewards(values + 0.03 * noise(1400)))
    assert (changes[0].action, changes[0].severity) == ("opened", "info")
    assert changes[0].onset_step > 100
    assert [c.severity for c in changes if c.action == "escalated"] == ["warning"]


def test_a_fall_from_the_best_says_where_the_best_was() -> None:
    """Up for 300 steps, down for 300: a note at the top, then a warning with the peak's step."""
    values = np.concatenate([np.linspace(0, 1, 300), np.linspace(1, 0, 300)])
    changes = watch(Judge(), rewards(values + 0.02 * noise(600)))
    assert len(opened(changes)) == 1
    assert [change.action for change in changes] == ["opened", "escalated"]
    assert "falling" in changes[1].title
    assert abs(float(changes[1].evidence["best_step"]) - 300) < 60


def test_the_reason_follows_the_collapse_rate() -> None:
    """With ACR .9 the collapse explains it, with ACR .1 it does not: other advice."""
    dead, live = groups(fail=45, solved=45, mixed=10), groups(fail=5, solved=5, mixed=90)
    stuck = [watch(Judge(), [flat(s, t) for s in range(360)]) for t in (dead, live)]
    high, low = (next(c for c in changes if c.kind == "stagnation") for changes in stuck)
    assert high.causes[0].name == "advantage_collapse"
    assert low.causes[0].name == "no_collapse"
    assert high.advice != low.advice


def test_a_solved_task_does_not_stagnate() -> None:
    """At 96 % success there is nothing left to rise to."""
    rows = [flat(s, groups(solved=92, mixed=8)) for s in range(400)]
    assert "stagnation" not in dict(opened(watch(Judge(), rows)))


def test_a_new_best_in_evaluation_speaks_against_it() -> None:
    """The train reward is level while evaluation rises: no stagnation."""
    rows = rewards(0.4 + 0.05 * noise(400))
    rows += [flat(s, eval_reward_mean=s / 400) for s in range(0, 400, 50)]
    rows.sort(key=lambda row: row.step)
    merged = [
        flat(row.step, **row.scalars, eval_reward_mean=row.step / 400)
        if row.step % 50 == 0 and "reward_mean" in row.scalars
        else row
        for row in rows
    ]
    assert watch(Judge(), [row for row in merged if "reward_mean" in row.scalars]) == []


def test_it_ends_when_the_reward_rises_again() -> None:
    """400 level steps, then a clear rise: closed once, not opened again while rising."""
    values = np.concatenate([np.full(400, 0.3), np.linspace(0.3, 0.9, 300)])
    changes = watch(Judge(), rewards(values + 0.02 * noise(700)))
    assert [change.action for change in changes] == ["opened", "closed"]


def test_nan_rewards_leave_a_gap_and_poison_nothing() -> None:
    """A NaN every ten steps changes neither the alert nor its numbers into NaN."""
    values = 0.4 + 0.05 * noise(400)
    values[::10] = math.nan
    changes = watch(Judge(), rewards(values))
    assert len(changes) == 1
    assert all(math.isfinite(v) for v in changes[0].evidence.values() if not isinstance(v, str))


def test_block_means_recover_a_line_and_its_error() -> None:
    """Exact line: slope 2, no error. Autocorrelated noise: |t| > 2 about one time in twenty."""
    steps = list(range(400))
    exact = trend(steps, [2.0 * s for s in steps], 20)
    assert exact is not None
    assert math.isclose(exact.slope, 2.0)
    assert exact.t > 1e6
    ts = [found.t for seed in range(200) if (found := trend(steps, list(noise(400, seed)), 20))]
    assert len(ts) == 200
    assert sum(abs(t) > 2 for t in ts) < 30


def test_numbers_too_large_to_square_are_left_out() -> None:
    """Rewards near the end of float64 neither raise nor make an infinite slope."""
    wild = np.where(np.arange(400) % 2, 1e307, -1e307)
    assert watch(Judge(), rewards(wild)) == []
    assert watch(Judge(), rewards(np.linspace(-1e300, 1e300, 400))) == []
