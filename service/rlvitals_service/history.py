"""GET /runs/{id}/history: metrics over steps, thinned for a chart or whole for a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast
from uuid import UUID

import msgspec
import numpy as np
from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel

from rlvitals.records import encode_scalar
from rlvitals_service import buckets
from rlvitals_service.attempts import read_order
from rlvitals_service.auth import Reader
from rlvitals_service.columns import Range, Steps
from rlvitals_service.database import Transaction, database_of
from rlvitals_service.errors import Forbidden, Invalid, NotFound, Unauthenticated, responses
from rlvitals_service.export import MEDIA_TYPES, Format, blocks, export
from rlvitals_service.lookup import FoundRun, find_run
from rlvitals_service.parts import canonical_name
from rlvitals_service.series_cache import SeriesCache

router = APIRouter(tags=["history"])

MOST_METRICS = 500
MOST_POINTS = 1_000_000
LAST_STEP = 2**53 - 1


class Means(BaseModel):
    """The mean of each bucket of a thinned metric, over the finite values of the range asked for.

    `step` is the middle one of the steps averaged, `count` how many there are: weighted by it, the
    means have the mean of all finite values.
    """

    step: list[int]
    value: list[float]
    count: list[int]
    attempt: list[int] | None = None


class Series(BaseModel):
    """One metric over steps; `value` is null exactly where the step is listed in `nonfinite`.

    A metric with more steps than `max_points` keeps the extremes of each bucket in `step` and
    `value`, and has the buckets' averages in `mean`; without `mean`, every step is there.
    """

    step: list[int]
    value: list[float | None]
    nonfinite: list[tuple[int, Literal["NaN", "Infinity", "-Infinity"]]]
    mean: Means | None = None
    attempt: list[int] | None = None
    nonfinite_attempt: list[int] | None = None


class History(BaseModel):
    """Answer a chart: one series a metric, empty for a metric without data (yet)."""

    run_id: UUID
    phase: Literal["train", "eval"]
    attempts: list[int]
    revision: int
    sampled: bool
    total_steps: int
    metrics: dict[str, Series]


class Question(BaseModel):
    """Say which part of a run's history is wanted, and in what form."""

    metrics: str | None = Query(
        None, description="Names, separated by commas; every metric with data when left out."
    )
    from_step: int | None = Query(None, ge=0, le=LAST_STEP)
    to_step: int | None = Query(None, ge=0, le=LAST_STEP)
    max_points: int = Query(
        2000,
        ge=buckets.LEAST_POINTS,
        le=MOST_POINTS,
        description="Per metric, JSON only: a file holds every row.",
    )
    attempt: str | None = Query(
        None,
        pattern=r"^(all|[1-9][0-9]{0,4})$",
        description="One attempt, or `all`; each step's newest attempt when left out.",
    )
    phase: Literal["train", "eval"] = "train"
    format: Literal["json", "csv", "parquet"] = "json"

    def range_of(self, run_id: UUID) -> Range:
        """Give the rows that are asked for; Invalid when the range is backwards."""
        if None not in (self.from_step, self.to_step) and self.from_step > self.to_step:  # type: ignore[operator]
            raise Invalid("from_step must not be greater than to_step.", field="from_step")
        attempt = None if self.attempt in {None, "all"} else int(str(self.attempt))
        return Range(run_id, self.phase, self.from_step, self.to_step, attempt)

    def names_of(self, found: FoundRun) -> list[str]:
        """Give the metrics that are asked for, each once, in the order asked."""
        if self.metrics is None:
            return found.metric_names(self.phase)
        names = list(dict.fromkeys(name.strip() for name in self.metrics.split(",")))
        if len(names) > MOST_METRICS:
            raise Invalid(f"Ask for at most {MOST_METRICS} metrics at a time.", field="metrics")
        try:
            for name in names:
                canonical_name(name)
        except ValueError as error:
            msg = f"metrics holds an empty or an overlong name ({error})."
            raise Invalid(msg, field="metrics") from None
        return names


@router.get(
    "/runs/{run_id}/history",
    summary="Read metrics over steps",
    response_class=Response,
    responses={
        **responses(Unauthenticated, Forbidden, NotFound, Invalid),
        200: {
            "model": History,
            "description": "The series, or a file with one row a step",
            "content": {media: {} for media in MEDIA_TYPES.values()},
        },
        304: {"description": "Nothing changed since the revision in If-None-Match"},
    },
)
def read_history(
    run_id: UUID,
    question: Annotated[Question, Query()],
    principal: Reader,
    connection: Transaction,
    request: Request,
) -> Response:
    """Give each metric's points; over `max_points`, each bucket's minimum, maximum and mean.

    First and last step, every spike and every non-finite value are always there, and the same
    question gets the same points. Draw trends and averages from `mean`: extremes lean to the middle
    between them. A narrower range shows the raw points again.
    """
    found = find_run(connection, principal, run_id)
    wanted, names = question.range_of(run_id), question.names_of(found)
    headers = {"ETag": f'W/"{found.revision}"', "Cache-Control": "private, no-cache"}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    if question.format != "json":
        return _file(request, wanted, names, question.format, question.attempt is None, headers)
    rows = _cache(request.app).read(connection, wanted, names, found.revision)
    if question.attempt == "all":
        rows = rows.by_attempt()
    else:
        # Read after the steps, so that every attempt of theirs is among them.
        rows = rows.newest(read_order(connection, run_id))
    body = _answer(found, question, rows)
    return Response(msgspec.json.encode(body), media_type="application/json", headers=headers)


def install(app: FastAPI) -> None:
    """Give the app the memory of the series it has read."""
    app.state.series = SeriesCache()


def _cache(app: FastAPI) -> SeriesCache:
    return cast("SeriesCache", app.state.series)


def _file(
    request: Request,
    wanted: Range,
    names: list[str],
    kind: Format,
    newest: bool,
    headers: dict[str, str],
) -> Response:
    file = export(database_of(request), wanted, names, kind, newest=newest)
    headers["Content-Disposition"] = f'attachment; filename="{wanted.run_id}-{wanted.phase}.{kind}"'
    return StreamingResponse(blocks(file), media_type=MEDIA_TYPES[kind], headers=headers)


def _answer(found: FoundRun, question: Question, rows: Steps) -> dict[str, Any]:
    every_attempt = question.attempt == "all"
    metrics, sampled = {}, False
    for name in rows.metrics:
        metrics[name], thinned = _series(rows, name, question.max_points, every_attempt)
        sampled = sampled or thinned
    return {
        "run_id": found.id,
        "phase": question.phase,
        "attempts": np.unique(rows.attempt).tolist(),
        "revision": found.revision,
        "sampled": sampled,
        "total_steps": len(np.unique(rows.step)),
        "metrics": metrics,
    }


def _series(
    rows: Steps, name: str, max_points: int, every_attempt: bool
) -> tuple[dict[str, Any], bool]:
    """Give one metric's points as JSON-able columns, and whether some were left out."""
    column = rows.metrics[name]
    step, value, attempt = rows.step, column.value, rows.attempt
    if not column.present.all():
        has = column.present
        step, value, attempt = step[has], value[has], attempt[has]
    chosen = buckets.select(step, value, max_points, attempt if every_attempt else None)
    lost = chosen.nonfinite
    series: dict[str, Any] = {
        "step": step[chosen.index].tolist(),
        "value": [v if np.isfinite(v) else None for v in value[chosen.index].tolist()],
        "nonfinite": [
            (s, encode_scalar(v))
            for s, v in zip(step[lost].tolist(), value[lost].tolist(), strict=True)
        ],
    }
    if chosen.means is not None:
        means = chosen.means
        series["mean"] = {
            "step": step[means.index].tolist(),
            "value": means.value.tolist(),
            "count": means.count.tolist(),
        }
    if every_attempt:
        series["attempt"] = attempt[chosen.index].tolist()
        series["nonfinite_attempt"] = attempt[lost].tolist()
        if chosen.means is not None:
            series["mean"]["attempt"] = attempt[chosen.means.index].tolist()
    return series, chosen.sampled
