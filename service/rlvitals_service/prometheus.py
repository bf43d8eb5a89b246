"""GET /metrics: this service and the runs it watches, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily
from sqlalchemy import Connection, Row, Select, func, select

from rlvitals.records import decode_scalar
from rlvitals_service.auth import Credentials, Principal, authenticate
from rlvitals_service.database import Transaction
from rlvitals_service.errors import Forbidden, Unauthenticated, responses
from rlvitals_service.meters import meters_of
from rlvitals_service.tables import incident, project, run

root_router = APIRouter(tags=["health"])

MOST_RUNS = 1000  # the latest seen; a series a run is for alerts, not for an archive
RUN_METRICS = (
    *("acr", "acr_all_fail", "acr_all_pass", "acr_effective", "acr_pooled", "success_rate"),
    *("reward_mean", "pass_at_1", "tail_miss_risk", "grad_norm", "loss", "kl", "entropy"),
)
RUN_LABELS = ("run_id", "run", "project")


async def _scraper(request: Request, credentials: Credentials) -> UUID | None:
    """Let anybody in where the operator said so, else readers; give the project they see."""
    if request.app.state.settings.metrics_public:
        return None
    principal: Principal = await authenticate(request, credentials)
    if not principal.may("read"):
        raise Forbidden(f"The token '{principal.name}' lacks the scope 'read'.")
    return principal.project_id


@root_router.get(
    "/metrics",
    summary="Scrape the service and its runs",
    response_class=Response,
    responses={
        **responses(Unauthenticated, Forbidden),
        200: {"description": "Prometheus text", "content": {CONTENT_TYPE_LATEST: {}}},
    },
)
def scrape(
    request: Request, connection: Transaction, project_id: Annotated[UUID | None, Depends(_scraper)]
) -> Response:
    """Give request counters, runs by state, open incidents, and the vitals of live runs."""
    families = [
        _runs_by_state(connection, project_id),
        _open_incidents(connection, project_id),
        *_live_runs(connection, project_id),
    ]
    text = generate_latest(meters_of(request.app).registry)
    text += generate_latest(_Collected(families))
    return Response(text, media_type=CONTENT_TYPE_LATEST)


class _Collected:
    """Look like a registry to `generate_latest`, for families made at this scrape."""

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._families


def _of_project(query: Select[Any], project_id: UUID | None) -> Select[Any]:
    return query if project_id is None else query.where(run.c.project_id == project_id)


def _runs_by_state(connection: Connection, project_id: UUID | None) -> GaugeMetricFamily:
    family = GaugeMetricFamily("rlvitals_runs", "Runs, by state.", labels=("state",))
    query = _of_project(select(run.c.state, func.count()).group_by(run.c.state), project_id)
    for state, count in connection.execute(query):
        family.add_metric((state,), count)
    return family


def _open_incidents(connection: Connection, project_id: UUID | None) -> GaugeMetricFamily:
    labels = ("kind", "severity")
    family = GaugeMetricFamily("rlvitals_open_incidents", "Open incidents.", labels=labels)
    query = (
        select(incident.c.kind, incident.c.severity, func.count())
        .join(run, run.c.id == incident.c.run_id)
        .where(incident.c.state == "open")
        .group_by(incident.c.kind, incident.c.severity)
    )
    for kind, severity, count in connection.execute(_of_project(query, project_id)):
        family.add_metric((kind, severity), count)
    return family


def _live_runs(connection: Connection, project_id: UUID | None) -> list[GaugeMetricFamily]:
    """Give step, last sign of life and the main vitals of each running or stale run."""
    labels = (*RUN_LABELS, "metric")
    step = GaugeMetricFamily("rlvitals_run_step", "Newest step of a live run.", labels=RUN_LABELS)
    seen = GaugeMetricFamily(
        "rlvitals_run_last_seen_timestamp_seconds", "When a live run last spoke.", labels=RUN_LABELS
    )
    vital = GaugeMetricFamily("rlvitals_run_metric", "Newest vitals of a live run.", labels=labels)
    for row in _live_rows(connection, project_id):
        known = (str(row.id), row.name, row.project)
        seen.add_metric(known, row.last_seen_at.timestamp())
        if row.last_step is not None:
            step.add_metric(known, row.last_step)
        for name in RUN_METRICS:
            value = decode_scalar(row.latest.get(name))
            if value is not None:
                vital.add_metric((*known, name), value)
    return [step, seen, vital]


def _live_rows(connection: Connection, project_id: UUID | None) -> Iterable[Row[Any]]:
    query = (
        select(
            run.c.id,
            run.c.name,
            project.c.name.label("project"),
            run.c.last_step,
            run.c.last_seen_at,
            run.c.latest,
        )
        .join(project, project.c.id == run.c.project_id)
        .where(run.c.state.in_(("running", "stale")), run.c.archived.is_(False))
        .order_by(run.c.last_seen_at.desc())
        .limit(MOST_RUNS)
    )
    return connection.execute(_of_project(query, project_id))
