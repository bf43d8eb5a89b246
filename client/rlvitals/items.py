"""What the training thread queues: copies of its arrays, nothing computed yet.

They are msgspec structs because those are built in C: a trainer pays for each one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rlvitals.records import Acknowledgement, AlertRecord, Phase, Stage


class Scalars(msgspec.Struct):
    """Hold one log call."""

    step: int
    phase: Phase
    time: float
    values: dict[Any, Any]


class Rewards(msgspec.Struct):
    """Hold one log_groups call; `numbered` says that the caller gave the generation."""

    step: int
    phase: Phase
    stage: Stage
    generation: int
    numbered: bool
    time: float
    rewards: Any
    group_ids: Any
    correct: Any
    prompt_ids: Any
    filtered: int
    dropped: int


class Advantages(msgspec.Struct):
    """Hold the final advantages of one reweight call, to see which groups got none."""

    step: int
    phase: Phase
    generation: int
    time: float
    advantages: Any
    rewards: Any
    group_ids: Any


class Reweighted(msgspec.Struct):
    """Hold what a directive did to one generation."""

    step: int
    phase: Phase
    generation: int
    time: float
    applied: int
    advantage_groups: int
    advantage_zero: int
    scalars: dict[str, float]


class Finish(msgspec.Struct):
    """Hold the end of a run."""

    state: str
    exit_code: int | None
    summary: dict[str, Any]


Item = Scalars | Rewards | Advantages | Reweighted | Acknowledgement | AlertRecord | Finish
