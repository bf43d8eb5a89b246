"""One JSON line a request and an event, with the run and the token's id, never the token."""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlvitals_service.meters import Meters, meters_of

logger = logging.getLogger("rlvitals_service.requests")

# Probes and scrapes come every few seconds and say nothing while they go well.
QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
FIRST_FAILURE = 400
FIRST_SERVER_FAILURE = 500


class JsonFormatter(logging.Formatter):
    """Write a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Put time, level, logger and message first, then what the call passed as `fields`."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure(level: str) -> None:
    """Send every log record of this process to standard error as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("uvicorn.access").disabled = True  # our own line says more
    logging.getLogger("alembic").setLevel(logging.WARNING)


class RequestLog:
    """Log and count each request when its answer is complete."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self.app = app
        self.meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, watching what goes by."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        seen = {"status": 500, "received": 0, "sent": 0}

        async def watched_receive() -> Message:
            message = await receive()
            seen["received"] += len(message.get("body", b""))
            return message

        async def watched_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
            seen["sent"] += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, watched_receive, watched_send)
        finally:
            self._report(scope, seen, time.perf_counter() - started)

    def _report(self, scope: Scope, seen: dict[str, int], seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "unknown"
        status = seen["status"]
        self.meters.observe(scope["method"], route, status, seconds, seen["received"])
        if route in QUIET_ROUTES and status < FIRST_FAILURE:
            return
        level = logging.WARNING if status >= FIRST_SERVER_FAILURE else logging.INFO
        fields = _fields(scope, route, seen, seconds)
        logger.log(level, "%s %s %d", scope["method"], route, status, extra={"fields": fields})


def _fields(scope: Scope, route: str, seen: dict[str, int], seconds: float) -> dict[str, Any]:
    """Give what is worth searching for; neither headers nor the query string are."""
    principal = scope.get("state", {}).get("principal")
    parameters = scope.get("path_params", {})
    fields = {
        "method": scope["method"],
        "route": route,
        **seen,
        "milliseconds": round(1000 * seconds, 2),
        "run_id": parameters.get("run_id"),
        "token_id": getattr(principal, "token_id", None),
        "client": (scope.get("client") or (None,))[0],
    }
    return {name: value for name, value in fields.items() if value is not None}


def install(app: FastAPI) -> None:
    """Log and count every request of the app."""
    app.add_middleware(RequestLog, meters=meters_of(app))
