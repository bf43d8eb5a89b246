"""Other people's clients, called as their documentation says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.contract import Finish, Log, Open


def trackio() -> tuple[Log, Finish]:
    """Log to trackio's local SQLite."""
    os.environ["TRACKIO_DIR"] = str(Path("trackio").absolute())
    import trackio

    trackio.init(project="bench", name=f"hook-{os.getpid()}", embed=False)
    return (lambda step, row: trackio.log(row, step=step)), trackio.finish


def wandb() -> tuple[Log, Finish]:
    """Log to a wandb run on disk."""
    here = str(Path.cwd())
    os.environ.update(WANDB_SILENT="true", WANDB_DIR=here, WANDB_MODE="offline")
    import wandb

    run = wandb.init(project="bench", dir=here)
    return (lambda step, row: run.log(row, step=step)), run.finish


def tensorboardx() -> tuple[Log, Finish]:
    """Log to event files."""
    from tensorboardX import SummaryWriter

    writer = SummaryWriter("tb")

    def log(step: int, row: dict[str, float]) -> None:
        for name, value in row.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def mlflow() -> tuple[Log, Finish]:
    """Log asynchronously to MLflow's local SQLite."""
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{Path('mlflow.db').absolute()}")
    mlflow.set_experiment("bench")
    mlflow.start_run()

    def finish() -> None:
        mlflow.flush_async_logging()
        mlflow.end_run()

    return (lambda step, row: mlflow.log_metrics(row, step=step, synchronous=False)), finish


def rlprobe_scalars() -> tuple[Log, Finish]:
    """Record named numbers."""
    recorder = _recorder()
    return (lambda step, row: recorder.log_step(step, **row)), recorder.close


def rlprobe_groups() -> tuple[Log, Finish]:
    """Record what rlprobe wants to know of groups, which its caller works out."""
    recorder = _recorder()

    def log(step: int, rewards: Any) -> None:
        spread = rewards.std(1)
        recorder.log_step(
            step,
            reward_mean=float(rewards.mean()),
            reward_std=float(spread.mean()),
            zero_variance_group_frac=float((spread == 0).mean()),
        )

    return log, recorder.close


def _recorder() -> Any:
    from rlprobe.recorder import Recorder

    return Recorder(str(Path.cwd()), algorithm="grpo", install_handlers=False)


def rlwatch() -> tuple[Log, Finish]:
    """Record rewards and run all detectors of rlwatch."""
    import rlwatch

    monitor = rlwatch.attach(framework="manual", storage={"log_dir": str(Path.cwd())})
    return (lambda step, rewards: monitor.log_step(step, rewards=rewards.ravel())), monitor.stop


SCALARS: dict[str, Open] = {
    "trackio local": trackio,
    "wandb offline": wandb,
    "tensorboardX": tensorboardx,
    "mlflow async": mlflow,
    "rlprobe": rlprobe_scalars,
}
GROUPS: dict[str, Open] = {"rlprobe": rlprobe_groups, "rlwatch": rlwatch}
