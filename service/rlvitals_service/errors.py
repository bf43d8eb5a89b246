"""One family of errors, and the one shape in which every error leaves the service."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

logger = logging.getLogger(__name__)


class ErrorBody(BaseModel):
    """Say what went wrong, in a code for programs and a sentence for people."""

    code: str
    message: str
    field: str | None = None


class ErrorAnswer(BaseModel):
    """Wrap an error as every answer outside 2xx does."""

    error: ErrorBody


class ServiceError(Exception):
    """Anything the service refuses to do; subclasses fix the status and the code."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "bad_request"
    headers: Mapping[str, str] | None = None

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class BadRequest(ServiceError):
    """The body cannot be read at all."""


class Unauthenticated(ServiceError):
    """No token, or one that is unknown or revoked."""

    status = 401
    code = "unauthenticated"
    headers: Mapping[str, str] | None = {"WWW-Authenticate": "Bearer"}


class Forbidden(ServiceError):
    """The token is known and lacks the scope."""

    status = 403
    code = "forbidden"


class NotFound(ServiceError):
    """There is no such thing, or it belongs to a project the token does not see."""

    status = 404
    code = "not_found"


class Conflict(ServiceError):
    """The present state does not allow the request."""

    status = 409
    code = "conflict"


class TooLarge(ServiceError):
    """The body is over a limit."""

    status = 413
    code = "too_large"


class UnsupportedMedia(ServiceError):
    """The body has a type or an encoding that the service does not read."""

    status = 415
    code = "unsupported_media_type"


class Invalid(ServiceError):
    """The body can be read and a field of it is wrong."""

    status = 422
    code = "invalid"


class Unavailable(ServiceError):
    """The database does not answer."""

    status = 503
    code = "unavailable"
    headers: Mapping[str, str] | None = {"Retry-After": "2"}


# The hot path speaks to psycopg directly, past SQLAlchemy's wrapping.
DATABASE_ERRORS = (
    OperationalError,
    InterfaceError,
    PoolTimeout,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)
HTTP_CODES: Mapping[int, str] = {404: "not_found", 405: "method_not_allowed"}


def answer(
    status: int,
    code: str,
    message: str,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Build the one error body."""
    body = {"error": {"code": code, "message": message, "field": field}}
    return JSONResponse(body, status, headers)


def responses(*kinds: type[ServiceError]) -> dict[int | str, dict[str, Any]]:
    """Describe in OpenAPI which errors an endpoint can answer."""
    described: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        described[kind.status] = {"model": ErrorAnswer, "description": kind.__doc__ or kind.code}
    return described


def field_name(location: Sequence[str | int]) -> str | None:
    """Write a pydantic location the way a person would: `records[3].step`."""
    name = ""
    for part in location[1:] if location and location[0] in {"body", "query", "path"} else location:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    return name or None


def _service_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)  # noqa: S101 - the registration below guarantees it
    return answer(error.status, error.code, error.message, error.field, error.headers)


def _validation_error(_: Request, error: Exception) -> JSONResponse:
    # The framework's own answer echoes the input, and a NaN in it cannot be encoded: a 500.
    assert isinstance(error, RequestValidationError)  # noqa: S101
    first = error.errors()[0]
    code = "bad_request" if first["type"] == "json_invalid" else "invalid"
    field = None if code == "bad_request" else field_name(first["loc"])
    message = f"{field}: {first['msg']}" if field else str(first["msg"])
    return answer(400 if code == "bad_request" else 422, code, message, field)


def _http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    code = HTTP_CODES.get(error.status_code, "bad_request")
    return answer(error.status_code, code, str(error.detail), headers=error.headers)


def _database_error(_: Request, error: Exception) -> JSONResponse:
    logger.warning("database unavailable", exc_info=error)
    message = "The database does not answer; the request was not applied. Try again."
    return answer(503, Unavailable.code, message, headers=Unavailable.headers)


def _unexpected_error(_: Request, error: Exception) -> JSONResponse:
    logger.error("unexpected error", exc_info=error)
    return answer(500, "internal", "The service failed unexpectedly; its log says why.")


def install(app: FastAPI) -> None:
    """Register the handlers, so that no other error body leaves the service."""
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    for kind in DATABASE_ERRORS:
        app.add_exception_handler(kind, _database_error)
    app.add_exception_handler(Exception, _unexpected_error)
