"""Bring the schema up to date, safely when several processes start at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from rlvitals_service.database import Database

# Any number that nothing else in the database locks.
LOCK = 7_264_851_000_110


def scripts() -> Path:
    """Find the migrations: inside the wheel, else at the top of the repository."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "migrations", here.parents[2] / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    msg = f"The migrations are missing beside {here.parent}: install rlvitals again."
    raise FileNotFoundError(msg)


def configuration(connection: Connection | None = None) -> Config:
    """Build Alembic's configuration without a file."""
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def upgrade(database: Database, revision: str = "head") -> None:
    """Apply the missing revisions in one transaction; a second caller waits, then finds none."""
    with database.transaction() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        command.upgrade(configuration(connection), revision)


def current(connection: Connection) -> str | None:
    """Say which revision the database is at; None when it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def behind(connection: Connection) -> str | None:
    """Say how the database differs from what this version needs; None when it does not."""
    found, wanted = current(connection), head()
    if found == wanted:
        return None
    return f"The database is at revision {found}, not {wanted}: run `rlvitals migrate`."


def head() -> str | None:
    """Say which revision this version of the service needs."""
    return ScriptDirectory.from_config(configuration()).get_current_head()
