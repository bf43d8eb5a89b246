"""Settle what a run is called, where it goes and how, from arguments and environment."""

from __future__ import annotations

import hashlib
import math
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, cast, get_args

from rlvitals import discovery

Mode = Literal["online", "offline", "disabled"]
Resume = Literal["never", "allow", "must"]
ABILITIES = ("focal", "avspo")
DEEPEST_CONFIG, LONGEST_SOURCE = 8, 64
LARGEST_BITS = 64  # of a whole number that msgpack holds whatever its sign
Tags = str | Iterable[str] | None


@dataclass(frozen=True)
class Settings:
    """Hold everything decided at init; times in seconds, sizes in bytes."""

    project: str
    name: str | None
    key: str
    attempt_key: str
    source: str
    mode: Mode
    resume: Resume
    home: Path
    url: str | None = None
    token: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    notes: str | None = None
    success_threshold: float | None = None
    failure_threshold: float = 0.0
    abilities: tuple[str, ...] = ABILITIES
    flush_seconds: float = 0.5
    heartbeat_seconds: float = 15.0
    finish_seconds: float = 5.0
    connect_seconds: float = 5.0
    read_seconds: float = 10.0
    queue_items: int = 20_000
    spool_bytes: int = 512 * 2**20


def resolve(
    *,
    project: str | None = None,
    name: str | None = None,
    id: str | None = None,  # noqa: A002 - wandb's name for it
    tags: Tags = None,
    group: str | None = None,
    notes: str | None = None,
    resume: str | None = None,
    mode: str | None = None,
    url: str | None = None,
    token: str | None = None,
    dir: str | os.PathLike[str] | None = None,  # noqa: A002 - wandb's name for it
    success_threshold: float | None = None,
    failure_threshold: float = 0.0,
    source: str | int | None = None,
    abilities: Iterable[str] = ABILITIES,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Build the settings of a run; an argument wins over its RLVITALS_* variable.

    Raises ValueError for a mode, resume, ability or threshold that cannot be meant.
    """
    environ = os.environ if environ is None else environ
    launch = launch_identity(environ)
    key = id or environ.get("RLVITALS_RUN_ID") or _run_key(launch)
    return Settings(
        project=project or environ.get("RLVITALS_PROJECT") or "default",
        name=name or environ.get("RLVITALS_NAME") or None,
        key=str(key),
        attempt_key=environ.get("RLVITALS_ATTEMPT") or launch or uuid.uuid4().hex,
        source=_source(source, environ),
        mode=cast("Mode", _one_of("mode", mode or environ.get("RLVITALS_MODE") or "online", Mode)),
        resume=cast(
            "Resume",
            _one_of("resume", resume or environ.get("RLVITALS_RESUME") or "allow", Resume),
        ),
        home=Path(dir).expanduser() if dir else discovery.home(environ),
        url=url,
        token=token,
        tags=_tags(tags if tags is not None else environ.get("RLVITALS_TAGS")),
        group=group,
        notes=notes,
        success_threshold=_threshold("success_threshold", success_threshold),
        failure_threshold=_threshold("failure_threshold", failure_threshold) or 0.0,
        abilities=_abilities(abilities),
    )


def launch_identity(environ: Mapping[str, str]) -> str | None:
    """Name this launch so that all ranks of one job agree without talking, else give None.

    Ranks of one job share the launcher's variables; a relaunch differs by restart count, port,
    job number or, on one node, by the launcher process itself.
    """
    if int(environ.get("WORLD_SIZE") or 1) <= 1:
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


def plain(value: Any, depth: int = 0) -> Any:
    """Turn a configuration into what JSON can hold; unknown objects become their repr."""
    if isinstance(value, Enum):
        return plain(value.value, depth + 1)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float | str):
        return _scalar(value)
    if depth > DEEPEST_CONFIG:
        return clean_text(repr(value)[:200])
    if isinstance(value, Mapping):
        return {clean_text(str(k)): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth + 1) for item in value]
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return plain(value.to_dict(), depth + 1)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return plain(value.item(), depth + 1)
    if hasattr(value, "__dict__") and depth == 0 and not isinstance(value, type):
        shown = {k: v for k, v in vars(value).items() if not k.startswith("_")}
        return plain(shown, depth + 1)
    return clean_text(str(value)[:200])


def clean_text(text: str) -> str:
    """Replace what UTF-8 cannot carry (lone surrogates)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _scalar(value: float | str) -> int | float | str:
    """Give a number or text of exactly a built-in type: the wire knows no subclasses."""
    if isinstance(value, int):
        if value.bit_length() < LARGEST_BITS:
            return int(value)
        return hex(value)[:200]  # in decimal Python refuses to write the longest ones
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return clean_text(str(value))


def _run_key(launch: str | None) -> str:
    return f"launch-{launch}" if launch else uuid.uuid4().hex[:12]


def _source(source: str | int | None, environ: Mapping[str, str]) -> str:
    if source is None:
        ranked = int(environ.get("WORLD_SIZE") or 1) > 1
        source = environ.get("RANK", "0") if ranked else "0"
    text = str(source)
    if not 1 <= len(text) <= LONGEST_SOURCE:
        raise ValueError(f"source must have 1 to 64 characters, not {len(text)}")
    return text


def _one_of(field: str, value: str, choices: Any) -> str:
    allowed = get_args(choices)
    if value not in allowed:
        raise ValueError(f"{field} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def _threshold(field: str, value: float | None) -> float | None:
    if value is None:
        return None
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{field} must be a finite number, not {value!r}")
    return number


def _tags(tags: Tags) -> tuple[str, ...]:
    if tags is None:
        return ()
    parts = tags.split(",") if isinstance(tags, str) else [str(tag) for tag in tags]
    return tuple(part.strip() for part in parts if part.strip())


def _abilities(abilities: Iterable[str]) -> tuple[str, ...]:
    chosen = (abilities,) if isinstance(abilities, str) else tuple(abilities)
    for ability in chosen:
        if ability not in ABILITIES:
            raise ValueError(f"abilities may name {', '.join(ABILITIES)}, not {ability!r}")
    return chosen


def _process_start(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return f"{pid}@{fields[19]}"
    except (OSError, IndexError):
        return str(pid)
