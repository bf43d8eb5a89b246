"""The schema: SQLAlchemy Core tables, no ORM.

`run_id` leads every key of step data, and no foreign key or serial id joins step tables, so that
partitions or a sharding extension can take the same schema.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from rlvitals.metrics import COLUMNS

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# The catalog's metrics that are columns of `step`; every other name lives in `extra`. A new one in
# the catalog needs a migration: the test of the migrations finds it missing.
STEP_METRICS: tuple[str, ...] = COLUMNS


def _moment(name: str, *, nullable: bool = True, now: bool = False) -> Column[object]:
    default = func.now() if now else None
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=default)


def _words(name: str) -> Column[list[str]]:
    return Column(name, ARRAY(Text), nullable=False, server_default=text("'{}'"))


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default=text("''"))


def _json(name: str, empty: str = "{}") -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text(f"'{empty}'"))


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


project = Table(
    "project",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _moment("created_at", nullable=False, now=True),
)

token = Table(
    "token",
    metadata,
    Column("id", Uuid, primary_key=True),
    _text("name"),
    # sha256 of a secret of 256 random bits: nothing to guess, so no slow hash is needed.
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("hint", Text, nullable=False),
    _words("scopes"),
    Column("project_id", Uuid, ForeignKey("project.id"), nullable=True),
    _moment("created_at", nullable=False, now=True),
    _moment("last_used_at"),
    _moment("revoked_at"),
)

run = Table(
    "run",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, ForeignKey("project.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("group", Text),
    _words("tags"),
    _json("config"),
    _text("notes"),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    # running | stale | finished | failed | crashed
    Column("state", Text, nullable=False, server_default=text("'running'")),
    _moment("started_at", nullable=False, now=True),
    _moment("last_seen_at", nullable=False, now=True),
    _moment("finished_at"),
    Column("exit_code", Integer),
    _json("summary"),
    Column("success_threshold", Double),
    Column("failure_threshold", Double),
    _words("abilities"),
    Column("rlvitals_version", Text),
    Column("last_attempt", SmallInteger, nullable=False, server_default=text("1")),
    Column("last_step", BigInteger),
    # Grows by one with every change a reader may want to see.
    _count("revision"),
    # The revision of the last ingest: a judge kept in memory is current if it saw that one.
    _count("steps_revision"),
    # {metric: number, or the name of a non-finite one}: the newest value of each metric.
    _json("latest"),
    _json("latest_eval"),
    # {"acr": [at most 60 numbers or null]}
    _json("sparkline"),
    _text("verdict"),
    # Client clock minus server clock at the last batch.
    Column("clock_skew_seconds", Double),
    # {source: {reason: count}}: what clients had to drop.
    _json("lost"),
    Index("ix_run_project_id_last_seen_at", "project_id", "last_seen_at"),
    # The staleness worker asks only for these.
    Index(
        "ix_run_running_last_seen_at",
        "last_seen_at",
        postgresql_where=text("state = 'running'"),
    ),
)

# A unique (project, key) on `run` itself could not be distributed by run id.
run_key = Table(
    "run_key",
    metadata,
    Column("project_id", Uuid, nullable=False),
    Column("key", Text, nullable=False),
    Column("run_id", Uuid, nullable=False),
    PrimaryKeyConstraint("project_id", "key"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("key", Text, nullable=False),
    _moment("started_at", nullable=False, now=True),
    Column("client_started_at", Double),
    Column("first_step", BigInteger),
    Column("last_step", BigInteger),
    # {source: how it ended, null before}
    _json("sources"),
    PrimaryKeyConstraint("run_id", "attempt"),
    Index("uq_attempt_run_id_key", "run_id", "key", unique=True),
)


def _step_key() -> list[Column[object]]:
    return [
        Column("run_id", Uuid, nullable=False),
        Column("attempt", SmallInteger, nullable=False),
        Column("phase", Text, nullable=False),
        Column("step", BigInteger, nullable=False),
    ]


def _part_key() -> list[Column[object]]:
    return [
        *_step_key(),
        Column("generation", Integer, nullable=False),
        Column("source", Text, nullable=False),
        Column("stage", Text, nullable=False),
    ]


PART_KEY = ("run_id", "attempt", "phase", "step", "generation", "source", "stage")
STEP_KEY = PART_KEY[:4]

# As sent: one row a record.
step_part = Table(
    "step_part",
    metadata,
    *_part_key(),
    # msgpack {name: float}, names and non-finite values as sent
    Column("scalars", LargeBinary),
    # msgpack of Tally.to_dict(), from the groups or the counts of the record
    Column("tally", LargeBinary),
    # blake2b of the packed groups: tells a resend from a replacement without reading them
    Column("groups_hash", LargeBinary),
    # the groups have ids, so that another part may hold rows of the same group
    Column("identified", Boolean, nullable=False, server_default=text("false")),
    _count("dropped"),
    _count("errored"),
    _count("filtered"),
    _count("advantage_groups"),
    _count("advantage_zero"),
    Column("carried", Boolean, nullable=False, server_default=text("false")),
    Column("applied", Integer),
    Column("client_time", Double),
    _moment("received_at", nullable=False, now=True),
    PrimaryKeyConstraint(*PART_KEY),
)

step_groups = Table(
    "step_groups",
    metadata,
    *_part_key(),
    Column("codec", SmallInteger, nullable=False),
    # Compressed by us, so PostgreSQL must not try again: STORAGE EXTERNAL (set by the migration).
    Column("payload", LargeBinary, nullable=False),
    PrimaryKeyConstraint(*PART_KEY),
)

# Merged and derived: what charts read.
step = Table(
    "step",
    metadata,
    *_step_key(),
    *(Column(name, Double) for name in STEP_METRICS),
    # other metrics; a non-finite number is its name ("NaN", "Infinity", "-Infinity")
    Column("extra", JSONB),
    # msgpack of Tally.to_dict(): everything sampled, and what was trained on
    Column("tally", LargeBinary),
    Column("tally_trained", LargeBinary),
    Column("applied", Integer),
    Column("revision", BigInteger, nullable=False),
    Column("client_time", Double),
    _moment("received_at", nullable=False, now=True),
    PrimaryKeyConstraint(*STEP_KEY),
    # "What is new since revision r", for streams.
    Index("ix_step_run_id_revision", "run_id", "revision"),
)

incident = Table(
    "incident",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("id", Uuid, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'open'")),
    Column("onset_step", BigInteger),
    Column("last_step", BigInteger),
    Column("closed_step", BigInteger),
    _moment("opened_at", nullable=False, now=True),
    _moment("closed_at"),
    Column("acknowledged_by", Text),
    _moment("acknowledged_at"),
    _text("acknowledged_note"),
    _text("title"),
    _text("text"),
    _json("causes", "[]"),
    _json("evidence"),
    _text("advice"),
    _text("reference"),
    # Grows with every change; an update that names an old one changes nothing.
    _count("changes"),
    _count("revision"),
    PrimaryKeyConstraint("run_id", "id"),
    # One open incident of a kind and attempt; alerts are whatever user code says.
    Index(
        "uq_incident_open",
        "run_id",
        "attempt",
        "kind",
        unique=True,
        postgresql_where=text("state = 'open' AND kind <> 'alert'"),
    ),
    Index("ix_incident_opened_at", "opened_at"),
)

incident_change = Table(
    "incident_change",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("incident_id", Uuid, nullable=False),
    Column("number", Integer, nullable=False),
    Column("action", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("step", BigInteger),
    _moment("at", nullable=False, now=True),
    _text("text"),
    PrimaryKeyConstraint("run_id", "incident_id", "number"),
)

directive = Table(
    "directive",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("mode", Text, nullable=False),
    Column("focal", JSONB(none_as_null=True)),
    Column("avspo", JSONB(none_as_null=True)),
    Column("expires_at_step", BigInteger),
    _text("reason"),
    _text("issued_by"),
    _moment("issued_at", nullable=False, now=True),
    # pending | acknowledged | effective | refused | expired | superseded | withdrawn
    Column("state", Text, nullable=False, server_default=text("'pending'")),
    Column("acknowledged_step", BigInteger),
    Column("effective_step", BigInteger),
    Column("refusal", Text),
    PrimaryKeyConstraint("run_id", "version"),
)

directive_ack = Table(
    "directive_ack",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("step", BigInteger, nullable=False),
    _text("reason"),
    _moment("at", nullable=False, now=True),
    PrimaryKeyConstraint("run_id", "version", "source", "status"),
)
