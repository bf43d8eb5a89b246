"""A real service over a real PostgreSQL, and real HTTP to speak to it, for tests of any part.

The service's packages are imported inside the functions, so that tests of the client alone run
where they are not installed.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import urllib3

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rlvitals_service.database import Database
    from rlvitals_service.settings import Settings

DEADLINE_SECONDS = 30.0
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """Hold what came back over HTTP."""

    status: int
    body: bytes
    headers: Any

    @property
    def json(self) -> Any:
        """Decode the body as strict JSON: a bare NaN is an error."""
        return json.loads(self.body, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@dataclass
class Api:
    """Speak HTTP to a service with one token."""

    url: str
    token: str | None
    pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(maxsize=16))

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        query: dict[str, Any] | None = None,
    ) -> Answer:
        """Send one request; a body is sent as JSON, `raw` as it is."""
        sent = {"Content-Type": "application/json"} if raw is None and body is not None else {}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        data = raw if raw is not None or body is None else json.dumps(body).encode()
        url = self.url + path
        if query:
            url += "?" + urlencode(query, doseq=True)
        response = self.pool.request(
            method, url, body=data, headers={**sent, **(headers or {})}, retries=False, timeout=60
        )
        return Answer(response.status, response.data, response.headers)

    def get(self, path: str, **query: Any) -> Answer:
        """GET below /api/v1."""
        return self.call("GET", f"/api/v1{path}", query=query)

    def post(self, path: str, body: Any = None, **rest: Any) -> Answer:
        """POST below /api/v1."""
        return self.call("POST", f"/api/v1{path}", {} if body is None else body, **rest)

    def put(self, path: str, body: Any) -> Answer:
        """PUT below /api/v1."""
        return self.call("PUT", f"/api/v1{path}", body)

    def patch(self, path: str, body: Any) -> Answer:
        """PATCH below /api/v1."""
        return self.call("PATCH", f"/api/v1{path}", body)

    def delete(self, path: str) -> Answer:
        """DELETE below /api/v1."""
        return self.call("DELETE", f"/api/v1{path}")

    def new_run(self, project: str = "math", **wanted: Any) -> str:
        """Introduce a run nobody knows yet; give its id."""
        key = f"run-{next(_numbers)}-{time.time_ns()}"
        answer = self.post("/runs", {"project": project, "key": key, **wanted})
        assert answer.status == 201, answer.body
        return str(answer.json["id"])

    def send(self, run_id: str, *records: dict[str, Any], **news: Any) -> Any:
        """Post step records; give the answer, which must be good."""
        answer = self.post(f"/runs/{run_id}/steps", {"records": list(records), **news})
        assert answer.status == 200, answer.body
        return answer.json


@dataclass(frozen=True)
class Service:
    """A running service: where it is, its tokens by name, the app, and the database below it."""

    url: str
    tokens: dict[str, str]
    settings: Settings
    database: Database
    app: FastAPI

    def api(self, token: str | None = "admin") -> Api:
        """Give a client with the named token (admin, ingest, read, control), or with none."""
        return Api(self.url, None if token is None else self.tokens[token])

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Ask the database itself."""
        with self.database.transaction() as connection:
            found = connection.exec_driver_sql(query, parameters)
            return [dict(row) for row in found.mappings()]


def url_of(postgres: str, name: str) -> str:
    """Give the URL of another database of the same server."""
    from sqlalchemy.engine import make_url

    return make_url(postgres).set(database=name).render_as_string(hide_password=False)


@contextmanager
def fresh_database(postgres: str, template: str) -> Iterator[str]:
    """Copy a database, and drop the copy afterwards."""
    name = f"test_{next(_numbers)}"
    administer(postgres, f"CREATE DATABASE {name} TEMPLATE {template}")
    # A lost commit is no loss here; the wait for the disk is.
    administer(postgres, f"ALTER DATABASE {name} SET synchronous_commit = off")
    try:
        yield url_of(postgres, name)
    finally:
        administer(postgres, f"DROP DATABASE {name} WITH (FORCE)")


def administer(postgres: str, statement: str) -> None:
    """Run one statement outside any transaction."""
    from sqlalchemy import create_engine

    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """Open a database for as long as the block runs."""
    from rlvitals_service.database import Database

    database = Database(url)
    try:
        yield database
    finally:
        database.dispose()


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[Service]:
    """Run the service on a free port in a thread, over real HTTP, with a token of every kind."""
    import uvicorn

    from rlvitals_service.app import create_app
    from rlvitals_service.auth import make_secret, store_token
    from rlvitals_service.settings import Settings

    chosen = Settings(database_url=url, port=0, **settings)
    app = create_app(chosen)
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + DEADLINE_SECONDS
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        assert time.monotonic() < end, "the service takes too long to start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    tokens = {name: make_secret() for name in ("admin", "ingest", "read", "control")}
    with opened(url) as database:
        with database.transaction() as connection:
            for name, secret in tokens.items():
                store_token(connection, secret, name=name, scopes=[name])
        try:
            yield Service(f"http://127.0.0.1:{port}", tokens, chosen, database, app)
        finally:
            server.should_exit = True
            thread.join(DEADLINE_SECONDS)
            assert not thread.is_alive(), "the service does not stop"
