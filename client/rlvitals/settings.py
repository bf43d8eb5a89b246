"""Settle what a run is called, where it goes and how, from arguments and environment."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from rlvitals import discovery
from rlvitals.launch import launch_identity, rank

if TYPE_CHECKING:
    from pathlib import Path

Mode = Literal["online", "offline", "disabled"]
Resume = Literal["never", "allow", "must"]
ABILITIES = ("focal", "avspo")
LONGEST_SOURCE = 64
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
    key = _text(id) or environ.get("RLVITALS_RUN_ID") or _run_key(launch)
    return Settings(
        project=_text(project) or environ.get("RLVITALS_PROJECT") or "default",
        name=_text(name) or environ.get("RLVITALS_NAME") or None,
        key=key,
        attempt_key=environ.get("RLVITALS_ATTEMPT") or launch or uuid.uuid4().hex,
        source=_source(source, environ),
        mode=cast("Mode", _one_of("mode", mode or environ.get("RLVITALS_MODE") or "online", Mode)),
        resume=cast(
            "Resume",
            _one_of("resume", resume or environ.get("RLVITALS_RESUME") or "allow", Resume),
        ),
        home=discovery.folder(dir) if dir else discovery.home(environ),
        url=_url(url, environ),
        token=_text(token),
        tags=_tags(tags if tags is not None else environ.get("RLVITALS_TAGS")),
        group=_text(group),
        notes=_text(notes),
        success_threshold=_threshold("success_threshold", success_threshold),
        failure_threshold=_threshold("failure_threshold", failure_threshold) or 0.0,
        abilities=_abilities(abilities),
    )


def _url(given: Any, environ: Mapping[str, str]) -> str | None:
    """Look at the address that will be used; only a given one is kept, the other may yet change."""
    chosen = discovery.find_url(_text(given), environ)
    if chosen is not None:
        discovery.checked_url(chosen)
    return _text(given)


def _text(value: Any) -> str | None:
    """Take a number for its text: a seed may be a name, a rank a group."""
    return None if value is None else str(value)


def _run_key(launch: str | None) -> str:
    return f"launch-{launch}" if launch else uuid.uuid4().hex[:12]


def _source(source: str | int | None, environ: Mapping[str, str]) -> str:
    text = rank(environ) if source is None else str(source)
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
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{field} must be a finite number, not {value!r}")
    return number


def _tags(tags: Tags) -> tuple[str, ...]:
    if tags is None:
        return ()
    if not isinstance(tags, Iterable):
        raise ValueError(f"tags must be texts, not {tags!r}")  # noqa: TRY004 - init's one error
    parts = tags.split(",") if isinstance(tags, str) else [str(tag) for tag in tags]
    return tuple(part.strip() for part in parts if part.strip())


def _abilities(abilities: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(abilities, Iterable):
        raise ValueError(f"abilities must be names, not {abilities!r}")  # noqa: TRY004
    chosen = (abilities,) if isinstance(abilities, str) else tuple(abilities)
    for ability in chosen:
        if ability not in ABILITIES:
            raise ValueError(f"abilities may name {', '.join(ABILITIES)}, not {ability!r}")
    return chosen
