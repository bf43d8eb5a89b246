"""Create the tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "attempt",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("client_started_at", sa.Double(), nullable=True),
        sa.Column("first_step", sa.BigInteger(), nullable=True),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "attempt", name=op.f("pk_attempt")),
    )
    op.create_index("uq_attempt_run_id_key", "attempt", ["run_id", "key"], unique=True)
    op.create_table(
        "directive",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column(
            "focal", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "avspo", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("expires_at_step", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("issued_by", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "issued_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("state", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("acknowledged_step", sa.BigInteger(), nullable=True),
        sa.Column("effective_step", sa.BigInteger(), nullable=True),
        sa.Column("refusal", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "version", name=op.f("pk_directive")),
    )
    op.create_table(
        "directive_ack",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint(
            "run_id", "version", "source", "status", name=op.f("pk_directive_ack")
        ),
    )
    op.create_table(
        "incident",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'open'"), nullable=False),
        sa.Column("onset_step", sa.BigInteger(), nullable=True),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("closed_step", sa.BigInteger(), nullable=True),
        sa.Column(
            "opened_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acknowledged_by", sa.Text(), nullable=True),
        sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acknowledged_note", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("title", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("text", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "causes",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'"),
            nullable=False,
        ),
        sa.Column(
            "evidence",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("advice", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("reference", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("changes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_incident")),
    )
    op.create_index("ix_incident_opened_at", "incident", ["opened_at"], unique=False)
    op.create_index(
        "uq_incident_open",
        "incident",
        ["run_id", "attempt", "kind"],
        unique=True,
        postgresql_where=sa.text("state = 'open' AND kind <> 'alert'"),
    )
    op.create_table(
        "incident_change",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("incident_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("text", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "incident_id", "number", name=op.f("pk_incident_change")),
    )
    op.create_table(
        "project",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "run_key",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "key", name=op.f("pk_run_key")),
    )
    op.create_table(
        "step",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("acr", sa.Double(), nullable=True),
        sa.Column("acr_all_fail", sa.Double(), nullable=True),
        sa.Column("acr_all_pass", sa.Double(), nullable=True),
        sa.Column("acr_constant", sa.Double(), nullable=True),
        sa.Column("acr_outcome", sa.Double(), nullable=True),
        sa.Column("acr_trained", sa.Double(), nullable=True),
        sa.Column("acr_effective", sa.Double(), nullable=True),
        sa.Column("acr_pooled", sa.Double(), nullable=True),
        sa.Column("acr_pooled_low", sa.Double(), nullable=True),
        sa.Column("acr_pooled_high", sa.Double(), nullable=True),
        sa.Column("shaping_only", sa.Double(), nullable=True),
        sa.Column("reward_mean", sa.Double(), nullable=True),
        sa.Column("reward_std", sa.Double(), nullable=True),
        sa.Column("reward_std_within", sa.Double(), nullable=True),
        sa.Column("success_rate", sa.Double(), nullable=True),
        sa.Column("pass_at_1", sa.Double(), nullable=True),
        sa.Column("pass_at_2", sa.Double(), nullable=True),
        sa.Column("pass_at_4", sa.Double(), nullable=True),
        sa.Column("pass_at_8", sa.Double(), nullable=True),
        sa.Column("pass_at_16", sa.Double(), nullable=True),
        sa.Column("pass_at_32", sa.Double(), nullable=True),
        sa.Column("pass_at_64", sa.Double(), nullable=True),
        sa.Column("tail_miss_risk", sa.Double(), nullable=True),
        sa.Column("grad_norm", sa.Double(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("kl", sa.Double(), nullable=True),
        sa.Column("entropy", sa.Double(), nullable=True),
        sa.Column("clip_fraction", sa.Double(), nullable=True),
        sa.Column("response_length_mean", sa.Double(), nullable=True),
        sa.Column("truncated_fraction", sa.Double(), nullable=True),
        sa.Column("learning_rate", sa.Double(), nullable=True),
        sa.Column("step_seconds", sa.Double(), nullable=True),
        sa.Column("groups", sa.Double(), nullable=True),
        sa.Column("rollouts", sa.Double(), nullable=True),
        sa.Column("singletons", sa.Double(), nullable=True),
        sa.Column("extra", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("tally", sa.LargeBinary(), nullable=True),
        sa.Column("tally_trained", sa.LargeBinary(), nullable=True),
        sa.Column("applied", sa.Integer(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("client_time", sa.Double(), nullable=True),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("run_id", "attempt", "phase", "step", name=op.f("pk_step")),
    )
    op.create_index("ix_step_run_id_revision", "step", ["run_id", "revision"], unique=False)
    op.create_table(
        "step_groups",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("codec", sa.SmallInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint(
            "run_id",
            "attempt",
            "phase",
            "step",
            "generation",
            "source",
            "stage",
            name=op.f("pk_step_groups"),
        ),
    )
    op.create_table(
        "step_part",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("scalars", sa.LargeBinary(), nullable=True),
        sa.Column("tally", sa.LargeBinary(), nullable=True),
        sa.Column("groups_hash", sa.LargeBinary(), nullable=True),
        sa.Column("identified", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("dropped", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("errored", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("filtered", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("advantage_groups", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("advantage_zero", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("carried", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("applied", sa.Integer(), nullable=True),
        sa.Column("client_time", sa.Double(), nullable=True),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint(
            "run_id",
            "attempt",
            "phase",
            "step",
            "generation",
            "source",
            "stage",
            name=op.f("pk_step_part"),
        ),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("group", sa.Text(), nullable=True),
        sa.Column(
            "tags", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column(
            "config",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("notes", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'running'"), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "last_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column(
            "summary",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("success_threshold", sa.Double(), nullable=True),
        sa.Column("failure_threshold", sa.Double(), nullable=True),
        sa.Column(
            "abilities", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("rlvitals_version", sa.Text(), nullable=True),
        sa.Column("last_attempt", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("revision", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("steps_revision", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "latest",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column(
            "latest_eval",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column(
            "sparkline",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("verdict", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("clock_skew_seconds", sa.Double(), nullable=True),
        sa.Column(
            "lost",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_run_project_id_project")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    op.create_index(
        "ix_run_project_id_last_seen_at", "run", ["project_id", "last_seen_at"], unique=False
    )
    op.create_index(
        "ix_run_running_last_seen_at",
        "run",
        ["last_seen_at"],
        unique=False,
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column(
            "scopes", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("project_id", sa.Uuid(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_token_project_id_project")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_token_hash")),
    )
    # Already compressed by the service: neither toast compression nor a second try.
    op.execute("ALTER TABLE step_groups ALTER COLUMN payload SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Undo it."""
    op.drop_table("token")
    op.drop_index(
        "ix_run_running_last_seen_at",
        table_name="run",
        postgresql_where=sa.text("state = 'running'"),
    )
    op.drop_index("ix_run_project_id_last_seen_at", table_name="run")
    op.drop_table("run")
    op.drop_table("step_part")
    op.drop_table("step_groups")
    op.drop_index("ix_step_run_id_revision", table_name="step")
    op.drop_table("step")
    op.drop_table("run_key")
    op.drop_table("project")
    op.drop_table("incident_change")
    op.drop_index(
        "uq_incident_open",
        table_name="incident",
        postgresql_where=sa.text("state = 'open' AND kind <> 'alert'"),
    )
    op.drop_index("ix_incident_opened_at", table_name="incident")
    op.drop_table("incident")
    op.drop_table("directive_ack")
    op.drop_table("directive")
    op.drop_index("uq_attempt_run_id_key", table_name="attempt")
    op.drop_table("attempt")
