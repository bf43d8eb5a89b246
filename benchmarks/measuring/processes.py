"""CPU time of whole process trees, and memory, as Linux counts them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TICKS = os.sysconf("SC_CLK_TCK")


def tree_cpu(roots: Iterable[int]) -> float:
    """Sum user and system seconds of the processes and their descendants, the reaped included."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for pid, fields in _processes():
        children.setdefault(int(fields[1]), []).append(pid)
        used[pid] = sum(map(int, fields[11:15])) / TICKS
    total, stack = 0.0, list(roots)
    while stack:
        pid = stack.pop()
        total += used.get(pid, 0.0)
        stack += children.get(pid, [])
    return total


def _processes() -> Iterable[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it has ended since
            yield int(folder.name), text.rsplit(")", 1)[1].split()


def peak_memory_mb() -> float:
    """Give the most that was resident of this program, without what its parent had before."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024
