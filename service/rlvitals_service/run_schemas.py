"""The JSON of runs, in and out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from rlvitals_service.cleaning import clean_json

State = Literal["running", "stale", "finished", "failed", "crashed"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Tags = Annotated[list[Name], Field(max_length=50)]
Notes = Annotated[str, Field(max_length=20_000)]
Attempt = Annotated[int, Field(ge=1, lt=2**15)]
Source = Annotated[str, Field(min_length=1, max_length=64)]


class Request(BaseModel):
    """A body whose texts may hold anything and whose numbers may be non-finite."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def make_storable(cls, body: Any) -> Any:
        """Replace what PostgreSQL refuses and name what JSON has no number for."""
        return clean_json(body)


class RunCreate(Request):
    """Introduce a process of a training job; every rank of a job sends the same key."""

    project: Name
    key: Name = Field(description="Identifies the run in its project, over restarts and ranks.")
    name: Name | None = Field(None, description="What people call it; the key if left out.")
    config: dict[str, Any] = {}
    tags: Tags = []
    group: Name | None = None
    notes: Notes = ""
    resume: Literal["never", "allow", "must"] = Field(
        "allow", description="What a new attempt of a known key is: a mistake, fine, or required."
    )
    attempt_key: Name = Field(
        "1", description="Identifies this start of the job; the same one again changes nothing."
    )
    source: Source = "0"
    success_threshold: FiniteFloat | None = None
    failure_threshold: FiniteFloat | None = None
    abilities: Annotated[list[Name], Field(max_length=20)] = Field(
        [], description="Remedies that the trainer can apply: focal, avspo."
    )
    started_at: FiniteFloat | None = Field(
        None,
        description="Client's Unix time in seconds at which the attempt began; the newest attempt "
        "is the one that began last. Now when left out.",
    )
    sent_at: FiniteFloat | None = Field(
        None,
        description="Client's Unix time of this request: makes up for a clock that is wrong.",
    )
    rlvitals_version: Name | None = None


class RunPatch(Request):
    """Change what people say about a run; what is left out stays."""

    name: Name | None = None
    tags: Tags | None = None
    notes: Notes | None = None
    archived: bool | None = None


class Heartbeat(Request):
    """Say that a process is alive although it logs nothing."""

    attempt: Attempt = 1
    source: Source = "0"


class Finish(Request):
    """Say how a source of an attempt ended, or the attempt as a whole."""

    attempt: Attempt = 1
    source: Source | None = Field(
        None, description="Whose end this is; the whole attempt's when left out."
    )
    state: Literal["finished", "failed", "crashed"] = "finished"
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    summary: dict[str, Any] = {}


class DirectiveFields(BaseModel):
    """What was asked for, and by whom."""

    version: int
    mode: Literal["off", "shadow", "on"]
    focal: dict[str, Any] | None
    avspo: dict[str, Any] | None
    expires_at_step: int | None
    reason: str
    issued_by: str


class DirectiveForTrainer(DirectiveFields):
    """The remedies that should be in force."""

    issued_at: str


class RunCreated(BaseModel):
    """Tell a process which run and attempt it is."""

    id: UUID
    project: str
    name: str
    attempt: int
    resumed: bool
    last_step: int | None
    directive: DirectiveForTrainer | None
    dashboard_url: str | None


class Told(BaseModel):
    """Answer a heartbeat."""

    directive: DirectiveForTrainer | None


class Finished(BaseModel):
    """Answer the end of an attempt with the state of the run."""

    state: State


class OpenIncident(BaseModel):
    """An incident that is open now."""

    id: UUID
    kind: str
    severity: Literal["info", "warning", "critical"]
    title: str


class Sparkline(BaseModel):
    """The advantage collapse rate over the whole run so far, in at most 60 points.

    Each is the mean over up to `stride` steps from `step` on; stretches without groups are absent.
    """

    acr: list[float] = []
    step: list[int] = []
    stride: int = 1


class RunSummary(BaseModel):
    """A run as a list shows it."""

    id: UUID
    project: str
    name: str
    group: str | None
    tags: list[str]
    state: State
    archived: bool
    step: int | None
    attempt: int
    started_at: datetime
    last_seen_at: datetime
    finished_at: datetime | None
    latest: dict[str, float | None] = Field(
        description="The newest value of each metric; null where it is not finite."
    )
    nonfinite: dict[str, Literal["NaN", "Infinity", "-Infinity"]] = Field(
        description="The class of each newest value that is not finite."
    )
    sparkline: Sparkline
    open_incidents: list[OpenIncident]
    revision: int
    verdict: str
    url: str | None


class RunPage(BaseModel):
    """A page of runs; ask with `next_cursor` for the next one, null at the end."""

    runs: list[RunSummary]
    next_cursor: str | None


class AttemptSummary(BaseModel):
    """One start of the job, and the steps it covers."""

    attempt: int
    started_at: datetime
    first_step: int | None
    last_step: int | None


class RunDetail(RunSummary):
    """A run in full."""

    config: dict[str, Any]
    notes: str
    attempts: list[AttemptSummary]
    metrics: list[str] = Field(description="Names that have data in any phase.")
    abilities: list[str]
    success_threshold: float | None
    failure_threshold: float | None
    exit_code: int | None
    summary: dict[str, Any]
    latest_eval: dict[str, float | None]
    clock_skew_seconds: float | None = Field(
        description="How far the client's clock is ahead of the service's."
    )
    lost: dict[str, dict[str, int]] = Field(
        description="What clients had to drop, by source and reason."
    )
    rlvitals_version: str | None
