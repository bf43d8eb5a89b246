"""GET /catalog: what each metric is, said once for charts, people and programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from rlvitals.metrics.catalog import CATALOG
from rlvitals_service.auth import Reader
from rlvitals_service.errors import Forbidden, Unauthenticated, responses

router = APIRouter(tags=["catalog"])


class MetricAnswer(BaseModel):
    """Describe one metric; `better` is null where neither direction is good in itself."""

    key: str
    label: str
    unit: str
    low: float | None
    high: float | None
    better: Literal["up", "down"] | None
    definition: str
    reference: str
    group: str
    color: str | None
    column: bool


class Catalog(BaseModel):
    """Describe every metric the service knows; runs may hold others under names of their own."""

    metrics: dict[str, MetricAnswer]


@router.get(
    "/catalog",
    summary="Describe the metrics",
    responses=responses(Unauthenticated, Forbidden),
)
async def read_catalog(_: Reader) -> Catalog:
    """Describe label, unit, range, good direction, definition and reference of each metric."""
    return Catalog.model_validate({"metrics": {k: asdict(m) for k, m in CATALOG.items()}})
