"""Know the launch this process belongs to from what its launcher put into the environment."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def world_size(environ: Mapping[str, str]) -> int:
    """Give the number of ranks; 1 where no launcher, or something else, wrote it."""
    try:
        return int(environ.get("WORLD_SIZE") or 1)
    except ValueError:
        return 1


def rank(environ: Mapping[str, str]) -> str:
    """Give this process's rank among several, "0" when it is the only one."""
    return environ.get("RANK") or "0" if world_size(environ) > 1 else "0"


def launch_identity(environ: Mapping[str, str]) -> str | None:
    """Name this launch so that all ranks of one job agree without talking, else give None.

    Ranks of one job share the launcher's variables; a relaunch differs by restart count, port,
    job number or, on one node, by the launcher process itself.
    """
    if world_size(environ) <= 1:
        return None
    names = (
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_RESTART_COUNT",
        "MASTER_ADDR",
        "MASTER_PORT",
        "SLURM_JOB_ID",
        "SLURM_STEP_ID",
        "SLURM_RESTART_COUNT",
    )
    parts = [environ.get(name, "") for name in names]
    if environ.get("LOCAL_WORLD_SIZE") == environ.get("WORLD_SIZE"):
        parts.append(_process_start(os.getppid()))
    return hashlib.blake2b("|".join(parts).encode(), digest_size=12).hexdigest()


def _process_start(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return f"{pid}@{fields[19]}"
    except (OSError, IndexError):
        return str(pid)
