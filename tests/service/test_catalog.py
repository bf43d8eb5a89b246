"""The catalog is the same for programs far away as for the code that charts."""

from __future__ import annotations

from dataclasses import asdict

from tests.serving import Service

from rlvitals.metrics.catalog import CATALOG


def test_every_metric_is_described(service: Service) -> None:
    """Each known metric comes with label, unit, direction, definition and reference."""
    answer = service.api("read").get("/catalog")
    assert answer.status == 200
    assert answer.json["metrics"] == {key: asdict(metric) for key, metric in CATALOG.items()}


def test_the_catalog_needs_a_reader(service: Service) -> None:
    """Like every other reading, it needs a token."""
    assert service.api(None).get("/catalog").status == 401
