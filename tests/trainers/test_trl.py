"""Attached to TRL, the hook changes nothing until told to, and then exactly what it was told."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

pytest.importorskip("trl")
import torch

import rlvitals
from rlvitals.frames import ACKNOWLEDGEMENT, RECORD
from rlvitals.records import Directive, StepRecord
from rlvitals.reduction import merge
from rlvitals.spool import Spool

pytestmark = [
    pytest.mark.trl,
    pytest.mark.slow,
    # What these libraries say about themselves and each other is not ours to mend.
    pytest.mark.filterwarnings("ignore"),
]
STEPS = 25
EXAMPLE = Path(__file__).parents[2] / "examples" / "trl_grpo.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """Load the example, whose tiny model learns to copy in seconds."""
    spec = importlib.util.spec_from_file_location("trl_grpo", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.set_num_threads(1)
    return module


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep runs from announcing themselves."""
    monkeypatch.setenv("RLVITALS_SILENT", "1")


@dataclass
class Seen:
    """Hold what a trainer did, taken independently of the hook."""

    rewards: list[np.ndarray] = field(default_factory=list)
    advantages: list[np.ndarray] = field(default_factory=list)
    modes: list[bool] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    original: list[np.ndarray] = field(default_factory=list)


@dataclass
class Recorded:
    """Hold what a run wrote down."""

    records: dict[tuple[Any, ...], StepRecord]
    acknowledgements: list[Any]

    def groups(self, phase: str = "train") -> list[StepRecord]:
        """Give the records with groups, by step."""
        found = [r for r in self.records.values() if r.groups is not None and r.phase == phase]
        return sorted(found, key=lambda r: (r.step, r.generation))

    def scalars(self, name: str, phase: str = "train") -> dict[int, Any]:
        """Give one metric by step."""
        found = [r for r in self.records.values() if name in r.scalars and r.phase == phase]
        return {r.step: r.scalars[name] for r in sorted(found, key=lambda r: r.step)}


def watch(trainer: Any, seen: Seen, *, outermost: bool) -> None:
    """Take rewards and advantages off the trainer's own methods, inside or around the hook."""
    from transformers import TrainerCallback

    generate = trainer._generate_and_score_completions

    def generating(inputs: Any) -> Any:
        output = generate(inputs)
        kept = seen.advantages if outermost else seen.original
        kept.append(output["advantages"].numpy().copy())
        return output

    trainer._generate_and_score_completions = generating
    if outermost:
        score = trainer._calculate_rewards

        def scoring(*args: Any) -> Any:
            per_function = score(*args)
            seen.rewards.append(per_function.numpy().copy())
            seen.modes.append(trainer.model.training)
            return per_function

        trainer._calculate_rewards = scoring

        class Losses(TrainerCallback):  # type: ignore[misc]
            def on_log(self, args: Any, state: Any, control: Any, logs: Any, **_: Any) -> None:
                """Keep losses and norms."""
                if "loss" in logs:
                    seen.losses.append(logs["loss"])
                    seen.norms.append(logs["grad_norm"])

        trainer.add_callback(Losses())


def train(trainer: Any, run: rlvitals.Run | None, **options: Any) -> Seen:
    """Train with or without the hook; the one who watches adds no randomness of his own."""
    import rlvitals.trainers.trl as hook

    seen = Seen()
    watch(trainer, seen, outermost=False)
    if run is not None:
        hook.attach(trainer, run, **options)
    watch(trainer, seen, outermost=True)
    trainer.train()
    return seen


def read(run: rlvitals.Run) -> Recorded:
    """Finish an offline run and read its spool back."""
    run.finish()
    assert run.spool is not None
    return read_spool(run.spool)


def read_spool(path: Path) -> Recorded:
    """Read the spool of a finished run, merged by key."""
    spool = Spool.open(path)
    recorded = Recorded({}, [])
    while frames := spool.read(spool.acknowledged):
        for frame in frames:
            if frame.kind == RECORD:
                record = msgspec.msgpack.decode(frame.body, type=StepRecord)
                key = (record.phase, record.step, record.generation)
                old = recorded.records.get(key)
                recorded.records[key] = merge(old, record) if old else record
            elif frame.kind == ACKNOWLEDGEMENT:
                recorded.acknowledgements.append(msgspec.msgpack.decode(frame.body))
        spool.acknowledge(frames[-1].end)
    spool.close()
    return recorded


@pytest.fixture
def run(tmp_path: Path) -> Iterator[rlvitals.Run]:
    """Record offline, with success from a reward of 1 on."""
    run = rlvitals.init(mode="offline", dir=tmp_path / "home", success_threshold=1.0)
    yield run
    run.finish()


def collapse_rate(rewards: np.ndarray, size: int = 8) -> float:
    """Compute the share of groups with equal rewards, in plain NumPy."""
    groups = rewards.reshape(-1, size)
    return float((groups.max(1) == groups.min(1)).mean())


@pytest.mark.parametrize("task", ["copy", "add"])
def test_observing_changes_nothing_and_sees_everything(
    task: str, example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """Rewards, losses, norms and advantages equal those without the hook; ACR is recomputed."""
    random.seed(0)
    bare = train(example.build_trainer(task, STEPS, 0, tmp_path / "bare"), None)
    hooked = train(example.build_trainer(task, STEPS, 0, tmp_path / "hooked"), run)
    assert len(bare.rewards) == STEPS
    assert np.array_equal(np.stack(bare.rewards), np.stack(hooked.rewards))
    assert np.array_equal(np.stack(bare.advantages), np.stack(hooked.advantages))
    assert bare.losses == hooked.losses
    assert bare.norms == hooked.norms

    recorded = read(run)
    records = recorded.groups()
    assert [r.step for r in records] == list(range(1, STEPS + 1))
    for record, rewards in zip(records, hooked.rewards, strict=True):
        columns = record.groups
        assert columns is not None
        collapsed = [a == b for a, b in zip(columns.reward_min, columns.reward_max, strict=True)]
        assert np.mean(collapsed) == collapse_rate(rewards)
        assert columns.n_correct == rewards.reshape(8, 8).sum(1).astype(int).tolist()
        assert record.advantage_groups == 8
        assert record.advantage_zero == sum(collapsed)
        assert columns.prompt_id is not None
        assert all(name.startswith(task) for name in columns.prompt_id)
    assert list(recorded.scalars("loss").values()) == hooked.losses
    norms = recorded.scalars("grad_norm")
    assert list(norms) == list(range(1, STEPS + 1))
    assert np.allclose(list(norms.values()), hooked.norms, rtol=1e-6)
    assert "learning_rate" in next(iter(recorded.records.values())).scalars
    assert run.losses == {}
    assert not recorded.acknowledgements


class Switch:
    """Put a directive in force once the trainer has made some generations."""

    def __init__(self, run: rlvitals.Run, at: int, **directive: Any) -> None:
        self.run, self.left = run, at
        self.directive = Directive(version=1, mode="on", **directive)

    def __call__(self, prompts: Any, completions: list[str], **_: Any) -> list[float]:
        """Reward nothing, and count."""
        self.left -= 1
        if self.left == 0:
            self.run._control.receive(self.directive)
        return [0.0] * len(completions)


def test_focal_in_mid_run_changes_advantages_exactly(
    example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """From the switch on A' = A (1 - c/n)^gamma, group by group; before it A' = A."""
    trainer = example.build_trainer("copy", STEPS, 1, tmp_path)
    switch = Switch(run, at=10, focal={"gamma": 0.5})
    trainer.reward_funcs.append(switch)
    trainer.reward_func_names.append("switch")
    trainer.reward_processing_classes.append(None)
    trainer.reward_weights = torch.ones(2)
    seen = train(trainer, run)
    changed = 0
    for index, (rewards, before, after) in enumerate(
        zip(seen.rewards, seen.original, seen.advantages, strict=True)
    ):
        if index + 1 < 10:
            assert np.array_equal(before, after)
            continue
        share = rewards.sum(1).reshape(8, 8).mean(1, keepdims=True)
        weight = np.where((share > 0) & (share < 1), (1 - share) ** 0.5, 1.0)
        assert np.allclose(after, (before.reshape(8, 8) * weight).ravel(), rtol=1e-6, atol=0)
        changed += int((weight != 1).any())
    assert changed >= 10
    recorded = read(run)
    assert [r.applied for r in recorded.groups()] == [None] * 9 + [1] * (STEPS - 9)
    assert [(a["version"], a["step"]) for a in recorded.acknowledgements] == [(1, 10)]


def test_avspo_lifts_collapsed_groups_only(
    example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """Collapsed groups get an advantage against their side, all others keep theirs bit by bit."""
    trainer = example.build_trainer("add", 8, 0, tmp_path)
    run._control.receive(
        Directive(version=1, mode="on", avspo={"threshold": 0.05, "adaptive": False})
    )
    seen = train(trainer, run)
    lifted = 0
    for rewards, before, after in zip(seen.rewards, seen.original, seen.advantages, strict=True):
        groups = rewards.reshape(8, 8)
        flat = groups.max(1) == groups.min(1)
        rows = after.reshape(8, 8)
        assert np.array_equal(before.reshape(8, 8)[~flat], rows[~flat])
        if flat.mean() > 0.05:
            assert (rows[flat & (groups.max(1) == 0)] < 0).all()
            lifted += int(flat.sum())
    assert lifted > 0
    assert all(r.advantage_zero == 0 for r in read(run).groups() if r.applied)


def test_evaluation_is_its_own_phase_and_is_never_reweighted(
    example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """Eval groups and logs are kept apart at the step they were made, with advantages untouched."""
    trainer = example.build_trainer("copy", 4, 0, tmp_path)
    run._control.receive(Directive(version=1, mode="on", focal={"gamma": 1.0}))
    trainer.eval_dataset = example.build_dataset("copy").select(range(8))
    trainer.args.eval_strategy = "steps"
    trainer.args.eval_steps = 2
    trainer.args.per_device_eval_batch_size = 64
    seen = train(trainer, run)
    for training, before, after in zip(seen.modes, seen.original, seen.advantages, strict=True):
        assert training or np.array_equal(before, after)
    recorded = read(run)
    assert {r.step for r in recorded.groups("eval")} == {2, 4}
    assert [r.step for r in recorded.groups()] == [1, 2, 3, 4]
    assert set(recorded.scalars("loss", "eval")) == {2, 4}
    assert set(recorded.scalars("loss")) == {1, 2, 3, 4}


def test_a_generation_used_for_two_steps_is_logged_once(
    example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """With num_iterations=2 there is one set of groups for two optimiser steps and two norms."""
    trainer = example.build_trainer("copy", 6, 0, tmp_path)
    trainer.num_iterations = trainer.args.num_iterations = 2
    seen = train(trainer, run)
    recorded = read(run)
    assert len(seen.rewards) == 3
    assert [r.step for r in recorded.groups()] == [1, 3, 5]
    assert list(recorded.scalars("grad_norm")) == [1, 2, 3, 4, 5, 6]


def test_a_reward_that_no_function_gave_is_missing(
    example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """None from every function is no reward; None from one counts as nothing beside the other."""
    trainer = example.build_trainer("copy", 1, 0, tmp_path)

    def nothing_for_the_first(completions: list[str], **_: Any) -> list[float | None]:
        return [None, *[0.5] * (len(completions) - 1)]

    trainer.reward_funcs[:] = [nothing_for_the_first]
    trainer.reward_func_names[:] = ["half"]
    train(trainer, run)
    [record] = read(run).groups()
    assert record.groups is not None
    assert record.groups.size == [7] + [8] * 7
    assert record.errored == 1


def test_detach_restores_the_trainer(
    example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """After detach the trainer's methods, accelerator and callbacks are as before."""
    import rlvitals.trainers.trl as hook

    trainer = example.build_trainer("copy", 1, 0, tmp_path)
    before = (set(vars(trainer)), set(vars(trainer.accelerator)))
    callbacks = list(trainer.callback_handler.callbacks)
    handle = hook.attach(trainer, run)
    with pytest.raises(ValueError, match="detach"):
        hook.attach(trainer, run)
    handle.detach()
    handle.detach()
    assert (set(vars(trainer)), set(vars(trainer.accelerator))) == before
    assert trainer.callback_handler.callbacks == callbacks
    hook.attach(trainer, run).detach()


def test_a_verifier_decides_success(example: ModuleType, run: rlvitals.Run, tmp_path: Path) -> None:
    """With a named verifier a format bonus does not make a rollout correct."""
    trainer = example.build_trainer("copy", 1, 0, tmp_path)

    def bonus(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    trainer.reward_funcs.append(bonus)
    trainer.reward_func_names.append("bonus")
    trainer.reward_processing_classes.append(None)
    trainer.reward_weights = torch.tensor([1.0, 1.0])
    seen = train(trainer, run, verifier="first_word_is_right")
    [record] = read(run).groups()
    assert record.groups is not None
    right = seen.rewards[0][:, 0].reshape(8, 8).sum(1).astype(int).tolist()
    assert record.groups.n_correct == right
    assert min(record.groups.reward_min) >= 1.0


@pytest.mark.parametrize("rewards", [None, torch.zeros(8, 1)])
def test_a_trainer_that_gives_something_else_trains_on(
    rewards: Any, example: ModuleType, run: rlvitals.Run, tmp_path: Path
) -> None:
    """A subclass without rewards or advantages in their usual places is counted, not broken."""
    import rlvitals.trainers.trl as hook

    trainer = example.build_trainer("copy", 1, 0, tmp_path)
    trainer._calculate_rewards = lambda inputs, *rest, **named: rewards
    trainer._generate_and_score_completions = lambda inputs, **named: {
        "given": trainer._calculate_rewards(inputs, more=1)
    }
    hook.attach(trainer, run)
    assert trainer._generate_and_score_completions([], named=2) == {"given": rewards}
    assert run.losses == {"hook_failed": 1}


def test_other_trainers_are_refused_with_the_way_out(run: rlvitals.Run) -> None:
    """A trainer without the hooks is named, and the message says what to do instead."""
    import rlvitals.trainers.trl as hook

    with pytest.raises(TypeError, match="log_groups"):
        hook.attach(object(), run)


def test_two_ranks_act_as_one(tmp_path: Path) -> None:
    """A group on both ranks is whole, one rank emits, and both apply the same decision."""
    script = Path(__file__).with_name("two_ranks.py")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *launcher, str(script), str(tmp_path), str(EXAMPLE)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=150, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ranks = [np.load(tmp_path / f"rank{rank}.npz") for rank in (0, 1)]
    assert np.array_equal(ranks[0]["rewards"], ranks[1]["rewards"])
    before = np.concatenate([rank["before"] for rank in ranks], axis=1)
    after = np.concatenate([rank["after"] for rank in ranks], axis=1)
    rewards = ranks[0]["rewards"][:, :, 0].reshape(6, 3, 8)
    assert np.array_equal(before[:3], after[:3])
    share = rewards[3:].mean(2, keepdims=True)
    mixed = (share > 0) & (share < 1)
    weighed = before[3:].reshape(3, 3, 8) * (1 - share)
    now = after[3:].reshape(3, 3, 8)
    assert np.allclose(np.where(mixed, now, 0), np.where(mixed, weighed, 0), rtol=1e-6)
    assert (now[np.broadcast_to(share == 0, now.shape)] < 0).all()
    recorded = [read_spool(next((tmp_path / f"rank{n}" / "spool").glob("*.spool"))) for n in (0, 1)]
    groups = recorded[0].groups()
    assert [r.groups.reward_mean for r in groups if r.groups] == rewards.mean(2).tolist()
    assert [r.applied for r in groups] == [None] * 3 + [1] * 3
    assert list(recorded[0].scalars("grad_norm")) == [1, 2, 3, 4, 5, 6]
    assert not recorded[1].records
