"""The one engine, and the one place that commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

import psycopg
from fastapi import Depends, Request
from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import make_url

if TYPE_CHECKING:
    from rlvitals_service.settings import Settings

# NOTIFY channel; the payload is {"run_id", "revision", "kind"} and never the data itself.
CHANNEL = "rlvitals"


class Database:
    """Own the engine; hand out transactions and bare driver connections."""

    def __init__(self, url: str, *, pool_size: int = 10, overflow: int = 10) -> None:
        """Prepare the pool; nothing connects yet. The URL must name the psycopg driver."""
        self.url = make_url(url)
        if self.url.drivername != "postgresql+psycopg":
            msg = (
                f"RLVITALS_DATABASE_URL must begin with postgresql+psycopg://, not "
                f"{self.url.drivername}://"
            )
            raise ValueError(msg)
        self.engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=overflow,
            pool_pre_ping=False,
            pool_timeout=10,
            connect_args={"application_name": "rlvitals", "connect_timeout": 10},
        )

    @classmethod
    def from_settings(cls, settings: Settings) -> Database:
        """Build the database that the settings name."""
        url = make_url(settings.database_url)
        if settings.database_password_file is not None:
            password = settings.database_password_file.read_text(encoding="utf-8").strip()
            url = url.set(password=password)
        return cls(
            url.render_as_string(hide_password=False),
            pool_size=settings.database_pool_size,
            overflow=settings.database_overflow,
        )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commit at the end of the block, roll back if it raises."""
        with self.engine.begin() as connection:
            yield connection

    def driver_parameters(self) -> dict[str, Any]:
        """Give the parameters that psycopg itself takes (LISTEN, COPY tools).

        Never as one string: SQLAlchemy and libpq escape a password differently.
        """
        _, parameters = self.engine.dialect.create_connect_args(self.url)
        return dict(parameters)

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


def driver(connection: Connection) -> psycopg.Connection[tuple[object, ...]]:
    """Give the psycopg connection under a SQLAlchemy one, for COPY and pipelines."""
    return cast("psycopg.Connection[tuple[object, ...]]", connection.connection.driver_connection)


def database_of(request: Request) -> Database:
    """Find the database of the app that serves this request."""
    return cast("Database", request.app.state.database)


def _transaction(request: Request) -> Iterator[Connection]:
    with database_of(request).transaction() as connection:
        yield connection


# scope="function": commit before the answer leaves, so that a client reads its own writes.
Transaction = Annotated[Connection, Depends(_transaction, scope="function")]
