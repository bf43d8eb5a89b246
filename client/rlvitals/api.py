"""Read runs and steer them: the client for people, notebooks and the dashboard."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from rlvitals import discovery
from rlvitals.history import History
from rlvitals.transport import Refused, Timeouts, Transport, Unreachable, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    import urllib3
    from typing_extensions import Self

__all__ = ["Api", "ApiError", "History"]

RETRIES = 2
RETRY_SECONDS = 0.2
UNREACHABLE = 0
MOST_POINTS = 1_000_000  # as many as the service gives of one metric in one answer


class ApiError(Exception):
    """Say that the service declined or did not answer.

    `status` is the HTTP status, 0 when nothing answered; `code`, `message` and `field` are what
    the service said, the last one None when it names no field.
    """

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(f"{message} ({status} {code})" if status else message)
        self.status, self.code, self.message, self.field = status, code, message, field


class Page(list[dict[str, Any]]):
    """Hold a page of answers and the cursor of the next one, None on the last page."""

    def __init__(self, rows: Iterable[dict[str, Any]], next_cursor: str | None = None) -> None:
        super().__init__(rows)
        self.next_cursor = next_cursor


class Api:
    """Talk to a service; safe to share between threads.

    Answers are plain dictionaries and lists as the REST interface describes them; `history` is a
    History. Without arguments it finds RLVITALS_URL and RLVITALS_TOKEN, else the local service
    that `rlvitals up` wrote down. Every method raises ApiError.
    """

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

    def runs(
        self,
        project: str | None = None,
        *,
        state: str | None = None,
        search: str | None = None,
        tag: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        **filters: Any,
    ) -> Page:
        """Give a page of runs, newest first unless sorted otherwise."""
        query = {
            "project": project,
            "state": state,
            "search": search,
            "tag": tag,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
            **filters,
        }
        answer = self._object("GET", "/runs", query=query)
        return Page(answer["runs"], answer.get("next_cursor"))

    def all_runs(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Walk over all runs, page by page."""
        cursor: str | None = None
        while True:
            page = self.runs(cursor=cursor, **filters)
            yield from page
            cursor = page.next_cursor
            if not cursor:
                return

    def run(self, run_id: str) -> dict[str, Any]:
        """Give one run in full."""
        return self._object("GET", f"/runs/{_part(run_id)}")

    def update_run(self, run_id: str, **changes: Any) -> dict[str, Any]:
        """Change name, tags, notes or archived."""
        return self._object("PATCH", f"/runs/{_part(run_id)}", changes)

    def history(
        self,
        run_id: str,
        metrics: Iterable[str] | str | None = None,
        from_step: int | None = None,
        to_step: int | None = None,
        max_points: int | None = None,
        *,
        attempt: int | str | None = None,
        phase: str | None = None,
    ) -> History:
        """Give the series of some metrics; with None, of all the run has.

        More than `max_points` steps come as buckets that keep first, last, every minimum and
        maximum. `attempt` is a number or "all"; by default each step shows its newest attempt.
        """
        query = {
            "metrics": _comma(metrics),
            "from_step": from_step,
            "to_step": to_step,
            "max_points": max_points,
            "attempt": attempt,
            "phase": phase,
        }
        return History(self._object("GET", f"/runs/{_part(run_id)}/history", query=query))

    def export(
        self,
        run_id: str,
        format: str = "csv",  # noqa: A002 - as the query parameter is called
        metrics: Iterable[str] | str | None = None,
        *,
        attempt: int | str | None = None,
        phase: str | None = None,
    ) -> bytes:
        """Give a run's whole history as the bytes of a csv, parquet or json file."""
        pieces = self.export_pieces(run_id, format, metrics, attempt=attempt, phase=phase)
        return b"".join(pieces)

    def export_pieces(
        self,
        run_id: str,
        format: str = "csv",  # noqa: A002 - as the query parameter is called
        metrics: Iterable[str] | str | None = None,
        *,
        attempt: int | str | None = None,
        phase: str | None = None,
    ) -> Iterator[bytes]:
        """Stream what `export` gives, piece by piece."""
        query = {
            "metrics": _comma(metrics),
            "format": format,
            "attempt": attempt,
            "phase": phase,
            # csv and parquet are whole by nature; json is thinned for charts unless asked not to.
            "max_points": MOST_POINTS if format == "json" else None,
        }
        response = self._open(f"/runs/{_part(run_id)}/history", query)
        try:
            yield from response.stream(2**16)
        finally:
            response.release_conn()

    def groups(
        self,
        run_id: str,
        step: int | None = None,
        *,
        phase: str | None = None,
        attempt: int | None = None,
    ) -> dict[str, Any]:
        """Give the groups of one step (the newest one by default) and their tally."""
        query = {"step": step, "phase": phase, "attempt": attempt}
        return self._object("GET", f"/runs/{_part(run_id)}/groups", query=query)

    def prompts(self, run_id: str, **filters: Any) -> dict[str, Any]:
        """Give the per-prompt history, filtered by state."""
        return self._object("GET", f"/runs/{_part(run_id)}/prompts", query=filters)

    def incidents(self, run_id: str | None = None, **filters: Any) -> list[dict[str, Any]]:
        """List incidents of a run, or of all runs (filter by project, state, severity)."""
        path = "/incidents" if run_id is None else f"/runs/{_part(run_id)}/incidents"
        found: list[dict[str, Any]] = self._object("GET", path, query=filters)["incidents"]
        return found

    def acknowledge(self, run_id: str, incident_id: str, note: str | None = None) -> dict[str, Any]:
        """Acknowledge an incident of a run."""
        body = {} if note is None else {"note": note}
        path = f"/runs/{_part(run_id)}/incidents/{_part(incident_id)}/acknowledge"
        return self._object("POST", path, body)

    def directive(self, run_id: str) -> dict[str, Any] | None:
        """Give the newest directive of a run and how far it has come; None when there is none."""
        found: dict[str, Any] | None = self._object("GET", f"/runs/{_part(run_id)}/directive")[
            "directive"
        ]
        return found

    def set_directive(
        self, run_id: str, directive: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Ask the trainer for remedies, e.g. `{"mode": "on", "focal": {"gamma": 0.5}}`.

        `mode` is "on" unless given. `expires_at_step`, `reason` and `expected_version` may be
        added; a version that is no longer the newest raises ApiError 409.
        """
        body = {"mode": "on", **(directive or {}), **fields}
        return self._object("PUT", f"/runs/{_part(run_id)}/directive", body)

    def withdraw_directive(
        self, run_id: str, reason: str = "", expected_version: int | None = None
    ) -> dict[str, Any]:
        """Ask the trainer to go back to its own advantages."""
        body: dict[str, Any] = {"mode": "off", "reason": reason}
        if expected_version is not None:
            body["expected_version"] = expected_version
        return self._object("PUT", f"/runs/{_part(run_id)}/directive", body)

    def directives(self, run_id: str) -> list[dict[str, Any]]:
        """List a run's directives with their acknowledgements, newest first."""
        found: list[dict[str, Any]] = self._object("GET", f"/runs/{_part(run_id)}/directives")[
            "directives"
        ]
        return found

    def forecast(self, run_id: str) -> dict[str, Any]:
        """Give the forecast of a run."""
        return self._object("GET", f"/runs/{_part(run_id)}/forecast")

    def stream(self, run_id: str, since: int | None = None) -> Iterator[dict[str, Any]]:
        """Follow a run: yield `{"event": ..., "id": revision, "data": {...}}` as they happen.

        Ends when the service closes the stream; go on from the last id then.
        """
        response = self._open(f"/runs/{_part(run_id)}/stream", {"since": since}, 60.0)
        try:
            yield from _events(response)
        finally:
            response.close()

    def catalog(self) -> dict[str, dict[str, Any]]:
        """Give what each metric means."""
        found: dict[str, dict[str, Any]] = self._object("GET", "/catalog")["metrics"]
        return found

    def projects(self) -> list[dict[str, Any]]:
        """List projects."""
        return _list(self._call("GET", "/projects"), "projects")

    def create_project(self, name: str) -> dict[str, Any]:
        """Create a project."""
        return self._object("POST", "/projects", {"name": name})

    def create_token(
        self, name: str, scopes: Iterable[str] = ("ingest",), project: str | None = None
    ) -> dict[str, Any]:
        """Create a token; its secret, under "token", is shown this once."""
        body: dict[str, Any] = {"name": name, "scopes": list(scopes)}
        if project is not None:
            body["project"] = project
        return self._object("POST", "/tokens", body)

    def tokens(self) -> list[dict[str, Any]]:
        """List tokens without their secrets."""
        return _list(self._call("GET", "/tokens"), "tokens")

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        self._call("DELETE", f"/tokens/{_part(token_id)}")

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
            raise ApiError(UNREACHABLE, "not_rlvitals", f"{self.url} is no rlvitals service")
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
                if not refusal.temporary or not left:
                    raise _error(refusal) from None
                time.sleep(refusal.retry_after or RETRY_SECONDS)
            except Unreachable as error:
                if not left:
                    raise self._unreachable(error) from None
                time.sleep(RETRY_SECONDS)
        raise AssertionError("the last attempt returns or raises")

    def _open(
        self, path: str, query: dict[str, Any], read_seconds: float | None = None
    ) -> urllib3.BaseHTTPResponse:
        try:
            return self._transport.open(
                "GET", f"/api/v1{path}", query=query, read_seconds=read_seconds
            )
        except Refused as refusal:
            raise _error(refusal) from None
        except Unreachable as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Unreachable) -> ApiError:
        return ApiError(UNREACHABLE, "unreachable", f"cannot reach {self.url}: {error}")


def _error(refusal: Refused) -> ApiError:
    return ApiError(refusal.status, refusal.code, refusal.message, refusal.field)


def _part(identifier: str) -> str:
    return quote(str(identifier), safe="")


def _comma(names: Iterable[str] | str | None) -> str | None:
    return names if names is None or isinstance(names, str) else ",".join(names)


def _list(answer: Any, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer[name] if isinstance(answer, dict) else answer
    return found


def _events(response: urllib3.BaseHTTPResponse) -> Iterator[dict[str, Any]]:
    """Read server-sent events; comments, which keep the line open, are skipped."""
    fields: dict[str, str] = {}
    rest = b""
    for piece in response.stream(2**16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if text and not text.startswith(":"):
                name, _, value = text.partition(":")
                fields[name] = fields.get(name, "") + value.removeprefix(" ")
            elif not text and "data" in fields:
                yield _event(fields)
                fields = {}


def _event(fields: dict[str, str]) -> dict[str, Any]:
    number = fields.get("id", "")
    return {
        "event": fields.get("event", "message"),
        "id": int(number) if number.isdigit() else None,
        "data": msgspec.json.decode(fields["data"]),
    }
