"""Read runs: lists, histories, groups and incidents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlvitals.connection import Connection, comma, part
from rlvitals.events import events
from rlvitals.history import History

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_POINTS = 1_000_000  # as many as the service gives of one metric in one answer


class Page(list[dict[str, Any]]):
    """Hold a page of answers and the cursor of the next one, None on the last page."""

    def __init__(self, rows: Iterable[dict[str, Any]], next_cursor: str | None = None) -> None:
        super().__init__(rows)
        self.next_cursor = next_cursor


class Reading(Connection):
    """Ask what a service knows."""

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
        answer = self._having("runs", "GET", "/runs", query=query)
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
        return self._object("GET", f"/runs/{part(run_id)}")

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
            "metrics": comma(metrics),
            "from_step": from_step,
            "to_step": to_step,
            "max_points": max_points,
            "attempt": attempt,
            "phase": phase,
        }
        path = f"/runs/{part(run_id)}/history"
        return History(self._having("metrics", "GET", path, query=query))

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
            "metrics": comma(metrics),
            "format": format,
            "attempt": attempt,
            "phase": phase,
            # csv and parquet are whole by nature; json is thinned for charts unless asked not to.
            "max_points": MOST_POINTS if format == "json" else None,
        }
        with self._open(f"/runs/{part(run_id)}/history", query) as response:
            yield from response.stream(2**16)

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
        return self._object("GET", f"/runs/{part(run_id)}/groups", query=query)

    def prompts(self, run_id: str, **filters: Any) -> dict[str, Any]:
        """Give the per-prompt history, filtered by state."""
        return self._object("GET", f"/runs/{part(run_id)}/prompts", query=filters)

    def incidents(self, run_id: str | None = None, **filters: Any) -> list[dict[str, Any]]:
        """List incidents of a run, or of all runs (filter by project, state, severity)."""
        path = "/incidents" if run_id is None else f"/runs/{part(run_id)}/incidents"
        found: list[dict[str, Any]] = self._having("incidents", "GET", path, query=filters)[
            "incidents"
        ]
        return found

    def forecast(self, run_id: str) -> dict[str, Any]:
        """Give the forecast of a run."""
        return self._object("GET", f"/runs/{part(run_id)}/forecast")

    def stream(self, run_id: str, since: int | None = None) -> Iterator[dict[str, Any]]:
        """Follow a run: yield `{"event": ..., "id": revision, "data": {...}}` as they happen.

        Ends when the service closes the stream; go on from the last id then.
        """
        path = f"/runs/{part(run_id)}/stream"
        with self._open(path, {"since": since}, 60.0) as response:
            yield from events(response)

    def catalog(self) -> dict[str, dict[str, Any]]:
        """Give what each metric means."""
        found: dict[str, dict[str, Any]] = self._having("metrics", "GET", "/catalog")["metrics"]
        return found

    def projects(self) -> list[dict[str, Any]]:
        """List projects."""
        return self._rows("/projects", "projects")
