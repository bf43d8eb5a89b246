"""Which rollouts were correct, which failed for certain, and which are neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.metrics.rollouts import flatten

if TYPE_CHECKING:
    from rlvitals.metrics.rollouts import BoolArray, FloatArray, IntArray, Rollouts
    from rlvitals.metrics.segments import Segments

UNKNOWN = -1  # stands in an integer column where success is unknown

# Rewards arrive as float32 sums, so 0.9 may be 0.89999998 when a threshold of 0.9 looks at it.
THRESHOLD_SLACK = 1e-6


def count_success(
    laid_out: Rollouts,
    segments: Segments,
    values: FloatArray,
    correct: Any,
    success_threshold: float | None,
    failure_threshold: float,
) -> tuple[IntArray | None, IntArray | None]:
    """Count correct and certainly failed rollouts a group; see ``Groups`` for what None means.

    ``values`` are the rewards as the segments take them.
    """
    if correct is not None:
        return _count_verdicts(verdicts(correct, laid_out), segments), None
    if success_threshold is None:
        return None, None
    passed, failed = by_threshold(values, success_threshold, failure_threshold)
    return segments.count(passed), segments.count(failed)


def by_threshold(
    rewards: FloatArray, success_threshold: float, failure_threshold: float
) -> tuple[BoolArray, BoolArray]:
    """Say which rewards count as correct and which as failed for certain; some are neither."""
    slack = THRESHOLD_SLACK * max(1.0, abs(success_threshold))
    passed = rewards >= success_threshold - slack
    if failure_threshold >= success_threshold:
        return passed, ~passed
    failed = rewards <= failure_threshold + slack
    apart = failure_threshold + slack < success_threshold - slack
    return passed, failed if apart else failed & ~passed


def verdicts(correct: Any, laid_out: Rollouts) -> FloatArray:
    """Give explicit verdicts in the layout of the rewards: 1, 0, or NaN for unknown."""
    flat, lengths = flatten(correct, "correct")
    fits = len(flat) == len(laid_out.values)
    if not fits or (lengths is not None and not np.array_equal(lengths, laid_out.size)):
        raise ValueError(f"correct: {len(flat)} entries do not match the layout of the rewards")
    if not (np.isnan(flat) | (flat == 0) | (flat == 1)).all():
        raise ValueError("correct: every entry must be true, false or None")
    return flat


def _count_verdicts(known: FloatArray, segments: Segments) -> IntArray:
    """Count correct rollouts; a group with one unknown verdict is unknown."""
    count = segments.reduce(np.add, segments.take(known), 0.0)
    return np.where(np.isnan(count), UNKNOWN, count).astype(np.int64)
