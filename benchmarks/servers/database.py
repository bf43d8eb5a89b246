"""The PostgreSQL that we and MLflow write to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import sqlalchemy

from rlvitals_service.postgres import EmbeddedPostgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def database(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the embedded PostgreSQL; give its URL and the process id of its first process."""
    folder.chmod(0o755)  # as root, its account must reach its data
    with EmbeddedPostgres(folder / "postgres") as postgres:
        stamp = folder / "postgres" / "cluster" / "postmaster.pid"
        yield postgres.url, int(stamp.read_text(encoding="ascii").split()[0])


def second_database(url: str, name: str) -> str:
    """Create a database beside ours on the same cluster; give its URL for psycopg2."""
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"create database {name}"))
    beside = engine.url.set(drivername="postgresql+psycopg2", database=name)
    engine.dispose()
    return beside.render_as_string(hide_password=False)
