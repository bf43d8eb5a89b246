"""Refuse a body over the limit whatever the endpoint, before the framework gathers it.

The framework has such a limit too, and answers it in plain text; ours has the one shape of errors.
"""

from __future__ import annotations

from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlvitals_service.body import too_large
from rlvitals_service.errors import TooLarge, answer


class BodyLimit:
    """Answer 413 as soon as a request's body has more than `limit` bytes."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        counted = _Counted(receive, send, self.limit)
        declared = Headers(scope=scope).get("content-length", "")
        counted.overflowed = declared.isdigit() and int(declared) > self.limit
        if not counted.overflowed:
            with suppress(TooLarge):
                await self.app(scope, counted.receive, counted.send)
        if counted.overflowed and not counted.started:
            error = too_large(self.limit)
            await answer(error.status, error.code, error.message)(scope, receive, send)


class _Counted:
    """Count what is received; drop what an application answers that choked on an overflow."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive, self._send, self._limit = receive, send, limit
        self._size = 0
        self.started = False
        self.overflowed = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > self._limit and not self.started:
                self.overflowed = True
                raise too_large(self._limit)
        return message

    async def send(self, message: Message) -> None:
        if not self.overflowed or self.started:
            self.started = True
            await self._send(message)
