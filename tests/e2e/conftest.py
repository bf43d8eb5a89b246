"""Real parts for end-to-end tests: a service process on embedded PostgreSQL, and clients of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.stack import Stack

import rlvitals


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Give a running service, the same for all tests."""
    with Stack(tmp_path_factory.mktemp("e2e")) as running:
        yield running


@pytest.fixture
def api(stack: Stack) -> rlvitals.Api:
    """Give a reader that may do everything."""
    return rlvitals.Api(stack.url, stack.token)


@pytest.fixture
def new_run(stack: Stack, tmp_path: Path) -> Iterator[Callable[..., rlvitals.Run]]:
    """Give a maker of runs that talk to the service and are finished at the end."""
    runs: list[rlvitals.Run] = []

    def make(**options: object) -> rlvitals.Run:
        given = {"project": "e2e", "id": uuid.uuid4().hex, "dir": str(tmp_path)} | options
        runs.append(rlvitals.init(url=stack.url, token=stack.token, **given))
        return runs[-1]

    yield make
    for run in runs:
        run.finish()
