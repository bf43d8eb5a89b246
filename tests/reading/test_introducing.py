"""The real service takes whatever a run may say about itself."""

from __future__ import annotations

import pytest
from tests.serving import Service

import rlvitals


def test_a_long_config_and_summary_arrive(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """All of a trainer's arguments, far over what fits in one packet, are stored as given."""
    config = {f"argument_{i}": "x" * 100 for i in range(300)}
    token = service.tokens["admin"]
    run = rlvitals.init("introduced", url=service.url, token=token, config=config)
    run.summary.update(config)
    run.finish()
    assert run.id, caplog.text
    stored = rlvitals.Api(service.url, token).run(run.id)
    assert stored["config"] == config
    assert stored["summary"] == config
    assert stored["state"] == "finished"


def test_names_beyond_the_limits_are_taken(service: Service) -> None:
    """The longest names, tags and notes that the client lets through are stored."""
    long, token = "x" * 1000, service.tokens["admin"]
    names = {"group": long, "notes": long * 30, "tags": [f"{i}{long}" for i in range(60)]}
    run = rlvitals.init(long, long, id=long, url=service.url, token=token, **names)
    run.finish()
    assert rlvitals.Api(service.url, token).run(str(run.id))["state"] == "finished"
