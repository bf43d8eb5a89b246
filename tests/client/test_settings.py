"""Names, addresses, steps and copies are settled the way trainers expect."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rlvitals
from rlvitals import capture, discovery, settings
from rlvitals.numbering import Numbering, checked_step
from rlvitals.sender import Backoff

RANKS = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "MASTER_PORT": "29500"}


def test_importing_and_starting_loads_neither_torch_nor_pandas_nor_the_service() -> None:
    """What a trainer imports is the client and its three dependencies."""
    code = """
import sys, rlvitals
rlvitals.init(mode="disabled")
print([n for n in ("torch", "pandas", "rlvitals_service", "fastapi", "sqlalchemy", "urllib3")
       if n in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_ranks_of_a_launch_agree_without_talking() -> None:
    """Four ranks name the same run and attempt, each with its own source."""
    ranks = [settings.resolve(environ=RANKS | {"RANK": str(rank)}) for rank in range(4)]
    assert len({(rank.key, rank.attempt_key) for rank in ranks}) == 1
    assert [rank.source for rank in ranks] == ["0", "1", "2", "3"]


def test_another_launch_is_another_attempt() -> None:
    """A restart by the launcher and a new process are attempts of their own."""
    first = settings.resolve(environ=RANKS)
    second = settings.resolve(environ=RANKS | {"TORCHELASTIC_RESTART_COUNT": "1"})
    assert first.attempt_key != second.attempt_key
    alone = [settings.resolve(id="k", environ={}) for _ in range(2)]
    assert alone[0].attempt_key != alone[1].attempt_key


@pytest.mark.parametrize(
    "config",
    [
        {"lr": 1e-6, "path": Path("x"), "odd": object(), "nan": math.nan, 3: {4}},
        argparse.Namespace(lr=1e-6),
        np.float32(1.0),
        torch.device("cpu"),
        "text",
        [1, 2],
    ],
)
def test_any_config_becomes_json(config: Any) -> None:
    """Whatever holds the settings of a training, a readable form of it is kept."""
    json.dumps(settings.plain(config), allow_nan=False)


def test_a_config_that_holds_itself_ends() -> None:
    """A cycle does not hang the trainer."""
    looped: dict[str, Any] = {}
    looped["self"] = looped
    json.dumps(settings.plain(looped))


def test_the_local_services_token_goes_nowhere_else(home: Path) -> None:
    """Another address gets no token that was meant for the local one."""
    home.mkdir()
    (home / "service.json").write_text('{"url": "http://127.0.0.1:8400", "token": "secret"}')
    assert discovery.find(home, environ={}).token == "secret"
    assert discovery.find(home, "http://127.0.0.1:8400/", environ={}).token == "secret"
    assert discovery.find(home, "http://elsewhere", environ={}).token is None


def test_a_token_may_come_from_a_file(tmp_path: Path) -> None:
    """RLVITALS_TOKEN_FILE is read, and a missing file is no token."""
    (tmp_path / "token").write_text("abc\n")
    environ = {"RLVITALS_URL": "http://x", "RLVITALS_TOKEN_FILE": str(tmp_path / "token")}
    assert discovery.find(tmp_path, environ=environ).token == "abc"
    environ["RLVITALS_TOKEN_FILE"] = str(tmp_path / "none")
    assert discovery.find(tmp_path, environ=environ).token is None


@pytest.mark.parametrize("content", ["", "[]", '{"url": 3}', "\x00"])
def test_a_broken_service_file_is_no_service(home: Path, content: str) -> None:
    """What cannot be read is as good as absent."""
    home.mkdir()
    (home / "service.json").write_text(content)
    assert discovery.find(home, environ={}).url is None


@given(st.integers(0, 2**53 - 1))
def test_whole_numbers_of_any_type_are_steps(step: int) -> None:
    """Python, NumPy and float whole numbers mean the same step."""
    assert checked_step(step) == checked_step(np.int64(step)) == checked_step(float(step)) == step


@pytest.mark.parametrize("step", [-1, 2**53, 0.5, math.nan, math.inf, "3x", [], object()])
def test_other_values_are_no_steps(step: Any) -> None:
    """The message names the field."""
    with pytest.raises(ValueError, match="step"):
        checked_step(step)


def test_a_tensor_may_be_a_step() -> None:
    """A 0-d tensor counts as its number."""
    assert checked_step(torch.tensor(7)) == 7


def test_generations_are_numbered_within_their_step_and_kind() -> None:
    """Each kind of call counts its own calls at a step; a given number is taken as it is."""
    numbering = Numbering()
    found = [
        numbering.generation(None, kind, step) for kind, step in [("a", 1), ("a", 1), ("b", 1)]
    ]
    assert found == [0, 1, 0]
    assert numbering.generation(None, "a", 2) == 0
    assert numbering.generation(9, "a", 2) == 9


def test_backoff_grows_within_bounds_and_minds_the_service() -> None:
    """Waits never exceed the cap, and are at least what the service asked for."""
    backoff = Backoff(base=1.0, cap=8.0)
    waits = [backoff.next() for _ in range(200)]
    assert all(0 < wait <= 8.0 for wait in waits)
    assert max(waits[:2]) <= 2.0
    assert max(waits) > 4.0
    assert backoff.next(retry_after=100.0) == 100.0


def test_waiting_leaves_the_global_random_numbers_alone() -> None:
    """A seeded training draws the same numbers with the client at work."""
    import random

    before = random.getstate()
    Backoff().next()
    assert random.getstate() == before


def test_a_sharded_tensor_is_refused_without_a_collective() -> None:
    """One rank alone must never start a collective; the reason says what to do."""

    class Placement:
        def is_replicate(self) -> bool:
            return False

    class Sharded:
        placements = (Placement(),)

        def detach(self) -> Sharded:
            return self

        def numel(self) -> int:
            return 1

        def full_tensor(self) -> None:
            raise AssertionError("a collective was started")

    with pytest.raises(ValueError, match="full_tensor"):
        capture.number(capture.copy_scalar(Sharded()))


def test_a_device_copy_waits_for_its_event_before_it_is_read() -> None:
    """On a device the reading side synchronises first, then copies to the host."""
    order: list[str] = []

    class Event:
        def synchronize(self) -> None:
            order.append("wait")

    class Tensor:
        def cpu(self) -> torch.Tensor:
            order.append("copy")
            return torch.tensor(3.0)

    assert capture.number(capture.DeviceCopy(Tensor(), Event())) == 3.0
    assert order == ["wait", "copy"]


def test_public_names_are_all_there() -> None:
    """Everything in __all__ can be had, and an unknown name is an AttributeError."""
    for name in rlvitals.__all__:
        assert getattr(rlvitals, name) is not None
        assert name in dir(rlvitals)
    with pytest.raises(AttributeError):
        rlvitals.nothing  # noqa: B018
