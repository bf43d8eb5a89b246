"""Names, addresses, steps and copies are settled the way trainers expect."""

from __future__ import annotations

import argparse
import json
import math
import os
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
from rlvitals import capture, discovery, plain, settings
from rlvitals.backoff import Backoff
from rlvitals.numbering import Numbering, checked_step

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
    json.dumps(plain.plain(config), allow_nan=False)


def test_a_config_that_holds_itself_ends() -> None:
    """A cycle does not hang the trainer."""
    looped: dict[str, Any] = {}
    looped["self"] = looped
    json.dumps(plain.plain(looped))


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


def test_numbers_may_be_names(recorder: Any) -> None:
    """A seed as name or a rank as group is taken as its text, and the run arrives."""
    given: dict[str, Any] = {"project": 1, "name": 2, "group": 0, "notes": 4, "id": 5, "tags": [6]}
    rlvitals.init(url=recorder.url, **given).finish()
    [sent] = recorder.registrations
    names = ("project", "name", "group", "notes", "key", "tags")
    assert [sent[name] for name in names] == ["1", "2", "0", "4", "5", ["6"]]


def test_without_any_home_the_working_folder_has_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's user without home or password entry still gets a run."""
    import pwd

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("RLVITALS_HOME")
    monkeypatch.chdir(tmp_path)
    assert discovery.home() == tmp_path / ".rlvitals"
    monkeypatch.setenv("RLVITALS_HOME", "~/elsewhere")
    assert discovery.home() == tmp_path / "~" / "elsewhere"
    assert settings.resolve(dir="~/third").home == tmp_path / "~" / "third"


@pytest.mark.parametrize("size", ["four", "", " ", "1.5"])
def test_a_world_size_that_is_no_number_means_one_process(size: str) -> None:
    """What another tool left in the environment does not keep a training from starting."""
    alone = settings.resolve(environ={"WORLD_SIZE": size, "RANK": "3"})
    assert alone.source == "0"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("success_threshold", "high"),
        ("success_threshold", [1.0]),
        ("failure_threshold", {}),
        ("abilities", None),
        ("url", "there:8400"),
        ("url", "http://[::1"),
        ("tags", 5),
    ],
)
def test_every_wrong_setting_is_a_value_error_that_names_it(field: str, value: Any) -> None:
    """Init raises ValueError and nothing else."""
    with pytest.raises(ValueError, match=field):
        settings.resolve(**{field: value})


def test_long_names_are_shortened_and_stay_apart(recorder: Any) -> None:
    """A name longer than the service stores costs its end, not the run."""
    for end in "ab":
        long = "x" * 300 + end
        run = rlvitals.init(long, long, id=long, group=long, tags=[long] * 60, url=recorder.url)
        run.finish()
    first, second = recorder.registrations
    for name in ("project", "name", "key", "group"):
        assert len(first[name]) == 200
        assert first[name] != second[name]
    assert len(first["tags"]) == 50
    assert len(first["tags"][0]) == 200


def test_a_config_beyond_all_measure_is_left_out_and_counted(recorder: Any) -> None:
    """A configuration of megabytes costs itself, not the run."""
    run = rlvitals.init(url=recorder.url, config={"rows": ["x" * 100] * 20_000})
    run.finish()
    assert "config" not in recorder.registrations[0]
    assert recorder.finished
    assert run.losses == {"config_unreadable": 1}


def test_a_token_is_taken_without_the_line_it_came_in(recorder: Any, home: Path) -> None:
    """A trailing newline from a file or a shell is no part of a token."""
    assert discovery.find(home, "http://x", "abc\n", environ={}).token == "abc"
    assert discovery.find(home, "http://x", environ={"RLVITALS_TOKEN": " abc\r\n"}).token == "abc"


def test_a_token_no_header_can_carry_is_refused_and_not_told(
    recorder: Any, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A mangled secret ends in a clear refusal, and its text in no log."""
    run = rlvitals.init(url=recorder.url, token="sec\nzebra")
    recorder.wait(lambda: "RLVITALS_TOKEN" in caplog.text)
    run.finish()
    assert "zebra" not in caplog.text
    assert not recorder.requests


def test_forked_workers_wait_for_different_times() -> None:
    """Children of one process do not all come back to the service together."""
    drawn = set()
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, repr(Backoff().next()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        with os.fdopen(read) as told:
            drawn.add(told.read())
    assert len(drawn) == 3
