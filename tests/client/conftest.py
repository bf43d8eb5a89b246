"""A real HTTP service of a few endpoints that keeps what it hears, and ways to make it fail."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

import rlvitals
from rlvitals.records import StepBatch, StepRecord
from rlvitals.reduction import merge


class Recorder:
    """Answer like the service and remember; `failures` are answered first, one a request."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.requests: list[tuple[str, str]] = []
        self.registrations: list[dict[str, Any]] = []
        self.batches: list[StepBatch] = []
        self.bodies: list[int] = []
        self.merged: dict[tuple[Any, ...], StepRecord] = {}
        self.arrivals: Counter[tuple[Any, ...]] = Counter()
        self.finished: list[dict[str, Any]] = []
        self.heartbeats: list[dict[str, Any]] = []
        self.acknowledgements: list[Any] = []
        self.alerts: list[Any] = []
        self.lost: dict[str, int] = {}
        self.directive: dict[str, Any] | None = None
        self.failures: list[tuple[int, dict[str, str]]] = []
        self.refuse_steps = False
        self.tokens: set[str] | None = None
        self.largest_body = 2**40
        self.answering = threading.Event()
        self.answering.set()
        self.held: list[str] = []  # paths of requests that came while nothing was answered
        self.reject: Callable[[StepRecord], str | None] = lambda record: None
        self.attempts: dict[tuple[str, str], int] = {}
        handler = type("Bound", (Handler,), {"recorder": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Close down, also when told to hang."""
        self.answering.set()
        with self.lock:
            self.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def scalars(self, name: str, phase: str = "train") -> dict[int, Any]:
        """Give one metric by step as it was stored after merging."""
        with self.lock:
            records = list(self.merged.values())
        found = [r for r in records if r.phase == phase and name in r.scalars]
        return {r.step: r.scalars[name] for r in sorted(found, key=lambda r: r.step)}

    def groups(self, phase: str = "train", stage: str = "sampled") -> list[StepRecord]:
        """Give the stored records with groups, by step and generation."""
        with self.lock:
            found = [
                r
                for r in self.merged.values()
                if r.groups is not None and r.phase == phase and r.stage == stage
            ]
        return sorted(found, key=lambda r: (r.step, r.generation))

    def wait(self, condition: Callable[[], Any], seconds: float = 10.0) -> None:
        """Wait until a condition holds; fail after a deadline."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "the condition did not come true in time"
            time.sleep(0.005)

    def direct(self, **directive: Any) -> None:
        """Put a directive in force and wake the long polls."""
        with self.lock:
            version = (self.directive or {"version": 0})["version"] + 1
            empty = {"focal": None, "avspo": None, "expires_at_step": None}
            said = {"reason": "", "issued_by": "test", "issued_at": ""}
            self.directive = {"version": version, "mode": "on", **empty, **said, **directive}
            self.lock.notify_all()

    def take(self, batch: StepBatch) -> dict[str, Any]:
        """Merge a batch by key, as the service does."""
        rejected, accepted, duplicates = [], 0, 0
        with self.lock:
            self.batches.append(batch)
            self.acknowledgements += batch.acknowledgements
            self.alerts += batch.alerts
            self.lost.update(batch.lost)
            for index, raw in enumerate(batch.records):
                record = msgspec.msgpack.decode(raw, type=StepRecord)
                key = (record.attempt, record.phase, record.step, record.generation)
                key = (*key, record.source, record.stage)
                if (reason := self.reject(record)) is not None:
                    rejected.append({"index": index, "reason": reason})
                    continue
                self.arrivals[key] += 1
                duplicates += key in self.merged
                accepted += 1
                old = self.merged.get(key)
                self.merged[key] = merge(old, record) if old else record
        return {
            "accepted": accepted,
            "duplicates": duplicates,
            "rejected": rejected,
            "directive": self.directive,
            "last_step": None,
        }


class Handler(BaseHTTPRequestHandler):
    """Route requests to the service."""

    recorder: Recorder
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *args: Any) -> None:
        """Keep silent."""

    def do_GET(self) -> None:
        """Answer a question."""
        self.answer()

    def do_POST(self) -> None:
        """Take something in."""
        self.answer()

    def do_PUT(self) -> None:
        """Take something in its place."""
        self.answer()

    def answer(self) -> None:
        """Fail if told to, else route the request."""
        recorder, path = self.recorder, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not recorder.answering.is_set():
            recorder.held.append(path.path)
        recorder.answering.wait(60)
        with recorder.lock:
            recorder.requests.append((self.command, path.path))
            failure = recorder.failures.pop(0) if recorder.failures else None
        if failure:
            return self.reply(failure[0], {"error": {"message": "told to fail"}}, failure[1])
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if recorder.tokens is not None and token not in recorder.tokens:
            return self.reply(401, {"error": {"code": "unauthorized", "message": "bad token"}})
        return self.route(path.path, parse_qs(path.query), body)

    def route(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        """Find the endpoint."""
        recorder = self.recorder
        if path == "/api/v1/runs":
            return self.register(json.loads(body))
        if path.endswith("/steps"):
            return self.steps(body)
        if path.endswith("/heartbeat"):
            recorder.heartbeats.append(json.loads(body))
            return self.reply(200, {"directive": recorder.directive})
        if path.endswith("/finish"):
            recorder.finished.append({"run": path.split("/")[4], **json.loads(body)})
            return self.reply(200, {"state": recorder.finished[-1]["state"]})
        if path.endswith("/directive"):
            return self.poll(int(query["since"][0]), float(query["wait"][0]))
        return self.reply(404, {"error": {"code": "not_found", "message": "no such thing"}})

    def register(self, wanted: dict[str, Any]) -> None:
        """Introduce a run; a new attempt key is a new attempt."""
        with self.recorder.lock:
            self.recorder.registrations.append(wanted)
            key, attempt_key = wanted["key"], wanted["attempt_key"]
            known = self.recorder.attempts
            number = known.setdefault((key, attempt_key), 1 + sum(k == key for k, _ in known))
        answer = {"id": f"id-{key}", "project": wanted["project"], "attempt": number}
        answer |= {"name": wanted.get("name") or key, "resumed": number > 1, "last_step": None}
        self.reply(201, {**answer, "directive": self.recorder.directive, "dashboard_url": None})

    def steps(self, body: bytes) -> None:
        """Take a batch of records."""
        if self.recorder.refuse_steps:
            return self.reply(503, {"error": {"message": "not now"}})
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if len(body) > self.recorder.largest_body:
            return self.reply(413, {"error": {"code": "too_large", "message": "too large"}})
        self.recorder.bodies.append(len(body))
        return self.reply(200, self.recorder.take(msgspec.msgpack.decode(body, type=StepBatch)))

    def poll(self, since: int, wait: float) -> None:
        """Hold the answer until there is a newer directive."""
        recorder, until = self.recorder, time.monotonic() + wait
        with recorder.lock:
            while not recorder.directive or recorder.directive["version"] <= since:
                left = until - time.monotonic()
                if left <= 0 or self.server._BaseServer__shutdown_request:
                    break
                recorder.lock.wait(min(left, 0.5))
            answer = recorder.directive
        self.reply(200, {"directive": answer})

    def reply(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        """Send an answer; the other side may be gone."""
        data = json.dumps(answer).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Serve a fresh service."""
    running = Recorder()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test to a home and an environment of its own."""
    folder = tmp_path / "home"
    names = ("URL", "TOKEN", "TOKEN_FILE", "MODE", "PROJECT", "NAME", "RUN_ID", "RESUME", "TAGS")
    for name in names:
        monkeypatch.delenv(f"RLVITALS_{name}", raising=False)
    monkeypatch.setenv("RLVITALS_HOME", str(folder))
    monkeypatch.setenv("RLVITALS_SILENT", "1")
    return folder


@pytest.fixture
def new_run(recorder: Recorder) -> Iterator[Callable[..., rlvitals.Run]]:
    """Start runs that end with the test."""
    started: list[rlvitals.Run] = []

    def start(**settings: Any) -> rlvitals.Run:
        run = rlvitals.init(**{"project": "p", "url": recorder.url, **settings})
        started.append(run)
        return run

    yield start
    recorder.answering.set()
    for run in started:
        run.finish()
