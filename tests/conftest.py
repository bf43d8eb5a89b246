"""What tests of any part may ask for: a real PostgreSQL, a real service over it, real HTTP."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.serving import (
    DEADLINE_SECONDS,
    Api,
    Service,
    administer,
    fresh_database,
    opened,
    serving,
    url_of,
)

if TYPE_CHECKING:
    from rlvitals_service.database import Database

TEMPLATE = "rlvitals_template"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Run a PostgreSQL of this session's own; give the URL of its first database."""
    from rlvitals_service.postgres import EmbeddedPostgres

    folder = Path(tempfile.mkdtemp(prefix="rlv-"))
    try:
        with EmbeddedPostgres(folder) as server:
            yield server.url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated(postgres: str) -> str:
    """Migrate one database that all others are copied from; give its name."""
    from rlvitals_service.migrate import upgrade

    administer(postgres, f"CREATE DATABASE {TEMPLATE}")
    with opened(url_of(postgres, TEMPLATE)) as database:
        upgrade(database)
    return TEMPLATE


@pytest.fixture
def empty_url(postgres: str) -> Iterator[str]:
    """Make a database without tables; give its URL."""
    with fresh_database(postgres, "template0") as url:
        yield url


@pytest.fixture(scope="module")
def database_url(postgres: str, migrated: str) -> Iterator[str]:
    """Make a migrated database for one test module; give its URL."""
    with fresh_database(postgres, migrated) as url:
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Open the test module's database."""
    with opened(database_url) as found:
        yield found


@pytest.fixture(scope="module")
def service(database_url: str) -> Iterator[Service]:
    """Serve the test module's database over real HTTP."""
    with serving(database_url) as running:
        yield running


@pytest.fixture
def api(service: Service) -> Api:
    """Speak to the service as an administrator, who may do everything."""
    return service.api("admin")


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Ask again and again until the answer is true; fail at a deadline."""

    def ask(question: Callable[[], Any], seconds: float = DEADLINE_SECONDS) -> Any:
        end = time.monotonic() + seconds
        while not (found := question()):
            assert time.monotonic() < end, "it never came true"
            time.sleep(0.02)
        return found

    return ask
