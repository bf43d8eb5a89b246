"""Serve the service: ``python -m rlvitals_service``."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from types import FrameType

import uvicorn
from pydantic import ValidationError
from sqlalchemy.exc import OperationalError

from rlvitals_service import migrate
from rlvitals_service.app import create_app
from rlvitals_service.database import Database
from rlvitals_service.logs import configure
from rlvitals_service.settings import Settings

# A trainer posts every few seconds: keep its connection for the next time.
KEEP_ALIVE_SECONDS = 75
# What a stop waits for answers that are under way; streams and long polls end at once.
STOP_SECONDS = 5


class Server(uvicorn.Server):
    """A server whose streams and long polls do not hold up its end."""

    loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Remember the loop on which the waiting readers are."""
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Send the waiting readers home, then stop."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.config.app.state.hub.close)  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def main() -> int:
    """Serve until SIGINT or SIGTERM; 0 after a clean stop."""
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        return _refuse(f"RLVITALS_{name}: {first['msg']}")
    if not settings.database_url:
        return _refuse(
            "Set RLVITALS_DATABASE_URL (postgresql+psycopg://user:password@host/database), "
            "or run `rlvitals up`, which brings a database of its own."
        )
    configure(settings.log_level)
    try:
        app = create_app(settings)
    except ValueError as error:
        return _refuse(str(error))
    trouble = _trouble(app.state.database, settings)
    if trouble:
        return _refuse(trouble)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = Server(config)
    return _serve(server)


def _serve(server: Server) -> int:
    """Run the server; it repeats the signal that stopped it, which is no failure."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server.run()
    return 0 if server.started else 1


def _trouble(database: Database, settings: Settings) -> str | None:
    """Say why the database cannot be used; None when it can."""
    try:
        with database.transaction() as connection:
            return None if settings.migrate_on_start else migrate.behind(connection)
    except OperationalError as error:
        why = str(error.orig).strip().splitlines()[0]
        return f"The database does not answer: {why}"


def _refuse(message: str) -> int:
    sys.stderr.write(f"rlvitals service: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
