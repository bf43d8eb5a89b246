"""Put the service together.

A resource module offers `router` (served under /api/v1), `root_router` (served at the root),
`install(app)`, called while the app is built, or `running(app)`, an async context manager entered
at start for as long as the service runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType

import anyio.to_thread
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from rlvitals_service import errors, migrate, wire_schema
from rlvitals_service.auth import TokenCache, ensure_bootstrap
from rlvitals_service.body_limit import BodyLimit
from rlvitals_service.database import Database
from rlvitals_service.settings import Settings

API = "/api/v1"
# In the order in which OpenAPI shows them.
RESOURCES = (
    "runs",
    "ingest",
    "history",
    "groups",
    "export",
    "incidents",
    "control",
    "stream",
    "catalog",
    "projects",
    "tokens",
    "prometheus",
    "health",
    "logs",
    "listen",
    "staleness",
)
DESCRIPTION = """Receive, judge and serve the vital signs of RLVR training runs.

Every call but `/healthz` and `/readyz` needs `Authorization: Bearer <token>`. Errors are
`{"error": {"code", "message", "field"}}`. Non-finite numbers travel as their names
(`"NaN"`, `"Infinity"`, `"-Infinity"`), so every answer is strict JSON.
"""


def _resources() -> list[ModuleType]:
    names = [f"rlvitals_service.{name}" for name in RESOURCES]
    return [import_module(name) for name in names if find_spec(name)]


def _start(database: Database, settings: Settings) -> None:
    if settings.migrate_on_start:
        migrate.upgrade(database)
    ensure_bootstrap(database, settings)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
    await run_in_threadpool(_start, app.state.database, settings)
    async with AsyncExitStack() as stack:
        for module in _resources():
            if hasattr(module, "running"):
                await stack.enter_async_context(module.running(app))
        yield
    await run_in_threadpool(app.state.database.dispose)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Build the application; it connects, migrates and starts its workers when it is served."""
    settings = settings or Settings()
    app = FastAPI(
        title="rlvitals", version=version("rlvitals"), description=DESCRIPTION, lifespan=_lifespan
    )
    app.state.settings = settings
    app.state.database = Database.from_settings(settings)
    app.state.tokens = TokenCache()
    app.add_middleware(BodyLimit, limit=settings.max_body_bytes)
    errors.install(app)
    for module in _resources():
        # Before any router, so that what a module installs is found first.
        if hasattr(module, "install"):
            module.install(app)
    for module in _resources():
        if hasattr(module, "router"):
            app.include_router(module.router, prefix=API)
        if hasattr(module, "root_router"):
            app.include_router(module.root_router)
    # Every resource is included by now; the document is built at its first use and kept.
    build = app.openapi
    app.openapi = lambda: wire_schema.add_to(build())  # type: ignore[method-assign]
    return app
