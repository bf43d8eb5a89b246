"""Spools that others left are brought in whole, to the right place and in the right order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from rlvitals import replay
from rlvitals.cli import main
from rlvitals.frames import RECORD, pack
from rlvitals.spool import Spool
from rlvitals.transport import Transport

NewRun = Callable[..., rlvitals.Run]


def leave_behind(home: Path, steps: int = 3, **given: Any) -> Path:
    """Record a run offline and make its spool look like that of a killed online run."""
    known = set((home / "spool").glob("*"))
    run = rlvitals.init(**{"mode": "offline", "project": "p", **given})
    for step in range(steps):
        run.log({"loss": step}, step=step)
    run.finish()
    [path] = set((home / "spool").glob("*.spool")) - known
    content = path.read_bytes().replace(b'"mode":"offline"', b'"mode":"online"', 1)
    path.write_bytes(content)
    return path


def test_a_dead_attempt_is_introduced_before_the_one_that_resumes_it(
    new_run: NewRun, recorder: Any, home: Path
) -> None:
    """What died while no service answered is attempt 1, and what resumes it attempt 2."""
    leave_behind(home, id="k", url=recorder.url)
    run = new_run(id="k")
    run.log({"loss": 10.0}, step=2)
    recorder.wait(lambda: len(recorder.finished) == 1)
    run.finish()
    assert run.attempt == 2
    by_attempt = {(key[0], r.step): r.scalars["loss"] for key, r in recorder.merged.items()}
    assert by_attempt == {(1, 0): 0.0, (1, 1): 1.0, (1, 2): 2.0, (2, 2): 10.0}


def test_a_run_that_must_be_new_is_introduced_first(
    new_run: NewRun, recorder: Any, home: Path
) -> None:
    """With resume='never' nothing that died earlier makes the run look resumed."""
    leave_behind(home, id="k", url=recorder.url)
    run = new_run(id="k", resume="never")
    assert run.wait_registered(20)
    assert run.attempt == 1


def test_an_address_with_a_slash_is_the_same_address(
    new_run: NewRun, recorder: Any, home: Path
) -> None:
    """A dead run's spool is brought in whether or not its address ended with a slash."""
    leave_behind(home, id="dead", url=recorder.url + "/")
    new_run()
    recorder.wait(lambda: any(end["run"] == "id-dead" for end in recorder.finished))


def test_a_spool_that_vanishes_while_they_are_listed_is_passed_over(
    home: Path, monkeypatch: pytest.MonkeyPatch, recorder: Any
) -> None:
    """Another process may bring one in at any moment."""
    gone, stays = leave_behind(home), leave_behind(home)
    true_glob = Path.glob

    def glob(self: Path, pattern: str) -> Any:
        found = list(true_glob(self, pattern))
        with contextlib.suppress(FileNotFoundError):
            gone.unlink()
        return found

    monkeypatch.setattr(Path, "glob", glob)
    assert replay.spools(home / "spool") == [stays]


def test_one_spool_that_cannot_be_read_does_not_keep_the_others(
    home: Path, monkeypatch: pytest.MonkeyPatch, recorder: Any
) -> None:
    """An error of the disk is the outcome of that spool, and the next one is sent."""
    bad, good = leave_behind(home, id="bad"), leave_behind(home, id="good")
    true_read = Spool.read

    def read(self: Spool, *given: Any) -> Any:
        if self.path == bad:
            raise OSError("input/output error")
        return true_read(self, *given)

    monkeypatch.setattr(Spool, "read", read)
    transport = Transport(recorder.url)
    outcomes = list(replay.sync(home / "spool", lambda _: transport, patience_seconds=1.0))
    assert {one.path: one.state for one in outcomes} == {bad: "failed", good: "sent"}
    assert "input/output" in next(one.detail for one in outcomes if one.path == bad)


def test_damage_is_told_and_makes_sync_fail(
    home: Path, recorder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """What could not be read is counted, and the code is truthful."""
    path = leave_behind(home, steps=3, id="k")
    content = path.read_bytes()
    at = content.index(b"loss", content.index(b"\n"))
    path.write_bytes(content[:at] + b"LOSS" + content[at + 4 :])
    assert main(["sync", "--url", recorder.url]) == 1
    assert "1 damaged" in capsys.readouterr().out


def test_a_torn_end_is_no_failure(home: Path, recorder: Any) -> None:
    """The last record of a killed process may be cut off; the rest is sent and the code is 0."""
    path = leave_behind(home, steps=3, id="k")
    with path.open("ab") as file:
        file.write(pack(RECORD, b"cut off in the middle")[:-9])
    assert main(["sync", "--url", recorder.url]) == 0
    assert len(recorder.scalars("loss")) == 3


def test_sync_sends_a_spool_where_it_was_meant_to_go(home: Path, recorder: Any) -> None:
    """A service on this machine does not swallow what was recorded for another one."""
    leave_behind(home, id="k", url=recorder.url)
    (home / "service.json").write_text('{"url": "http://127.0.0.1:9", "token": "local"}')
    assert main(["sync", "--patience", "0.1"]) == 0
    assert len(recorder.scalars("loss")) == 3


def test_sync_sends_elsewhere_when_told_to(home: Path, recorder: Any) -> None:
    """--url is stronger than what the spool says."""
    leave_behind(home, id="k", url="http://127.0.0.1:9")
    assert main(["sync", "--url", recorder.url]) == 0
    assert len(recorder.scalars("loss")) == 3


def test_sync_with_a_wrong_token_fails_and_says_which(
    home: Path, recorder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused token is code 1, and the spool stays."""
    path = leave_behind(home, id="k")
    recorder.tokens = {"right"}
    assert main(["sync", "--url", recorder.url, "--token", "wrong"]) == 1
    assert "token" in capsys.readouterr().out
    assert path.exists()


def test_trouble_with_old_spools_is_none_of_a_new_run(
    new_run: NewRun, recorder: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the folder holds, a run is introduced, sent and finished."""
    (home / "spool" / "folder.spool").mkdir(parents=True)
    (home / "spool" / "stray.spool").write_bytes(b"\x00" * 100)
    run = new_run(id="k")
    run.log({"loss": 1.0}, step=0)
    run.finish()
    assert recorder.scalars("loss") == {0: 1.0}
    assert run.losses == {}
