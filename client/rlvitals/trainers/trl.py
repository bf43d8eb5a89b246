"""Attach a run to TRL's GRPOTrainer (0.19 and later) and to subclasses that keep its two hooks.

Two bound methods of the trainer are wrapped, `_calculate_rewards` and
`_generate_and_score_completions`, together with the accelerator's `clip_grad_norm_`, and one
callback forwards the logs. After these methods the trainer shuffles its rollouts, so nothing
later knows what a group is.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import broadcast_object_list, gather_object
from transformers import TrainerCallback

from rlvitals.trainers.torch import whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlvitals.run import Run

ID_COLUMNS = ("id", "uid", "prompt_id", "problem_id", "index")
SUMMARY_KEYS = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "train_loss")
HOOKS = ("_calculate_rewards", "_generate_and_score_completions", "accelerator", "num_generations")
EVAL_PREFIX = "eval_"


def attach(trainer: Any, run: Run, *, verifier: str | None = None) -> Handle:
    """Stream a GRPOTrainer's groups, gradient norms and logs, and let directives reweight it.

    Call it on every rank, before `trainer.train()`; only the main process emits. `verifier` names
    the reward function that says whether a rollout is correct (from the run's
    `success_threshold` on); without it the threshold is held against the weighted total. Raises
    TypeError for a trainer that cannot be attached to and ValueError for a wrong `verifier` or a
    second attachment.
    """
    _check(trainer)
    return Handle(trainer, run, _verifier_index(trainer, run, verifier))


class Handle:
    """Hold an attachment; `detach` puts the trainer back as it was."""

    def __init__(self, trainer: Any, run: Run, verifier: int | None) -> None:
        self._trainer, self._run, self._verifier = trainer, run, verifier
        self._rewards: torch.Tensor | None = None
        self._prompt_ids: list[str] = []
        self._clipped_steps: set[int] = set()
        self._undo: list[Callable[[], None]] = []
        self._callback = LogForwarder(self)
        self._wrap(trainer, "_calculate_rewards", self._calculate_rewards)
        self._wrap(trainer, "_generate_and_score_completions", self._generate)
        self._wrap(trainer.accelerator, "clip_grad_norm_", self._clip)
        trainer.add_callback(self._callback)
        trainer.rlvitals_handle = self

    def detach(self) -> None:
        """Restore the trainer; calling it again does nothing."""
        while self._undo:
            self._undo.pop()()
            if not self._undo:
                self._trainer.remove_callback(self._callback)
                del self._trainer.rlvitals_handle

    @property
    def step(self) -> int:
        """Give the optimiser step that is being made, counted from 1 as the trainer logs it.

        In evaluation it is the last one made.
        """
        made = int(self._trainer.state.global_step)
        return made + 1 if self._trainer.model.training else made

    def forward_logs(self, logs: dict[str, Any], step: int) -> None:
        """Send what the trainer logs, evaluation under its own phase."""
        evaluated = {
            name.removeprefix(EVAL_PREFIX): value
            for name, value in logs.items()
            if name.startswith(EVAL_PREFIX)
        }
        trained = {name: value for name, value in logs.items() if not name.startswith(EVAL_PREFIX)}
        for name in SUMMARY_KEYS:
            if name in trained:
                self._run.summary[name] = trained.pop(name)
        if step in self._clipped_steps:
            # The wrap saw each step's own norm; the log repeats one of them.
            trained.pop("grad_norm", None)
        self._clipped_steps.clear()
        if trained:
            self._run.log(trained, step=step)
        if evaluated:
            self._run.log(evaluated, step=step, phase="eval")

    def _wrap(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        inner = getattr(owner, name)
        own = name in vars(owner)

        def undo() -> None:
            if own:
                setattr(owner, name, inner)
            else:
                delattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return replacement(inner, *args, **kwargs)

        setattr(owner, name, wrapped)
        self._undo.append(undo)

    def _calculate_rewards(
        self, inner: Callable[..., Any], inputs: Any, *rest: Any, **named: Any
    ) -> Any:
        rewards = inner(inputs, *rest, **named)
        self._rewards, self._prompt_ids = None, []
        with self._run.guard("rewards were not observed"):
            self._rewards = rewards.detach()
        with self._run.guard("prompts have no ids"):
            self._prompt_ids = [prompt_id(row) for row in inputs]
        return rewards

    def _generate(self, inner: Callable[..., Any], *inputs: Any, **named: Any) -> Any:
        self._rewards = None
        output = inner(*inputs, **named)
        if self._rewards is not None:
            with self._run.guard("a generation was not observed"):
                self._observe(output, output["advantages"], self._rewards)
        return output

    def _clip(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        norm = inner(*args, **kwargs)
        if norm is not None:
            gathered = whole(norm)
            if self._trainer.accelerator.is_main_process:
                self._run.log({"grad_norm": gathered}, step=self.step)
                self._clipped_steps.add(self.step)
        return norm

    def _observe(
        self, output: dict[str, Any], advantages: torch.Tensor, per_function: torch.Tensor
    ) -> None:
        """Log the groups of one generation and put reweighted advantages in their place.

        Every collective runs on every rank, whatever the main process finds.
        """
        accelerator = self._trainer.accelerator
        several = accelerator.num_processes > 1
        ids = gather_object(self._prompt_ids) if several else self._prompt_ids
        everywhere = accelerator.gather(advantages) if several else advantages
        weighed = everywhere
        if accelerator.is_main_process:
            with self._run.guard("a generation was not observed"):
                weighed = self._emit(everywhere, per_function, ids)
        changed = weighed is not everywhere
        if several:
            news = broadcast_object_list([weighed.cpu() if changed else None])[0]
            changed, weighed = news is not None, everywhere if news is None else news
        if changed:
            size = len(advantages)
            first = accelerator.process_index * size
            output["advantages"] = weighed[first : first + size].to(advantages)

    def _emit(
        self, advantages: torch.Tensor, per_function: torch.Tensor, ids: list[str]
    ) -> torch.Tensor:
        trainer, run = self._trainer, self._run
        training = bool(trainer.model.training)
        size = generations(trainer, training=training)
        rewards = weighted_rewards(per_function, trainer.reward_weights)
        if len(rewards) % size:
            return advantages
        grouped = rewards.view(-1, size)
        correct = self._correct(per_function, size)
        run.log_groups(
            grouped,
            step=self.step,
            correct=correct,
            prompt_ids=ids[::size] if len(ids) == len(rewards) else None,
            phase="train" if training else "eval",
        )
        if not training:
            return advantages
        if advantages.shape != rewards.shape:
            run.refuse("advantages: this trainer gives one a token, not one a rollout", self.step)
            return advantages
        return self._reweighted(advantages, grouped, correct)

    def _reweighted(
        self, advantages: torch.Tensor, grouped: torch.Tensor, correct: Any
    ) -> torch.Tensor:
        run, scaling = self._run, reward_scaling(self._trainer)
        directive = run.directive
        if directive is not None and directive.avspo is not None and scaling == "batch":
            run.refuse("avspo: rewards are scaled by the batch, so no group has a std", self.step)
        given = advantages.view(grouped.shape)
        weighed = run.reweight(
            given, grouped, step=self.step, correct=correct, std_division=scaling == "group"
        )
        return advantages if weighed is given else weighed.view(-1)

    def _correct(self, per_function: torch.Tensor, size: int) -> list[list[bool | None]] | None:
        threshold = self._run.settings.success_threshold
        if self._verifier is None or threshold is None:
            return None
        column = per_function[:, self._verifier].view(-1, size).tolist()
        return [
            [None if math.isnan(value) else value >= threshold for value in row] for row in column
        ]


class LogForwarder(TrainerCallback):  # type: ignore[misc]
    """Forward what the trainer logs."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def on_log(
        self,
        args: Any,  # noqa: ARG002 - the signature is the trainer's
        state: Any,
        control: Any,  # noqa: ARG002
        logs: Any = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Send one log line; only the main process does."""
        if logs and state.is_world_process_zero:
            self._handle.forward_logs(dict(logs), int(state.global_step))


def weighted_rewards(per_function: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Give the weighted sum of reward functions, (n,) from (n, functions).

    A function that returned None (NaN) counts as nothing; a rollout where all did has no reward.
    """
    total = (per_function * weights.to(per_function).unsqueeze(0)).nansum(1)
    return total.masked_fill(per_function.isnan().all(1), torch.nan)


def generations(trainer: Any, *, training: bool) -> int:
    """Give the rollouts a group of this trainer."""
    usual = int(trainer.num_generations)
    return usual if training else int(getattr(trainer, "num_generations_eval", None) or usual)


def reward_scaling(trainer: Any) -> str:
    """Say by what the trainer divides centred rewards: "group", "batch" or "none"."""
    if getattr(trainer, "multi_objective_aggregation", "") == "normalize_then_sum":
        return "batch"
    scaling = trainer.scale_rewards
    if isinstance(scaling, bool):
        return "group" if scaling else "none"
    return str(scaling)


def prompt_id(row: Any) -> str:
    """Give the id column of a dataset row, else a hash of its prompt."""
    for name in ID_COLUMNS:
        if isinstance(row.get(name), str | int):
            return str(row[name])
    return hashlib.blake2b(repr(row.get("prompt")).encode(), digest_size=8).hexdigest()


def _check(trainer: Any) -> None:
    name = type(trainer).__name__
    missing = [hook for hook in HOOKS if not hasattr(trainer, hook)]
    if missing or "RLOO" in name or "Async" in name:
        lacks = f" (no {', '.join(missing)})" if missing else ""
        raise TypeError(
            f"cannot attach to {name}{lacks}: this works with TRL's GRPOTrainer from 0.19 on and "
            "subclasses that keep its hooks. Call run.log_groups and run.reweight yourself instead"
        )
    if hasattr(trainer, "rlvitals_handle"):
        raise ValueError("a run is attached to this trainer already; detach it first")


def _verifier_index(trainer: Any, run: Run, verifier: str | None) -> int | None:
    if verifier is None:
        return None
    names = [str(name) for name in trainer.reward_func_names]
    if verifier not in names:
        raise ValueError(f"verifier must be one of {', '.join(names)}, not {verifier!r}")
    if run.settings.success_threshold is None:
        raise ValueError("verifier needs a success_threshold at rlvitals.init")
    return names.index(verifier)
