"""Time making and merging tallies beside plain NumPy that computes the same numbers.

One process; rounds interleave the contestants and ratios are taken within a round, so that a
drifting machine cancels out. The clock is the thread's own CPU time: neighbours take the core away
without being counted.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring.tables import Figures, Rounds, medians, ratio, table

from rlvitals.metrics import Groups, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

SHAPES = ((64, 8), (1024, 16))
MERGED = 1000
SUCCESS, TOLERANCE = 1.0, 1e-6
FLOOR, OURS = "floor: plain NumPy", "Tally"
HISTOGRAM = "floor: histogram"
ADDED = "Tally, added one by one"
LOOP = "floor: Python loop"
BURST_SECONDS = 0.0005  # short, so that a neighbour misses some of them
BURSTS = 100
SUMMED = sorted(
    {field.name for field in fields(Tally)}
    - {"counts", "reward_mean", "reward_m2", "reward_min", "reward_max"}
)


def rewards(groups: int, size: int, *, shaped: bool) -> NDArray[np.float32]:
    """Draw float32 rewards of prompts of every difficulty: 0 or 1, or that and a shaping term."""
    source = np.random.default_rng(0)
    outcome = source.random((groups, size)) < source.random((groups, 1))
    shaping = 0.1 * source.random((groups, size)) * shaped
    return (outcome + shaping).astype(np.float32)


def histogram(given: NDArray[np.float32]) -> NDArray[np.int64]:
    """Count the groups by their number of successes, and nothing else."""
    return np.bincount((given >= SUCCESS).sum(1), minlength=given.shape[1] + 1)


def plainly(given: NDArray[np.float32]) -> dict[str, Any]:
    """Compute what Groups and their Tally hold as one would by hand, for rows of one length."""
    errored = int(given.size - np.isfinite(given).sum())
    r = np.asarray(given, np.float64)
    size = r.shape[1]
    low, high, means, std = r.min(1), r.max(1), r.mean(1), r.std(1, ddof=1)
    correct = (r >= SUCCESS - TOLERANCE).sum(1)
    failed = (r <= TOLERANCE).sum(1)
    flat = high - low <= TOLERANCE
    all_fail, all_pass = int((flat & (failed == size)).sum()), int((flat & (correct == size)).sum())
    uniform = (correct == 0) | (correct == size)
    mean = float(r.mean())
    return {
        "counts": {size: tuple(np.bincount(correct, minlength=size + 1).tolist())},
        "groups": len(r),
        "rollouts": r.size,
        "all_fail": all_fail,
        "all_pass": all_pass,
        "constant": int(flat.sum()) - all_fail - all_pass,
        "shaping_only": int((uniform & ~flat).sum()),
        "errored": errored,
        "reward_mean": mean,
        "reward_m2": float(((r - mean) ** 2).sum()),
        "reward_min": float(low.min()),
        "reward_max": float(high.max()),
        "std_sum": float(std.sum()),
        "std_sumsq": float((std**2).sum()),
        "by_group": {
            "n_correct": correct,
            "n_failed": failed,
            "reward_mean": means,
            "reward_std": std,
            "reward_min": low,
            "reward_max": high,
        },
    }


def grouped(given: NDArray[np.float32]) -> Groups:
    """Reduce rewards as a trainer has them to groups."""
    return Groups.from_rewards(given, success_threshold=SUCCESS)


def tallied(given: NDArray[np.float32]) -> Tally:
    """Make the Tally of a batch."""
    return Tally.from_groups(grouped(given), TOLERANCE)


def merge_plainly(tallies: list[Tally]) -> dict[str, Any]:
    """Merge tallies of one group size with NumPy: fields gathered into arrays, then summed."""
    (size,) = tallies[0].counts
    counts = np.array([one.counts[size] for one in tallies]).sum(0)
    summed = np.array([[getattr(one, name) for name in SUMMED] for one in tallies]).sum(0)
    n = np.array([one.rollouts for one in tallies])
    means = np.array([one.reward_mean for one in tallies])
    m2 = np.array([one.reward_m2 for one in tallies])
    mean = float(n @ means / n.sum())
    return {
        **dict(zip(SUMMED, summed.tolist(), strict=True)),
        "counts": {size: tuple(counts.tolist())},
        "reward_mean": mean,
        "reward_m2": float(m2.sum() + n @ (means - mean) ** 2),
        "reward_min": float(np.min([one.reward_min for one in tallies])),
        "reward_max": float(np.max([one.reward_max for one in tallies])),
    }


def merge_in_a_loop(tallies: list[Tally]) -> dict[str, Any]:
    """Merge tallies of one group size with Python numbers, one tally after another."""
    (size,) = tallies[0].counts
    counts, summed = [0] * (size + 1), dict.fromkeys(SUMMED, 0.0)
    n, mean, m2, low, high = 0, 0.0, 0.0, np.inf, -np.inf
    for one in tallies:
        counts = [a + b for a, b in zip(counts, one.counts[size], strict=True)]
        for name in SUMMED:
            summed[name] += getattr(one, name)
        n += one.rollouts
        delta = one.reward_mean - mean
        mean += delta * one.rollouts / n
        m2 += one.reward_m2 + delta * (one.reward_mean - mean) * one.rollouts
        low, high = min(low, one.reward_min), max(high, one.reward_max)
    pooled = {"reward_mean": mean, "reward_m2": m2, "reward_min": low, "reward_max": high}
    return {**summed, "counts": {size: tuple(counts)}, **pooled}


def check_same(plain: Mapping[str, Any], ours: Tally | Groups) -> None:
    """Refuse to compare what does not compute the same numbers."""
    for name, value in plain.items():
        own = getattr(ours, name)
        same = own == value if name == "counts" else np.allclose(own, value, rtol=1e-9)
        assert same, f"{name}: {value} by hand, {own} in ours"


def scenarios() -> dict[str, dict[str, Callable[[], Any]]]:
    """Name each comparison, and each contestant in it; the floor of the ratios comes first."""
    found: dict[str, dict[str, Callable[[], Any]]] = {}
    for groups, size in SHAPES:
        for shaped in (False, True):
            given = rewards(groups, size, shaped=shaped)
            by_hand = plainly(given)
            check_same(by_hand.pop("by_group"), grouped(given))
            check_same(by_hand, tallied(given))
            found[f"{groups}x{size}, {'shaped' if shaped else '0 and 1'}"] = {
                FLOOR: functools.partial(plainly, given),
                HISTOGRAM: functools.partial(histogram, given),
                OURS: functools.partial(tallied, given),
            }
    source = np.random.default_rng(1)
    tallies = [tallied((source.random((64, 8)) < 0.4).astype(np.float32)) for _ in range(MERGED)]
    for merge in (merge_plainly, merge_in_a_loop):
        check_same(merge(tallies), Tally.total(tallies))
    found[f"merge of {MERGED} tallies"] = {
        FLOOR: functools.partial(merge_plainly, tallies),
        LOOP: functools.partial(merge_in_a_loop, tallies),
        OURS: functools.partial(Tally.total, tallies),
        ADDED: functools.partial(sum, tallies, Tally()),
    }
    return found


def measure(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Figures]:
    """Time every contestant in alternating bursts; give microseconds a call in the least one."""
    bursts = {name: max(1, int(BURST_SECONDS / _burst(call, 1))) for name, call in calls.items()}
    timed: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(BURSTS):
        for name, call in calls.items():
            timed[name].append(1e6 * _burst(call, bursts[name]))
    return {name: {"us": min(each)} for name, each in timed.items()}


def _burst(call: Callable[[], Any], times: int) -> float:
    start = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - start) / times


def report(title: str, rounds: Mapping[str, Rounds]) -> str:
    """Lay out medians over rounds, with ratios to the floor of the same round."""
    columns = {title: "<", "us a call": ">", "over plain NumPy": ">"}
    rows = [
        [name, f"{medians(own)['us']:,.0f}", ratio(own, rounds[FLOOR], "us", digits=2)]
        for name, own in rounds.items()
    ]
    return table(columns, rows)


def main() -> None:
    """Measure every comparison in interleaved rounds and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print figures by round, not tables")
    args = parser.parse_args()
    contests = scenarios()
    found: dict[str, dict[str, Rounds]] = {title: {} for title in contests}
    for number in range(args.rounds):
        for title, calls in contests.items():
            for name, figures in measure(calls).items():
                found[title].setdefault(name, {})[number] = figures
    if args.json:
        print(json.dumps(found))
        return
    print("\n\n".join(report(title, rounds) for title, rounds in found.items()))


if __name__ == "__main__":
    main()
