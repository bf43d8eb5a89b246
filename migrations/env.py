"""Let Alembic work on the connection that the service hands over, or on RLVITALS_DATABASE_URL."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from rlvitals_service.database import Database
from rlvitals_service.settings import Settings
from rlvitals_service.tables import metadata


def run(connection: Connection) -> None:
    """Run the wanted revisions in one transaction."""
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()


handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    run(handed_over)
else:
    with Database.from_settings(Settings()).transaction() as own:
        run(own)
