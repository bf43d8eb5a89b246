"""Ask a service and sort what can go wrong into one kind of error."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import urllib3

from rlvitals import discovery
from rlvitals.transport import Refused, Timeouts, Transport, Unreachable, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from typing_extensions import Self

RETRIES = 2
RETRY_SECONDS = 0.2
PATIENCE_SECONDS = 5.0
UNREACHABLE = 0


class ApiError(Exception):
    """Say that the service declined or did not answer.

    `status` is the HTTP status, 0 when nothing answered; `code`, `message` and `field` are what
    the service said, the last one None when it names no field.
    """

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(f"{message} ({status} {code})" if status else message)
        self.status, self.code, self.message, self.field = status, code, message, field


class Connection:
    """Hold the way to one service; safe to share between threads."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout_seconds: float = 30.0
    ) -> None:
        address = discovery.find(discovery.home(), url, token)
        if address.url is None:
            msg = "no service is known: give a url, set RLVITALS_URL or start `rlvitals up`"
            raise ApiError(UNREACHABLE, "no_service", msg)
        self.url = address.url
        self.dashboard_url = address.dashboard_url
        self._transport = Transport(
            address.url, address.token, Timeouts(5.0, timeout_seconds), size=16
        )

    def __enter__(self) -> Self:
        """Use the client as a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close idle connections."""
        self.close()

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def ready(self) -> bool:
        """Say whether the service and its database answer."""
        try:
            self._transport.call("GET", "/readyz")
        except (Refused, Unreachable):
            return False
        return True

    def _object(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        answer = self._call(method, path, body, query)
        if not isinstance(answer, dict):
            raise self._strange()
        return answer

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: dict[str, Any] | None = None,
    ) -> Any:
        data = None if body is None else msgspec.json.encode(body)
        for left in reversed(range(RETRIES + 1 if method == "GET" else 1)):
            try:
                answer = self._transport.call(method, f"/api/v1{path}", data, query=query)
                return decode(answer, Any) if answer else {}
            except Refused as refusal:  # noqa: PERF203 - retrying is what the loop is for
                wanted = refusal.retry_after or RETRY_SECONDS
                if not refusal.temporary or not left or wanted > PATIENCE_SECONDS:
                    raise _error(refusal) from None
                time.sleep(wanted)
            except Unreachable as error:
                if not left:
                    raise self._unreachable(error) from None
                time.sleep(RETRY_SECONDS)
        raise AssertionError("the last attempt returns or raises")

    def _having(
        self, field: str, method: str, path: str, *, query: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Give an answer that has a field, as every answer of the service to this has."""
        answer = self._object(method, path, query=query)
        if field not in answer:
            raise self._strange()
        return answer

    def _rows(self, path: str, field: str) -> list[dict[str, Any]]:
        """Give the rows of an answer, bare or under a field."""
        answer = self._call("GET", path)
        rows = answer.get(field) if isinstance(answer, dict) else answer
        if not isinstance(rows, list):
            raise self._strange()
        return rows

    @contextlib.contextmanager
    def _open(
        self, path: str, query: dict[str, Any], read_seconds: float | None = None
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Give an answer to be read piece by piece; what breaks it off is an ApiError."""
        response: urllib3.BaseHTTPResponse | None = None
        try:
            response = self._transport.open(
                "GET", f"/api/v1{path}", query=query, read_seconds=read_seconds
            )
            yield response
        except Refused as refusal:
            raise _error(refusal) from None
        except (Unreachable, urllib3.exceptions.HTTPError) as error:
            raise self._unreachable(error) from None
        finally:
            if response is not None:
                response.close()

    def _strange(self) -> ApiError:
        return ApiError(UNREACHABLE, "not_rlvitals", f"{self.url} is no rlvitals service")

    def _unreachable(self, error: Exception) -> ApiError:
        return ApiError(UNREACHABLE, "unreachable", f"cannot reach {self.url}: {error}")


def part(identifier: str) -> str:
    """Write an identifier as one part of a path."""
    return quote(str(identifier), safe="")


def comma(names: Iterable[str] | str | None) -> str | None:
    """Write names as a query parameter."""
    return names if names is None or isinstance(names, str) else ",".join(names)


def _error(refusal: Refused) -> ApiError:
    message = refusal.message
    if refusal.retry_after:
        message += f"; it asks to wait {refusal.retry_after:g} s"
    return ApiError(refusal.status, refusal.code, message, refusal.field)
