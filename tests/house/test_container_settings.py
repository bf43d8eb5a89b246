"""The settings that docker-compose.yml relies on: secrets come as read-only files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from rlvitals_service import migrate
from rlvitals_service.auth import digest_of, ensure_bootstrap, find_token
from rlvitals_service.database import Database
from rlvitals_service.postgres import EmbeddedPostgres
from rlvitals_service.settings import Settings
from rlvitals_service.tables import token


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[str]:
    """Return the URL of a migrated database of its own."""
    with EmbeddedPostgres(tmp_path / "postgres") as server:
        database = Database(server.url)
        migrate.upgrade(database)
        database.dispose()
        yield server.url


def test_the_database_password_comes_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever characters the password has, it reaches the driver unchanged."""
    secret = "p@ss/w:rd%20?#"
    (tmp_path / "database_password").write_text(f"{secret}\n")
    monkeypatch.setenv("RLVITALS_DATABASE_URL", "postgresql+psycopg://rlvitals@db:5432/rlvitals")
    monkeypatch.setenv("RLVITALS_DATABASE_PASSWORD_FILE", str(tmp_path / "database_password"))
    database = Database.from_settings(Settings())
    assert (database.url.password, database.url.host) == (secret, "db")
    assert secret not in str(database.url)


def test_a_missing_password_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten secret stops the start with the setting's name."""
    monkeypatch.setenv("RLVITALS_DATABASE_PASSWORD_FILE", str(tmp_path / "missing"))
    with pytest.raises(ValidationError, match="database_password_file"):
        Settings()


def test_a_mounted_token_file_is_accepted_and_left_alone(migrated: str, tmp_path: Path) -> None:
    """A token that the operator mounts is an admin token after every start, and never rewritten."""
    file = tmp_path / "token"
    file.write_text("rlv_0123456789abcdef")
    before = (file.stat().st_ino, file.stat().st_mtime_ns)
    database = Database(migrated)
    for _ in range(2):
        ensure_bootstrap(database, Settings(database_url=migrated, bootstrap_token_file=file))
    with database.transaction() as connection:
        principal = find_token(connection, digest_of("rlv_0123456789abcdef"))
        assert len(connection.execute(select(token.c.id)).all()) == 1
    database.dispose()
    assert principal is not None
    assert principal.may("admin")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == before
