"""A run ends whole, on time and truthfully, whatever its summary, its disk and its service do."""

from __future__ import annotations

import enum
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rlvitals
from rlvitals.run import Run
from rlvitals.settings import resolve

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
