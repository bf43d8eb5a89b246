"""Speak HTTP with the service, one call at a time, and sort what can go wrong into two kinds."""

from __future__ import annotations

import contextlib
import urllib.parse
import urllib.request
import zlib
from dataclasses import dataclass
from typing import Any

import msgspec
import urllib3

from rlvitals.discovery import checked_url

JSON, MSGPACK = "application/json", "application/msgpack"
GZIP_OVER_BYTES = 8 * 1024
LARGEST_WAIT_SECONDS = 300.0
SUCCESS_CLASS, SERVER_ERROR_CLASS = 2, 5
UNAUTHORIZED = 401


class Unreachable(Exception):
    """Say that no service answered; trying again may help."""


class Refused(Exception):
    """Say that the service answered and declined.

    `retry_after` holds the seconds to wait when it asked for patience; `field` is None when it
    names no field.
    """

    def __init__(
        self,
        status: int,
        code: str = "",
        message: str = "",
        field: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or f"HTTP {status}")
        self.status, self.code, self.message = status, code, message or f"HTTP {status}"
        self.field, self.retry_after = field, retry_after

    @property
    def temporary(self) -> bool:
        """Say whether the same call may succeed later."""
        return self.status in (408, 425, 429) or self.status // 100 == SERVER_ERROR_CLASS


@dataclass(frozen=True)
class Timeouts:
    """Limit a call, in seconds."""

    connect: float = 5.0
    read: float = 10.0


class Transport:
    """Call one service. Safe to use from several threads."""

    def __init__(
        self, url: str, token: str | None = None, timeouts: Timeouts = Timeouts(), size: int = 4
    ) -> None:
        self.url = checked_url(url)
        self._headers = {"User-Agent": "rlvitals", "Accept": "application/json"}
        # Checked here: the HTTP library would put a token it cannot send into its error message.
        self._mangled = not ((token or "").isascii() and (token or "").isprintable())
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeouts = timeouts
        self._pool = _pool(self.url, size)

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = JSON,
        query: dict[str, Any] | None = None,
        read_seconds: float | None = None,
    ) -> bytes:
        """Send one request and give the answer's body.

        Raises Unreachable without an answer, Refused for any status but 2xx.
        """
        response = self.open(
            method, path, body, kind=kind, query=query, read_seconds=read_seconds, stream=False
        )
        return bytes(response.data)

    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = JSON,
        query: dict[str, Any] | None = None,
        read_seconds: float | None = None,
        stream: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        """Send one request and give the answer, unread when streaming."""
        if self._mangled:
            msg = "the token holds characters that no token has (a line break?)"
            raise Refused(UNAUTHORIZED, "unauthenticated", msg, None)
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = kind
            # Only the endpoint of step records, which alone takes msgpack, unpacks bodies.
            if kind == MSGPACK and len(body) > GZIP_OVER_BYTES:
                headers["Content-Encoding"] = "gzip"
                body = _gzip(body)
        timeout = urllib3.Timeout(self._timeouts.connect, read_seconds or self._timeouts.read)
        try:
            response = self._pool.request(
                method,
                self.url + path + _query(query),
                body=body,
                headers=headers,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=not stream,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unreachable(_reason(error)) from None
        if response.status // 100 != SUCCESS_CLASS:
            raise _refusal(response)
        return response

    def close(self) -> None:
        """Close idle connections."""
        with contextlib.suppress(Exception):
            self._pool.clear()


def decode(body: bytes, kind: Any) -> Any:
    """Read a JSON answer as a type; Unreachable when something else answered."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise Unreachable(f"the answer is not the service's ({error})") from None


def _pool(url: str, size: int) -> urllib3.PoolManager:
    host = urllib.parse.urlsplit(url).hostname or ""
    scheme = urllib.parse.urlsplit(url).scheme
    proxy = urllib.request.getproxies().get(scheme)
    local = host in ("localhost", "127.0.0.1", "::1")
    if proxy and not local and not urllib.request.proxy_bypass(host):
        return urllib3.ProxyManager(proxy, num_pools=2, maxsize=size)
    return urllib3.PoolManager(num_pools=2, maxsize=size)


def _gzip(body: bytes) -> bytes:
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return squeezer.compress(body) + squeezer.flush()


def _query(query: dict[str, Any] | None) -> str:
    given = {k: v for k, v in (query or {}).items() if v is not None}
    return "?" + urllib.parse.urlencode(given) if given else ""


def _reason(error: Exception) -> str:
    inner = error
    while isinstance(inner.__cause__, Exception):
        inner = inner.__cause__
    return str(error) or str(inner) or type(error).__name__


def _refusal(response: urllib3.BaseHTTPResponse) -> Refused:
    try:
        detail = msgspec.json.decode(response.data)["error"]
        code, message = str(detail.get("code", "")), str(detail.get("message", ""))
        field = detail.get("field")
    except Exception:  # noqa: BLE001 - a proxy's page, an empty body: the status has to do
        code, message, field = "", _moved(response), None
    return Refused(response.status, code, message, field, _retry_after(response))


def _moved(response: urllib3.BaseHTTPResponse) -> str:
    """Say where a proxy wants us to go; it is not followed, since a token would go along."""
    place = response.headers.get("Location")
    return f"the address has moved to {place[:200]}; give that one" if place else ""


def _retry_after(response: urllib3.BaseHTTPResponse) -> float | None:
    try:
        seconds = float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        return None
    return min(max(seconds, 0.0), LARGEST_WAIT_SECONDS)
