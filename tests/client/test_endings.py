"""A run ends whole, on time and truthfully, whatever its summary, its disk and its service do."""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rlvitals
from rlvitals.outbox import Outbox
from rlvitals.run import Run
from rlvitals.settings import resolve
from rlvitals.spool import Spool

NewRun = Callable[..., rlvitals.Run]


class Text(str):
    """Be a text of a user's own type."""

    __slots__ = ()


class Whole(int):
    """Be a whole number of a user's own type."""


class Colour(enum.Enum):
    """Be a choice."""

    RED = "red"


ODD = {
    "best": np.float64(0.5),
    "name": np.str_("x"),
    "own": Text("y"),
    "count": Whole(3),
    "seed": 2**70,
    "choice": Colour.RED,
}


def test_a_summary_and_config_of_any_types_arrive(new_run: NewRun, recorder: Any) -> None:
    """NumPy scalars, types of the user's own and huge numbers neither stop a run nor its end."""
    run = new_run(config=ODD)
    run.summary.update(ODD)
    run.log({"loss": 1.0}, step=0)
    run.finish()
    [registered] = recorder.registrations
    [end] = recorder.finished
    for given in (registered["config"], end["summary"]):
        assert (given["best"], given["name"], given["own"], given["count"]) == (0.5, "x", "y", 3)
    assert recorder.scalars("loss") == {0: 1.0}
    assert run.losses == {}


class Unspeakable:
    """Raise when asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError("str")


def test_a_summary_that_cannot_be_read_costs_itself_only(new_run: NewRun, recorder: Any) -> None:
    """The run is closed all the same, and the loss has its reason."""
    run = new_run()
    run.summary["odd"] = Unspeakable()
    run.finish()
    assert [end["state"] for end in recorder.finished] == ["finished"]
    assert run.losses == {"summary_unreadable": 1}


@pytest.mark.parametrize(
    ("given", "state", "code"),
    [
        ({"exit_code": 3}, "failed", 3),
        ({"exit_code": 2**40}, "failed", 1),
        ({"exit_code": "three"}, "failed", 1),
        ({"exit_code": np.int64(2)}, "failed", 2),
        ({"state": "done"}, "finished", None),
        ({"exit_code": 1, "state": ["odd"]}, "failed", 1),
    ],
)
def test_any_way_to_finish_is_one_the_service_takes(
    given: dict[str, Any], state: str, code: int | None, new_run: NewRun, recorder: Any
) -> None:
    """A state or code the wire does not know becomes the nearest one it does."""
    run = new_run()
    run.finish(**given)
    [end] = recorder.finished
    assert (end["state"], end.get("exit_code")) == (state, code)


def test_a_signal_handler_may_finish_a_run_that_is_finishing(recorder: Any) -> None:
    """Finishing again from a handler, on the thread that finishes already, does not hang."""
    run = Run(replace(resolve(url=recorder.url), finish_seconds=3.0))
    recorder.answering.clear()
    caught = threading.Event()

    def handle(number: int, frame: Any) -> None:
        run.finish()
        caught.set()

    before = signal.signal(signal.SIGUSR1, handle)
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    interrupt.start()
    began = time.monotonic()
    try:
        run.finish()
    finally:
        interrupt.join()
        signal.signal(signal.SIGUSR1, before)
        recorder.answering.set()
    assert caught.is_set()
    assert time.monotonic() - began < 10.0


def test_finish_does_not_wait_for_a_disk_that_hangs(
    monkeypatch: pytest.MonkeyPatch, recorder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """While a write hangs in the kernel, finish gives up at its limit; later all is on disk."""
    stuck, go_on = threading.Event(), threading.Event()
    true_append = Spool.append

    def hang(self: Spool, frames: Any) -> int:
        with self._lock:
            stuck.set()
            go_on.wait(60)
        return true_append(self, frames)

    monkeypatch.setattr(Spool, "append", hang)
    run = Run(replace(resolve(mode="offline"), finish_seconds=0.3))
    run.log({"loss": 1.0}, step=0)
    assert stuck.wait(20)
    began = time.monotonic()
    run.finish()
    assert time.monotonic() - began < 20.0
    assert run._outbox is not None
    go_on.set()
    run._outbox._thread.join(20)
    assert run.spool is not None
    again = Spool.open(run.spool)
    assert [frame.kind for frame in again.read(0)] == [b"r", b"f"]
    again.close()


def test_a_process_without_room_for_threads_trains_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no thread can be started init gives a run that counts and ignores."""

    def full(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    run = rlvitals.init()
    run.log({"loss": 1.0})
    run.finish()
    assert "new thread" in caplog.text
    assert run.losses == {"no_threads": 2}


def test_without_any_service_known_finish_does_not_wait_for_one(home: Any) -> None:
    """Nobody can come to answer, so the script ends at once; its spool stays."""
    run = Run(replace(resolve(), finish_seconds=60.0))
    run.log({"loss": 1.0}, step=0)
    began = time.monotonic()
    run.finish()
    assert time.monotonic() - began < 30.0
    assert len(list((home / "spool").glob("*.spool"))) == 1


def test_one_record_that_cannot_be_written_costs_itself_only(
    new_run: NewRun, recorder: Any
) -> None:
    """What the wire cannot hold is counted; what was queued beside it, and the end, arrive."""
    run = new_run()
    recorder.wait(lambda: hasattr(run._outbox, "_reducer"))
    true_records = run._outbox._reducer.records

    def records(items: Any) -> Any:
        made = true_records(items)
        for record in made:
            if "odd" in record.scalars:
                record.scalars["odd"] = object()
        return made

    run._outbox._reducer.records = records
    for step in range(5):
        run.log({"odd" if step == 2 else "loss": 1.0}, step=step)
    run.finish()
    assert sorted(recorder.scalars("loss")) == [0, 1, 3, 4]
    assert recorder.finished
    assert run.losses == {"unwritable": 1}


@pytest.mark.parametrize("name", ["_make_reducer", "_open_spool"])
def test_a_writer_that_cannot_start_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch, recorder: Any
) -> None:
    """Trouble of our own while starting is counted and does not hang the end."""

    def broken() -> None:
        raise ImportError("no reducer")

    true_init = Outbox.__init__

    def init(self: Outbox, *args: Any) -> None:
        true_init(self, *args)
        setattr(self, name, broken)

    monkeypatch.setattr(Outbox, "__init__", init)
    run = Run(replace(resolve(url=recorder.url), finish_seconds=20.0))
    run.log({"loss": 1.0}, step=0)
    run.finish()
    assert sum(run.losses.values()) >= 1


def test_many_runs_end_within_the_time_of_one(recorder: Any) -> None:
    """A script that dies with several runs open does not wait for each in turn."""
    body = """
        import sys, threading, time
        from dataclasses import replace
        from rlvitals import exits
        from rlvitals.run import Run
        from rlvitals.settings import resolve
        settings = replace(resolve(url=sys.argv[1]), finish_seconds=3.0)
        runs = [Run(settings) for _ in range(8)]
        def full(thread):
            raise RuntimeError("can't create new thread at interpreter shutdown")
        threading.Thread.start = full
        began = time.monotonic()
        exits.finish_all()
        print(time.monotonic() - began)
        """
    recorder.answering.clear()
    command = [sys.executable, "-c", textwrap.dedent(body), recorder.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert float(done.stdout) < 12.0


def test_a_service_that_trickles_does_not_hold_up_the_end(home: Any) -> None:
    """An answer that comes byte by byte for ever is no reason to miss the deadline."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()
        threading.Thread(target=_trickle, args=(server, ended), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        run = Run(replace(resolve(url=url), finish_seconds=1.0))
        run.log({"loss": 1.0}, step=0)
        began = time.monotonic()
        run.finish()
        took = time.monotonic() - began
        ended.set()
    assert took < 15.0
    assert len(list((home / "spool").glob("*.spool"))) == 1


def _trickle(server: socket.socket, ended: threading.Event) -> None:
    line, _ = server.accept()
    with line, contextlib.suppress(OSError):
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not ended.wait(0.05):
            line.sendall(b"[")
