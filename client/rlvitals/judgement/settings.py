"""Every threshold of the detectors, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Hold the thresholds; the defaults were tried on real runs.

    Steps are optimizer steps by their number, rows are steps that carried the value. Shares
    are between 0 and 1. ``*_open`` and ``*_critical`` are compared with the lower end of a
    Wilson interval, ``*_close`` and ``*_ease`` with the point estimate: the gap between the two
    is what keeps a noisy run at one incident an episode.
    """

    window_steps: int = 20
    window_groups: int = 64
    recent_steps: int = 5
    recent_groups: int = 256
    share_open: float = 0.5
    share_critical: float = 0.8
    share_ease: float = 0.7
    share_close: float = 0.45
    solved_enter: float = 2 / 3
    solved_leave: float = 0.55
    truncated_high: float = 0.5
    suspect_share: float = 0.98
    larger_group: int = 16
    revived_share: float = 0.5
    update_steps: int = 20
    update_share: float = 0.25

    nonfinite_critical: int = 3
    gradient_quiet: int = 20
    spike_baseline: int = 128
    spike_minimum: int = 20
    spike_sigma: float = 10.0
    spike_median: float = 3.0
    spike_large: float = 10.0
    spike_many: int = 3
    vanished_rows: int = 20

    # Longer than the flat but healthy curves we know (300 steps), shorter than the shortest
    # real run that never learned (400).
    stagnation_steps: int = 350
    stagnation_rows: int = 30
    stagnation_blocks: int = 20
    stagnation_every: int = 25
    stagnation_open: float = 2.0
    stagnation_close: float = 3.0
    solved_success: float = 0.95
    eval_metrics: tuple[str, ...] = (
        "eval_success_rate",
        "eval_reward_mean",
        "eval_reward",
        "eval/reward",
    )

    singleton_rows: int = 20
    singleton_minimum: int = 8
    singleton_open: float = 0.5
    singleton_close: float = 0.25

    no_signal_share: float = 0.99
