"""A run that nobody finished ends as its program does, and the program ends as it would without."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import pytest

import rlvitals

HEAD = "import sys, threading, rlvitals\nrun = rlvitals.init(project='exits', url=sys.argv[1])\n"


def ended(recorder: Any, body: str, head: str = HEAD) -> tuple[str, int | None, Any]:
    """Run a script; give the state and code that the service heard, and the finished process."""
    script = head + textwrap.dedent(body)
    command = [sys.executable, "-c", script, recorder.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    [end] = recorder.finished
    return end["state"], end.get("exit_code"), done


@pytest.mark.parametrize(
    ("body", "state", "code"),
    [
        ("sys.exit(3)", "failed", 3),
        ("sys.exit('no data')", "failed", 1),
        ("sys.exit((1, 2))", "failed", 1),
        ("sys.exit(0.0)", "failed", 1),
        ("sys.exit(True)", "failed", 1),
        ("sys.exit(0)", "finished", None),
        ("sys.exit()", "finished", None),
        ("raise ValueError", "failed", 1),
        ("pass", "finished", None),
        ("import argparse; argparse.ArgumentParser().parse_args(['--odd'])", "failed", 2),
        ("import asyncio\nasync def main(): sys.exit(4)\nasyncio.run(main())", "failed", 4),
        ("with open(__import__('os').devnull): sys.exit(5)", "failed", 5),
        ("try:\n  sys.exit(6)\nfinally:\n  print('bye')", "failed", 6),
        ("try:\n  sys.exit(7)\nexcept SystemExit as error:\n  kept = error\n  raise", "failed", 7),
        ("try:\n  sys.exit(1)\nexcept SystemExit:\n  sys.exit(0)", "finished", None),
        ("try:\n  sys.exit(0)\nexcept SystemExit:\n  sys.exit(1)", "failed", 1),
        ("try:\n  sys.exit(1)\nexcept SystemExit:\n  raise OSError from None", "failed", 1),
        ("with run: sys.exit(8)", "failed", 8),
        ("with run: sys.exit('no data')", "failed", 1),
        ("run.finish(); sys.exit(9)", "finished", None),
    ],
)
def test_a_run_ends_as_its_program_does(
    body: str, state: str, code: int | None, recorder: Any, home: Any
) -> None:
    """Any code but 0 and None is a failure, as an uncaught exception is; the process ends alike."""
    heard_state, heard_code, done = ended(recorder, body)
    assert (heard_state, heard_code) == (state, code)
    bare = "import sys\nfrom contextlib import nullcontext\n" + _bare(body)
    command = [sys.executable, "-c", bare]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == alone.returncode
    assert done.stdout == alone.stdout
    assert _said(done.stderr) == _said(alone.stderr)


def _bare(body: str) -> str:
    """Give the same script without a run."""
    return body.replace("with run", "with nullcontext()").replace("run.finish(); ", "")


def _said(stderr: str) -> list[str]:
    """Leave out our notices and the numbers of lines, which differ."""
    lines = [line for line in stderr.splitlines() if not line.startswith("rlvitals: ")]
    return [line for line in lines if not line.startswith("  File")]


@pytest.mark.parametrize(
    "body",
    [
        """
        def other(): sys.exit(1)
        thread = threading.Thread(target=other)
        thread.start(); thread.join()
        """,
        """
        try: sys.exit(1)
        except SystemExit: pass
        """,
        """
        import asyncio
        async def main(): sys.exit(1)
        try: asyncio.run(main())
        except SystemExit as error: kept = error
        """,
        """
        def attempt():
            try: sys.exit(1)
            except SystemExit as error: return error
        kept = attempt()
        """,
        """
        try: sys.exit(1, 2)
        except TypeError: pass
        """,
        """
        import os, multiprocessing
        def other(): sys.exit(1)
        child = multiprocessing.get_context("fork").Process(target=other)
        child.start(); child.join()
        assert child.exitcode == 1
        """,
    ],
    ids=["thread", "caught", "caught and kept", "caught in a call", "no exit", "forked child"],
)
def test_an_exit_that_ends_nothing_does_not_matter(body: str, recorder: Any, home: Any) -> None:
    """A SystemExit of a thread, one that was caught and one of a child leave the run finished."""
    state, code, done = ended(recorder, body)
    assert done.returncode == 0, done.stderr
    assert (state, code) == ("finished", None)


WRAPPED = """
seen = []
def wrap():
    inner = sys.exit
    def theirs(code=None):
        seen.append(code)
        inner(code)
    sys.exit = theirs
"""


@pytest.mark.parametrize("first", [True, False])
def test_two_wrappers_live_together(first: bool, recorder: Any, home: Any) -> None:
    """Whoever wrapped first, both hear the code, once."""
    start = "run = rlvitals.init(project='exits', url=sys.argv[1])\n"
    order = "wrap()\n" + start if first else start + "wrap()\n"
    head = "import sys, atexit, rlvitals\n" + WRAPPED + "atexit.register(lambda: print(seen))\n"
    state, code, done = ended(recorder, "sys.exit(3)", head + order)
    assert (state, code, done.returncode) == ("failed", 3, 3)
    assert done.stdout == "[3]\n"


@pytest.mark.parametrize("name", ["-m", "file"], ids=["run as a module", "run as a file"])
def test_a_program_may_be_a_module_or_a_file(
    name: str, recorder: Any, home: Any, tmp_path: Any
) -> None:
    """How Python was started makes no difference."""
    path = tmp_path / "job.py"
    path.write_text(HEAD + "def main():\n    sys.exit(3)\nmain()\n")
    start = [sys.executable, "-m", "job"] if name == "-m" else [sys.executable, str(path)]
    done = subprocess.run(
        [*start, recorder.url], capture_output=True, timeout=60, check=False, cwd=tmp_path
    )
    assert done.returncode == 3
    [end] = recorder.finished
    assert (end["state"], end["exit_code"]) == ("failed", 3)


def test_a_spawned_child_that_fails_says_so(recorder: Any, home: Any, tmp_path: Any) -> None:
    """A worker with a run of its own, as launchers start them, fails with its exception."""
    path = tmp_path / "job.py"
    path.write_text(
        "import multiprocessing, sys, rlvitals\n"
        "def work(url):\n"
        "    rlvitals.init(project='exits', url=url)\n"
        "    raise ValueError\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=work, args=sys.argv[1:])\n"
        "    child.start(); child.join()\n"
        "    assert child.exitcode == 1\n"
    )
    command = [sys.executable, str(path), recorder.url]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    [end] = recorder.finished
    assert (end["state"], end["exit_code"]) == ("failed", 1)


def test_sys_exit_is_what_it_was_without_a_live_run(new_run: Any) -> None:
    """It is replaced by the first live run only, and put back by the last that finishes."""
    before = sys.exit
    rlvitals.init(mode="disabled")
    assert sys.exit is before
    one, two = new_run(), new_run()
    assert sys.exit is not before
    assert (sys.exit.__name__, sys.exit.__doc__) == (before.__name__, before.__doc__)
    with pytest.raises(SystemExit) as caught:
        sys.exit(3)
    assert type(caught.value) is SystemExit
    assert caught.value.args == (3,)
    one.finish()
    assert sys.exit is not before
    two.finish()
    assert sys.exit is before


def test_a_wrapper_that_came_later_is_left_in_place(new_run: Any, monkeypatch: Any) -> None:
    """The end of a run takes away nobody else's wrapper, and its own below it still passes on."""
    run = new_run()
    ours = sys.exit

    def theirs(code: Any = None) -> Any:
        ours(code)

    monkeypatch.setattr(sys, "exit", theirs)
    run.finish()
    assert sys.exit is theirs
    with pytest.raises(SystemExit) as caught:
        sys.exit(4)
    assert caught.value.code == 4
    monkeypatch.undo()
    assert sys.exit is ours
