"""The gradient norm of a plain PyTorch loop is logged as it was before clipping."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlvitals

torch = pytest.importorskip("torch")

from rlvitals.trainers.torch import clip_grad_norm, grad_norm  # noqa: E402 - needs torch


class Ledger:
    """Note what is logged."""

    def __init__(self) -> None:
        self.logged: list[tuple[dict[str, float], int | None]] = []

    def log(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Note one call."""
        self.logged.append((metrics, step))


def parameter() -> torch.nn.Parameter:
    """Give a parameter with gradient (3, 4)."""
    held = torch.nn.Parameter(torch.zeros(2))
    held.grad = torch.tensor([3.0, 4.0])
    return held


def test_clip_logs_the_norm_before_clipping() -> None:
    """Of gradient (3, 4) the norm is 5, also when it is clipped to 1."""
    ledger, held = Ledger(), parameter()
    norm = clip_grad_norm([held], 1.0, ledger, step=7)
    assert norm.item() == 5.0
    assert ledger.logged == [({"grad_norm": norm}, 7)]
    assert held.grad is not None
    assert held.grad.norm().item() == pytest.approx(1.0, abs=1e-5)


def test_grad_norm_counts_existing_gradients_only() -> None:
    """Parameters without a gradient add nothing; without any the norm is 0."""
    assert grad_norm([parameter(), torch.nn.Parameter(torch.ones(3))]).item() == 5.0
    assert grad_norm(torch.nn.Parameter(torch.ones(3))).item() == 0.0


def test_the_norm_reaches_the_run(tmp_path: Path) -> None:
    """A tensor on the autograd graph is taken as its number."""
    run = rlvitals.init(mode="offline", dir=tmp_path)
    clip_grad_norm(parameter(), 1.0, run, step=0)
    run.finish()
    assert run.losses == {}
