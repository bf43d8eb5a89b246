"""What an operator may set, read from the environment (prefix RLVITALS_)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import Field, FilePath, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MIB = 1024 * 1024


class Settings(BaseSettings):
    """Hold every knob of the service; one instance a process, never changed after start."""

    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    # database
    database_url: str = ""
    # Goes into the URL at start, so that no process list or container inspection shows it.
    database_password_file: FilePath | None = None
    database_pool_size: int = Field(default=10, ge=1, le=200)
    database_overflow: int = Field(default=10, ge=0, le=200)
    migrate_on_start: bool = True

    # web
    host: str = "127.0.0.1"
    port: int = Field(default=8400, ge=0, le=65535)
    dashboard_url: str | None = None
    metrics_public: bool = False
    log_level: str = "info"
    threads: int = Field(default=16, ge=2, le=200)

    # who may come in: a token made at the first start, kept in this file (0600)
    bootstrap_token_file: Path | None = None
    bootstrap_token: SecretStr | None = None

    # ingest
    max_body_bytes: int = Field(default=16 * MIB, ge=1024)
    max_decompressed_bytes: int = Field(default=64 * MIB, ge=1024)
    max_batch_records: int = Field(default=10_000, ge=1)

    # a run without data or heartbeat for this long is stale
    stale_after: timedelta = timedelta(minutes=5)
    stale_check_every: timedelta = timedelta(seconds=10)

    @field_validator("database_url")
    @classmethod
    def name_the_driver(cls, url: str) -> str:
        """Pin psycopg 3, whatever spelling of PostgreSQL the URL was given in."""
        scheme, separator, rest = url.partition("://")
        if scheme in {"postgres", "postgresql"}:
            return f"postgresql+psycopg{separator}{rest}"
        return url
