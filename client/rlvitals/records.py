"""The wire between a training job and the service, defined once for both ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Phase = Literal["train", "eval"]
Stage = Literal["sampled", "trained"]
AckStatus = Literal["acknowledged", "refused", "expired"]

# A non-finite number travels as its name, so that strict JSON keeps its class.
NONFINITE: Mapping[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
Scalar = float | Literal["NaN", "Infinity", "-Infinity"] | None

StepNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Small = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Source = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class GroupColumns(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Hold the groups of one generation as columns of equal length, one entry a group.

    ``reward_std`` has ddof=1 and is null for a group of one; all four reward columns are null
    for a group without rewards. ``n_correct`` is null where success is unknown. ``n_failed``
    is left out when it is ``size - n_correct`` throughout.
    """

    size: list[Count]
    reward_mean: list[float | None]
    reward_std: list[float | None]
    reward_min: list[float | None]
    reward_max: list[float | None]
    n_correct: list[Count | None] | None = None
    n_failed: list[Count | None] | None = None
    group_id: list[str] | None = None
    prompt_id: list[str] | None = None


class StepRecord(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Say what one source saw at one step of one phase.

    Its key is (run, attempt, phase, step, generation, source, stage). Sending a key again
    replaces what the record carries: its groups or counts when present, and each scalar named.
    """

    step: StepNumber
    attempt: Annotated[int, msgspec.Meta(ge=1, lt=2**15)] = 1
    phase: Phase = "train"
    generation: Small = 0
    source: Source = "0"
    stage: Stage = "sampled"
    time: float | None = None
    groups: GroupColumns | None = None
    counts: dict[str, list[Count]] | None = None  # group size -> groups with c = 0..n correct
    dropped: Count = 0
    errored: Count = 0
    filtered: Count = 0
    advantage_groups: Count = 0
    advantage_zero: Count = 0
    carried: bool = False  # the same generation was counted at an earlier step
    scalars: dict[str, Scalar] = {}
    applied: Small | None = None  # the directive version in force when advantages were made


class Acknowledgement(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Tell the service what became of a directive, and at which step."""

    version: Small
    step: StepNumber
    status: AckStatus = "acknowledged"
    source: Source = "0"
    reason: str = ""


class AlertRecord(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Carry an alert that user code raised."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    text: str = ""
    level: Literal["info", "warning", "critical"] = "warning"
    step: StepNumber | None = None


class StepBatch(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Hold one request: records (kept raw, so that one bad one spoils nothing) and news."""

    records: list[msgspec.Raw] = []
    acknowledgements: list[Acknowledgement] = []
    alerts: list[AlertRecord] = []
    lost: dict[str, Count] = {}  # what the client had to drop so far in this process, by reason


class Directive(msgspec.Struct, omit_defaults=False):
    """State which remedies a run should have in force."""

    version: int
    mode: Literal["off", "shadow", "on"]
    focal: dict[str, Any] | None = None
    avspo: dict[str, Any] | None = None
    expires_at_step: int | None = None
    reason: str = ""
    issued_by: str = ""
    issued_at: str = ""


class StepAnswer(msgspec.Struct):
    """Answer a batch: what was taken, what was not and why, and the directive in force."""

    accepted: int
    duplicates: int
    rejected: list[dict[str, Any]]
    directive: Directive | None = None
    last_step: int | None = None


def encode_scalar(value: float) -> Scalar:
    """Name a non-finite number; pass a finite one."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def decode_scalar(value: Scalar) -> float | None:
    """Give a scalar of the wire back as a float of the same class."""
    return NONFINITE[value] if isinstance(value, str) else value
