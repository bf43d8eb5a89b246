"""Become the server's account, bind this process to its parent's life, then run a command.

Run by path with `python -I -S`, never imported by the service. It exists because the same steps in
a `preexec_fn` would run Python between fork and exec of a program full of threads.

Usage: postgres_child.py PARENT_PID UID GID COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Drop to the account, ask for SIGINT on the parent's death, and execute the command."""
    parent, uid, gid = (int(word) for word in arguments[:3])
    command = arguments[3:]
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
    main(sys.argv[1:])
