"""Guard and speed up what the dashboard serves: known hosts only, and compressed."""

from __future__ import annotations

import gzip
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import Flask, Response, abort, request

if TYPE_CHECKING:
    from collections.abc import Iterable

COMPRESSIBLE = ("application/json", "application/javascript", "text/")
SMALLEST = 1024
FAST, THOROUGH = 4, 7


def guard(server: Flask, hosts: Iterable[str]) -> None:
    """Turn away requests for other host names, and those that another site's page sent."""
    allowed = {name.lower() for name in hosts}

    def check() -> None:
        if "*" in allowed:
            return
        if hostname(request.host) not in allowed:
            abort(
                Response(
                    f"The dashboard does not answer to the name {hostname(request.host)!r}. Add "
                    "it to RLVITALS_DASHBOARD_ALLOWED_HOSTS to let it.\n",
                    403,
                    mimetype="text/plain",
                )
            )
        origin = request.headers.get("Origin")
        if origin and hostname(urlsplit(origin).netloc) not in allowed:
            abort(Response("Requests from other sites are refused.\n", 403, mimetype="text/plain"))

    def harden(response: Response) -> Response:
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "SAMEORIGIN"
        response.headers["Referrer-Policy"] = "same-origin"
        return response

    server.before_request(check)
    server.after_request(harden)


def compress(server: Flask) -> None:
    """Compress text answers by gzip where the browser takes it; fixed files only once."""

    def shrink(response: Response) -> Response:
        if not _worth_it(response):
            return response
        response.direct_passthrough = False
        body = response.get_data()
        if len(body) < SMALLEST:
            return response
        fixed = request.path.startswith(("/_dash-component-suites/", "/assets/"))
        packed = _packed_once(body) if fixed else gzip.compress(body, FAST)
        response.set_data(packed)
        response.headers["Content-Encoding"] = "gzip"
        response.vary.add("Accept-Encoding")
        if response.get_etag()[0]:
            response.set_etag(f"{response.get_etag()[0]}-gz")
        return response

    server.after_request(shrink)


def hostname(netloc: str) -> str:
    """Give the name in ``name:port``, with the brackets of an IPv6 address."""
    name = netloc.rsplit("@", 1)[-1].lower()
    return name.split("]")[0] + "]" if name.startswith("[") else name.rsplit(":", 1)[0]


@lru_cache(maxsize=64)
def _packed_once(body: bytes) -> bytes:
    return gzip.compress(body, THOROUGH)


def _worth_it(response: Response) -> bool:
    return (
        response.status_code == HTTPStatus.OK
        and "gzip" in request.headers.get("Accept-Encoding", "")
        and "Content-Encoding" not in response.headers
        and (response.mimetype or "").startswith(COMPRESSIBLE)
    )
