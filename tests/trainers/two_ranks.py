"""Train on two ranks whose middle group straddles both; started by torchrun from a test."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rlvitals
import rlvitals.trainers.trl as hook
from rlvitals.records import Directive


def main(folder: Path, example_path: str) -> None:
    """Train six steps and keep what this rank saw."""
    spec = importlib.util.spec_from_file_location("trl_grpo", example_path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.distributed.init_process_group("gloo")
    build = example.GRPOConfig

    def smaller(**options: Any) -> Any:
        return build(**options | {"per_device_train_batch_size": 12, "ddp_backend": "gloo"})

    example.GRPOConfig = smaller
    trainer = example.build_trainer("copy", 6, 0, folder / f"out{rank}")
    run = rlvitals.init(mode="offline", dir=folder / f"rank{rank}", success_threshold=1.0)
    before: list[np.ndarray] = []
    after: list[np.ndarray] = []
    rewards: list[np.ndarray] = []
    generate, score = trainer._generate_and_score_completions, trainer._calculate_rewards

    def generating(inputs: Any) -> Any:
        # Only the main process hears of a directive, as with a click that reached it first.
        if rank == 0 and len(before) == 3:
            run._control.receive(
                Directive(version=1, mode="on", focal={"gamma": 1.0}, avspo={"threshold": 0.0})
            )
        output = generate(inputs)
        before.append(output["advantages"].numpy().copy())
        return output

    def scoring(*args: Any) -> Any:
        per_function = score(*args)
        rewards.append(per_function.numpy().copy())
        return per_function

    trainer._generate_and_score_completions = generating
    trainer._calculate_rewards = scoring
    hook.attach(trainer, run)
    hooked = trainer._generate_and_score_completions

    def around(inputs: Any) -> Any:
        output = hooked(inputs)
        after.append(output["advantages"].numpy().copy())
        return output

    trainer._generate_and_score_completions = around
    trainer.train()
    run.finish()
    np.savez(folder / f"rank{rank}.npz", before=before, after=after, rewards=rewards)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
