"""The module-level face: one current run, as users of other trackers expect it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlvitals import settings
from rlvitals.losses import Losses
from rlvitals.run import Level, Run, State

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

_current: Run | None = None
_losses = Losses()


def init(
    project: str | None = None,
    name: str | None = None,
    *,
    id: str | None = None,  # noqa: A002 - wandb's name for it
    config: Any = None,
    tags: settings.Tags = None,
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
    abilities: Iterable[str] = settings.ABILITIES,
) -> Run:
    """Start a run and return at once, whether a service answers or not.

    `id` is your own key for the run: the same one resumes it (`resume` "allow", the default,
    "never" or "must"). `mode` is "online", "offline" (record for `rlvitals sync`) or "disabled".
    `dir` is the folder of spools. A rollout is correct from `success_threshold` on and has
    failed up to `failure_threshold`. `source` names this process among several of one run (its
    rank by default). `abilities` are the remedies that the trainer's use of `reweight` can apply.
    RLVITALS_URL, _TOKEN, _TOKEN_FILE, _MODE, _PROJECT, _NAME, _RUN_ID, _HOME, _RESUME and _TAGS
    stand in for arguments that are not given. RLVITALS_ATTEMPT names this start of the job where
    ranks cannot tell it from their launcher's variables, RLVITALS_SILENT keeps notices off
    stderr. Raises ValueError for settings that cannot be meant, and for nothing else.
    """
    global _current  # noqa: PLW0603 - the one current run of the module-level functions
    chosen = settings.resolve(
        project=project,
        name=name,
        id=id,
        tags=tags,
        group=group,
        notes=notes,
        resume=resume,
        mode=mode,
        url=url,
        token=token,
        dir=dir,
        success_threshold=success_threshold,
        failure_threshold=failure_threshold,
        source=source,
        abilities=abilities,
    )
    _current = Run(chosen, config)
    return _current


def log(metrics: Mapping[str, Any], step: Any = None, **kwargs: Any) -> None:
    """Record named numbers in the current run; see Run.log."""
    if run := _run("log"):
        run.log(metrics, step, **kwargs)


def log_groups(rewards: Any, step: Any = None, **kwargs: Any) -> None:
    """Record groups of rollouts in the current run; see Run.log_groups."""
    if run := _run("log_groups"):
        run.log_groups(rewards, step, **kwargs)


def reweight(advantages: Any, rewards: Any, **kwargs: Any) -> Any:
    """Give the advantages to train with; see Run.reweight."""
    run = _run("reweight")
    return run.reweight(advantages, rewards, **kwargs) if run else advantages


def alert(title: str, text: str = "", level: Level = "warning", step: Any = None) -> None:
    """Raise an alert in the current run; see Run.alert."""
    if run := _run("alert"):
        run.alert(title, text, level, step)


def finish(exit_code: int | None = None, *, state: State | None = None) -> None:
    """Finish the current run; see Run.finish."""
    global _current
    run, _current = _current, None
    if run is not None:
        run.finish(exit_code, state=state)


def _run(call: str) -> Run | None:
    if _current is None:
        _losses.warn("no run", f"rlvitals.{call} was called before rlvitals.init; ignored")
    return _current
