"""The hook a trainer holds: copies, queues, returns; never raises, never waits."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import sys
import threading
import time
import uuid
import weakref
from typing import TYPE_CHECKING, Any, Literal, cast

from rlvitals import capture
from rlvitals.control import Control
from rlvitals.items import Advantages, Finish, Item, Rewards, Scalars
from rlvitals.losses import Guard, Losses, describe
from rlvitals.numbering import Numbering, checked_step
from rlvitals.outbox import Outbox, Store
from rlvitals.records import AlertRecord, Directive, Phase, Stage
from rlvitals.sender import Sender, notice
from rlvitals.settings import Settings, clean_text, plain
from rlvitals.spool import Header, Spool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from rlvitals.delivery import Delivery, Registered
    from rlvitals.listener import Listener
    from rlvitals.reduction import Reducer
    from rlvitals.transport import Transport

Level = Literal["info", "warning", "critical"]
State = Literal["finished", "failed", "crashed"]
PHASES, STAGES, LEVELS = ("train", "eval"), ("sampled", "trained"), ("info", "warning", "critical")

LOG_KINDS = {phase: f"log/{phase}" for phase in PHASES}
GROUP_KINDS = {stage: {phase: f"{stage}/{phase}" for phase in PHASES} for stage in STAGES}
REWEIGHT_KINDS = {phase: f"reweight/{phase}" for phase in PHASES}

_live: weakref.WeakSet[Run] = weakref.WeakSet()


class Run:
    """One training job's line to the service.

    After construction nothing raises: what cannot be used is dropped, counted by reason in
    `losses`, and warned about once a reason. In a forked child every method does nothing but
    count; call `rlvitals.init` there for a line of its own.
    """

    def __init__(self, settings: Settings, config: Any = None) -> None:
        self.settings = settings
        self._losses = Losses()
        self.config: dict[str, Any] = _config(config, self._losses)
        self.summary: dict[str, Any] = {}
        self._numbering = Numbering()
        self._closed = settings.mode == "disabled"
        self._deaf = ""  # why calls are ignored, once they are
        self._finish_lock = threading.Lock()
        self._registered: Registered | None = None
        self._listener: Listener | None = None
        self._started_at = time.time()
        self._control = Control(self._put, settings.source, settings.abilities)
        self._outbox: Outbox | None = None
        self._sender: Sender | None = None
        if settings.mode != "disabled":
            self._begin()

    def log(
        self,
        metrics: Mapping[str, Any],
        step: Any = None,
        *,
        phase: Phase = "train",
        commit: bool | None = None,
    ) -> None:
        """Record named numbers of a step.

        Takes Python and NumPy numbers, tensors of one value on any device, texts of numbers and
        None; NaN and infinities keep their class. Without `step` the last one given holds, or a
        counter of the run's own when none ever was; `commit=False` keeps that counter in place.
        """
        if self._closed:
            return self._ignore()
        try:
            kind = LOG_KINDS[phase]
            at = self._numbering.step(step, None if commit is False else kind)
            self._put(Scalars(at, phase, time.time(), capture.copy_scalars(metrics)))
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("log", error)

    def log_groups(
        self,
        rewards: Any,
        step: Any = None,
        *,
        group_ids: Any = None,
        correct: Any = None,
        prompt_ids: Any = None,
        phase: Phase = "train",
        stage: Stage = "sampled",
        generation: Any = None,
        filtered: int = 0,
        dropped: int = 0,
    ) -> None:
        """Record the rewards of groups of rollouts.

        `rewards` is (n_groups, group_size), ragged rows, or flat with `group_ids`; None and NaN
        are missing rewards. `correct` has the layout of `rewards` and defines success; without it
        the run's `success_threshold` does. `stage` is "sampled" before dynamic filtering and
        "trained" after it. `filtered` counts groups removed for carrying no signal, `dropped`
        groups lost otherwise. Several calls in one step are several generations unless
        `generation` says otherwise; the same generation at a later step counts once.
        """
        if self._closed:
            return self._ignore()
        try:
            kind = GROUP_KINDS[stage][phase]
            at = self._numbering.step(step, kind)
            self._put(
                Rewards(
                    at,
                    phase,
                    stage,
                    self._numbering.generation(generation, kind, at),
                    generation is not None,
                    time.time(),
                    capture.copy_values(rewards),
                    capture.copy_values(group_ids),
                    capture.copy_values(correct),
                    capture.copy_values(prompt_ids),
                    checked_step(filtered, "filtered"),
                    checked_step(dropped, "dropped"),
                )
            )
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("log_groups", error)

    def reweight(
        self,
        advantages: Any,
        rewards: Any,
        *,
        group_ids: Any = None,
        step: Any = None,
        correct: Any = None,
        success_threshold: float | None = None,
        phase: Phase = "train",
        generation: Any = None,
        std_division: bool = True,
    ) -> Any:
        """Give the advantages to train with: the same object unless a directive is on.

        `advantages` and `rewards` have the same shape, (n_groups, group_size) or flat with
        `group_ids`. What comes back has the kind, dtype and device of what was given. Any trouble
        gives the advantages back unchanged and tells the service why. Without a service the last
        directive stays in force until it expires.
        """
        if self._closed:
            self._ignore()
            return advantages
        try:
            kind = REWEIGHT_KINDS[phase]
            at = self._numbering.step(step, kind)
            given = None if generation is None else checked_step(generation, "generation")
            index = self._numbering.generation(generation, kind, at)
            directive = self._control.decide(phase, at, given)
            if directive is not None:
                from rlvitals.reweighting import Reweighting

                return Reweighting(self._control, self._put, self.settings).apply(
                    directive,
                    advantages,
                    rewards,
                    step=at,
                    generation=index,
                    group_ids=group_ids,
                    correct=correct,
                    success_threshold=success_threshold,
                    std_division=std_division,
                )
            self._note_advantages(advantages, rewards, group_ids, at, phase, index)
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("reweight", error)
        return advantages

    def refuse(self, reason: str, step: Any = None) -> None:
        """Tell the service that the trainer cannot do what the directive in force asks."""
        directive = self._control.directive
        if self._closed or directive is None:
            return
        with self._losses.guard("refuse_refused", "a refusal was dropped"):
            at = self._numbering.current if step is None else checked_step(step)
            self._control.refuse(directive.version, at, clean_text(str(reason)))

    def alert(self, title: str, text: str = "", level: Level = "warning", step: Any = None) -> None:
        """Raise an alert of your own."""
        if self._closed:
            return self._ignore()
        try:
            at = self._numbering.current if step is None else checked_step(step)
            title, text = clean_text(str(title))[:200] or "alert", clean_text(str(text))[:10_000]
            self._put(AlertRecord(title=title, text=text, level=_level(level), step=at))
        except Exception as error:  # noqa: BLE001 - nothing reaches training
            self._refused("alert", error)
        return None

    @property
    def directive(self) -> Directive | None:
        """Give the newest directive heard of, without asking anybody."""
        return self._control.directive

    @property
    def id(self) -> str | None:
        """Give the service's id of the run; None until it answered."""
        return self._registered.id if self._registered else None

    @property
    def key(self) -> str:
        """Give the key that makes resuming find this run again."""
        return self.settings.key

    @property
    def name(self) -> str | None:
        """Give the run's name; the service chooses one when none was given."""
        return (self._registered and self._registered.name) or self.settings.name

    @property
    def attempt(self) -> int | None:
        """Give the number of this attempt; None until the service answered."""
        return self._registered.attempt if self._registered else None

    @property
    def url(self) -> str | None:
        """Give the run's page; None until the service answered."""
        return self._registered.dashboard_url if self._registered else None

    @property
    def spool(self) -> Path | None:
        """Give the file that holds what is still to be sent."""
        held = self._outbox.store.spool if self._outbox else None
        return held.path if held else None

    @property
    def losses(self) -> dict[str, int]:
        """Count what was dropped in this process, by reason."""
        return self._losses.snapshot()

    def guard(self, what: str) -> Guard:
        """Give a with-block in which any error is counted as a loss; for hooks of trainers."""
        return self._losses.guard("hook_failed", what)

    def wait_registered(self, seconds: float = 5.0) -> bool:
        """Wait until the service knows this run; False when it did not answer in time."""
        return self._sender is not None and self._sender.registered.wait(seconds)

    def finish(self, exit_code: int | None = None, *, state: State | None = None) -> None:
        """Send what is left and close the run, within 5 seconds in all.

        What could not be sent by then stays on disk, and a line says how to send it. Calling it
        again does nothing.
        """
        with self._losses.guard("internal", "finish failed"), self._finish_lock:
            if not self._closed:
                self._end(state or ("failed" if exit_code else "finished"), exit_code)

    def __enter__(self) -> Self:
        """Use the run as a block; an exception in it marks the run failed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the run and let the exception through."""
        failed = kind is not None and not _clean_exit(error)
        self.finish(1 if failed else 0, state="failed" if failed else "finished")

    def _begin(self) -> None:
        settings = self.settings
        self._outbox = Outbox(self._reducer, self._open_spool, self._losses, settings.queue_items)
        if settings.mode == "online":
            self._sender = Sender(settings, self._delivery, self._losses)
            self._sender.on_registered = self._on_registered
            self._outbox.on_write = self._sender.nudge
        self._outbox.start()
        if self._sender is not None:
            self._sender.start()
        _live.add(self)

    def _reducer(self) -> Reducer:
        from rlvitals.reduction import Reducer

        settings = self.settings
        return Reducer(
            self._losses, settings.source, settings.success_threshold, settings.failure_threshold
        )

    def _delivery(self) -> Delivery:
        from rlvitals.delivery import Delivery

        store = self._outbox.store if self._outbox else Store(self._losses)
        return Delivery(store, self._registration(), self._losses, self._control.receive)

    def _put(self, item: Item) -> None:
        if self._outbox is not None:
            self._outbox.put(item)

    def _refused(self, call: str, error: Exception) -> None:
        said = describe(error)
        if isinstance(error, KeyError):
            said = f"no phase or stage is called {said} (phases: train, eval; stages: {STAGES})"
        self._losses.add(f"{call}_refused", f"a call of {call} had no effect: {said}")

    def _ignore(self) -> None:
        if self._deaf:
            self._losses.add(self._deaf, "" if self._deaf == "forked" else "the run has finished")

    def _note_advantages(
        self, advantages: Any, rewards: Any, group_ids: Any, step: int, phase: Phase, index: int
    ) -> None:
        if phase != "train":
            return
        self._put(
            Advantages(
                step,
                phase,
                index,
                time.time(),
                capture.copy_values(advantages),
                capture.copy_values(rewards),
                capture.copy_values(group_ids),
            )
        )

    def _open_spool(self) -> Spool:
        settings = self.settings
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._started_at))
        name = f"{stamp}-{os.getpid()}-{uuid.uuid4().hex[:8]}.spool"
        header = Header(
            url=settings.url or os.environ.get("RLVITALS_URL"),
            mode=settings.mode,
            host=socket.gethostname(),
            pid=os.getpid(),
            attempt_key=settings.attempt_key,
            registration=self._registration(),
        )
        return Spool.create(settings.home / "spool" / name, header, settings.spool_bytes)

    def _registration(self) -> dict[str, Any]:
        from rlvitals import __version__

        settings = self.settings
        wanted = {
            "project": clean_text(settings.project),
            "key": clean_text(settings.key),
            "name": settings.name and clean_text(settings.name),
            "config": self.config or None,
            "tags": [clean_text(tag) for tag in settings.tags] or None,
            "group": settings.group and clean_text(settings.group),
            "notes": settings.notes and clean_text(settings.notes),
            "resume": settings.resume,
            "attempt_key": settings.attempt_key,
            "source": clean_text(settings.source),
            "success_threshold": settings.success_threshold,
            "failure_threshold": settings.failure_threshold,
            "abilities": list(settings.abilities),
            "started_at": self._started_at,
            "rlvitals_version": __version__,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def _on_registered(self, registered: Registered, transport: Transport) -> None:
        from rlvitals.listener import Listener

        self._registered = registered
        if not os.environ.get("RLVITALS_SILENT"):
            where = registered.dashboard_url or transport.url
            notice(f"run {registered.name or self.key!r} is at {where}")
        if self.settings.abilities:
            self._listener = Listener(transport, registered.id, self._control)
            self._listener.start()
        bring_in = threading.Thread(
            target=_bring_in_orphans,
            args=(self.settings.home / "spool", transport),
            name="rlvitals-replay",
            daemon=True,
        )
        bring_in.start()

    def _end(self, state: str, exit_code: int | None) -> None:
        deadline = time.monotonic() + self.settings.finish_seconds
        outbox = self._outbox
        if outbox is None:
            return
        self._closed, self._deaf = True, "after_finish"
        outbox.put(Finish(state, exit_code, plain(self.summary)))
        written = outbox.finished.wait(self.settings.finish_seconds)
        complete = False
        if self._sender is not None:
            self._sender.finish()
            complete = written and self._sender.wait_done(deadline)
            self._sender.stop()
        if self._listener is not None:
            self._listener.stop()
        _live.discard(self)
        self._leave_spool(complete)

    def _leave_spool(self, complete: bool) -> None:
        spool = self._outbox.store.spool if self._outbox else None
        if complete:
            if spool is not None:
                spool.delete()
            return
        where = f"in {spool.path}" if spool else "in memory only and are lost"
        if spool is not None:
            spool.close()
        if self.settings.mode == "offline":
            if not os.environ.get("RLVITALS_SILENT"):
                notice(f"the run is recorded {where}; `rlvitals sync` sends it")
            return
        hint = " `rlvitals sync` sends them." if spool else ""
        self._losses.warn("unsent", f"not everything was sent; the records stay {where}.{hint}")

    def abandon_in_child(self) -> None:
        """Turn a forked copy deaf without touching the parent's file, lock or sockets."""
        self._closed, self._deaf = True, "forked"
        self._finish_lock = threading.Lock()
        self._losses = Losses()
        spool = self._outbox.store.spool if self._outbox else None
        if spool is not None:
            spool.abandon_in_child()
        self._outbox = self._sender = self._listener = None


def _level(level: Any) -> Level:
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    return cast("Level", level)


def _config(config: Any, losses: Losses) -> dict[str, Any]:
    with losses.guard("config_unreadable", "config was dropped"):
        ready = plain(config)
        if ready is not None:
            return ready if isinstance(ready, dict) else {"config": ready}
    return {}


def _clean_exit(error: BaseException | None) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _bring_in_orphans(folder: Path, transport: Transport) -> None:
    from rlvitals.replay import bring_in_orphans

    with contextlib.suppress(Exception):  # they stay on disk, and `rlvitals sync` says why
        bring_in_orphans(folder, transport, transport.url)


def _finish_all() -> None:
    """Finish every live run when the interpreter ends, within one run's time in all."""
    failed = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    threads = [
        threading.Thread(target=run.finish, args=(1 if failed else None,), daemon=True)
        for run in list(_live)[1:]
    ]
    with contextlib.suppress(RuntimeError):  # no new threads at shutdown: one after the other
        for thread in threads:
            thread.start()
    for run in list(_live):
        run.finish(1 if failed else None)
    for thread in threads:
        if thread.ident is not None:
            thread.join(1.0)


def _abandon_all_in_child() -> None:
    for run in list(_live):
        with contextlib.suppress(Exception):
            run.abandon_in_child()
    _live.clear()


atexit.register(_finish_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all_in_child)
