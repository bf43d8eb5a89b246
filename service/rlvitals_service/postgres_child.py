"""Start a command as the server's account and bound to this process's life.

The second half runs in a process of its own (this file, by path, with `python -I -S`, hence the
standard library only): the same steps in a `preexec_fn` would run Python between fork and exec of
a program full of threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PR_SET_PDEATHSIG = 1


def run_as(
    uid: int, gid: int, command: list[str], *, cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as the account; its output and errors come back as one text."""
    return subprocess.run(
        _wrapped(uid, gid, command),
        cwd=cwd,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def spawn_as(
    uid: int, gid: int, command: list[str], *, cwd: Path, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a lasting command as the account; on Linux it gets SIGINT when this process dies.

    Linux sends that signal when the *thread* that started the child ends, and the caller's may be
    a short one: so a thread that ends only after the child starts it.
    """
    outcome: list[subprocess.Popen[bytes] | OSError] = []
    known = threading.Event()

    def keep() -> None:
        try:
            process = subprocess.Popen(
                _wrapped(uid, gid, command),
                cwd=cwd,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The terminal's Ctrl-C is for the launcher, which ends things in order.
                start_new_session=True,
            )
        except OSError as error:
            outcome.append(error)
            known.set()
            return
        outcome.append(process)
        known.set()
        process.wait()

    threading.Thread(target=keep, name="rlvitals-postgres", daemon=True).start()
    known.wait()
    if isinstance(outcome[0], OSError):
        raise outcome[0]
    return outcome[0]


def _wrapped(uid: int, gid: int, command: list[str]) -> list[str]:
    numbers = [str(number) for number in (os.getpid(), uid, gid)]
    return [sys.executable, "-I", "-S", __file__, *numbers, *command]


def _environment() -> dict[str, str]:
    # The caller's PG* and locale variables are meant for clients, not for this server.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def become(parent: int, uid: int, gid: int, command: list[str]) -> None:
    """Turn this process into the command, under the account and told of the parent's death."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After the change of account, which clears the setting.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
    # The parent may have died before the request above: then no signal will ever come.
    if os.getppid() != parent:
        sys.exit("the starting process is gone")
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
