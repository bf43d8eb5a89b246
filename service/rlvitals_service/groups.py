"""GET /runs/{id}/groups: what each group of one step was worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import msgspec
import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel
from sqlalchemy import Connection, Row, desc, select, true

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally
from rlvitals_service.auth import Reader
from rlvitals_service.database import Transaction
from rlvitals_service.errors import Forbidden, Invalid, NotFound, Unauthenticated, responses
from rlvitals_service.lookup import find_run
from rlvitals_service.packing import unpack
from rlvitals_service.tables import attempt as attempts
from rlvitals_service.tables import step, step_groups

router = APIRouter(tags=["history"])

LAST_STEP = 2**53 - 1
LAST_ATTEMPT = 2**15 - 1
State = Literal["live", "all_fail", "all_pass", "constant", "shaping_only", "singleton", "dropped"]
# What a Tally of one group says of it, in the order in which to ask.
COUNTED: tuple[State, ...] = ("all_fail", "all_pass", "constant", "shaping_only")


class Group(BaseModel):
    """One group of rollouts; null where a number is undefined or was not given."""

    group_id: str | None
    prompt_id: str | None
    size: int
    n_correct: int | None
    success_rate: float | None
    reward_mean: float | None
    reward_std: float | None
    reward_min: float | None
    reward_max: float | None
    state: State
    source: str


class StepGroups(BaseModel):
    """The groups of one step, and the step's Tally."""

    step: int | None
    attempt: int | None
    phase: Literal["train", "eval"]
    stage: Literal["sampled", "trained"]
    revision: int
    groups: list[Group]
    tally: dict[str, Any] | None


@router.get(
    "/runs/{run_id}/groups",
    summary="Read the groups of a step",
    response_class=Response,
    responses={
        **responses(Unauthenticated, Forbidden, NotFound, Invalid),
        200: {"model": StepGroups, "description": "The groups, none where none were sent"},
    },
)
def read_groups(
    run_id: UUID,
    principal: Reader,
    connection: Transaction,
    step: Annotated[
        int | None, Query(ge=0, le=LAST_STEP, description="The newest with groups if left out.")
    ] = None,
    phase: Literal["train", "eval"] = "train",
    attempt: Annotated[
        int | None, Query(ge=1, le=LAST_ATTEMPT, description="The newest if left out.")
    ] = None,
    stage: Annotated[
        Literal["sampled", "trained"] | None,
        Query(description="Before or after dynamic sampling; sampled if there is any."),
    ] = None,
) -> Response:
    """List the groups of one step; the parts of a group that several ranks sent are pooled."""
    found = find_run(connection, principal, run_id)
    rows = _parts(connection, run_id, phase, step, attempt)
    stage = stage or _first_stage(rows)
    rows = [row for row in rows if row.stage == stage]
    at = (rows[0].step, rows[0].attempt) if rows else (step, attempt)
    answer = {
        "step": at[0],
        "attempt": at[1],
        "phase": phase,
        "stage": stage,
        "revision": found.revision,
        "groups": describe([(row.source, unpack(row.codec, row.payload)) for row in rows]),
        "tally": _tally(connection, run_id, phase, at, stage),
    }
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _parts(
    connection: Connection, run_id: UUID, phase: str, at_step: int | None, attempt: int | None
) -> Sequence[Row[Any]]:
    """Read the parts of the wanted, else the newest, step; of its newest attempt unless told."""
    table, known = step_groups.c, attempts.c
    here = [table.run_id == run_id, table.phase == phase]
    here += [] if at_step is None else [table.step == at_step]
    own = select(table.step).where(*here, table.attempt == known.attempt)
    last = own.order_by(desc("step")).limit(1).lateral("last")
    newest = select(known.attempt, last.c.step).join(last, true()).where(known.run_id == run_id)
    newest = newest if attempt is None else newest.where(known.attempt == attempt)
    newest = newest.order_by(known.started_at.desc(), known.attempt.desc()).limit(1)
    chosen = connection.execute(newest).first()
    if chosen is None:
        return []
    here += [table.step == chosen.step, table.attempt == chosen.attempt]
    order = (table.generation, table.source)
    return connection.execute(select(step_groups).where(*here).order_by(*order)).all()


def _first_stage(rows: Sequence[Row[Any]]) -> Literal["sampled", "trained"]:
    trained_only = bool(rows) and all(row.stage == "trained" for row in rows)
    return "trained" if trained_only else "sampled"


def _tally(
    connection: Connection, run_id: UUID, phase: str, at: tuple[int | None, int | None], stage: str
) -> dict[str, Any] | None:
    column = step.c.tally_trained if stage == "trained" else step.c.tally
    query = select(column).where(
        step.c.run_id == run_id,
        step.c.phase == phase,
        step.c.step == at[0],
        step.c.attempt == at[1],
    )
    packed = connection.execute(query).scalar_one_or_none()
    return None if packed is None else cast("dict[str, Any]", msgspec.msgpack.decode(packed))


def describe(parts: Sequence[tuple[str, Groups]]) -> list[dict[str, Any]]:
    """Give JSON-able groups from (source, groups) parts, pooled by group id."""
    if not parts:
        return []
    groups = Groups.concat([part for _, part in parts]).merged()
    columns = groups.to_columns()
    sizes, correct = columns["size"] or [], columns["n_correct"] or [None] * len(groups)
    described = {
        "group_id": [name or None for name in groups.group_id or [""] * len(groups)],
        "prompt_id": [name or None for name in groups.prompt_id or [""] * len(groups)],
        "size": sizes,
        "n_correct": correct,
        "success_rate": [
            None if c is None or n == 0 else c / n for c, n in zip(correct, sizes, strict=True)
        ],
        **{name: columns[name] for name in FLOATS},
        "state": states(groups),
        "source": _sources(parts),
    }
    names, rows = described.keys(), zip(*described.values(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


FLOATS = ("reward_mean", "reward_std", "reward_min", "reward_max")


def _sources(parts: Sequence[tuple[str, Groups]]) -> list[str]:
    """Name the sources of each pooled group, in the order in which `merged` keeps groups."""
    named: dict[object, dict[str, None]] = {}
    for number, (source, groups) in enumerate(parts):
        ids = groups.group_id or [""] * len(groups)
        for row, name in enumerate(ids):
            named.setdefault(name or (number, row), {})[source] = None
    return [", ".join(sources) for sources in named.values()]


def states(groups: Groups) -> list[State]:
    """Say of each group whether it teaches anything, and if not, why; as its Tally counts it."""
    unknown = np.full(len(groups), -1)
    correct = unknown if groups.n_correct is None else groups.n_correct
    failed = unknown if groups.n_failed is None else groups.n_failed
    spread = np.nan_to_num(groups.reward_max - groups.reward_min)
    columns = (groups.size, correct, failed, spread)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [_state(n, None if c < 0 else c, None if f < 0 else f, apart) for n, c, f, apart in rows]


@lru_cache(maxsize=4096)
def _state(size: int, n_correct: int | None, n_failed: int | None, spread: float) -> State:
    """Ask the Tally of one such group: the rules of collapse stand there and nowhere else."""
    if size == 0:
        return "dropped"
    if size == 1:
        return "singleton"
    tally = Tally.from_groups(
        Groups(
            np.array([size]),
            reward_mean=np.array([0.0]),
            reward_std=np.array([0.0]),
            reward_min=np.array([0.0]),
            reward_max=np.array([spread if math.isfinite(spread) else 1.0]),
            n_correct=None if n_correct is None else np.array([n_correct]),
            n_failed=None if n_failed is None else np.array([n_failed]),
        )
    )
    return next((state for state in COUNTED if getattr(tally, state)), "live")
