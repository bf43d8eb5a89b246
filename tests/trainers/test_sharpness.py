"""Token weights as tensors say what the NumPy ones say, and let no gradient through."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlvitals import remedies
from rlvitals.remedies import Sharpness

torch = pytest.importorskip("torch")

from rlvitals.trainers.sharpness import token_weights  # noqa: E402 - needs torch

SETTINGS = [
    Sharpness(alpha=2.0, tau=1.0, mu=0.25, low=0.5, high=1.2),
    Sharpness(alpha=1.5, tau=3.0, mu=-0.2, low=0.8, high=1.0),
    Sharpness(alpha=4.0, tau=0.1, mu=0.5, low=-1.0, high=1.0),
]


@pytest.mark.parametrize("chosen", SETTINGS)
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        (torch.float64, 1e-12),
        (torch.float32, 1e-6),
        (torch.float16, 1e-3),
        (torch.bfloat16, 8e-3),
    ],
)
def test_numbers_are_those_of_numpy(
    chosen: Sharpness, dtype: torch.dtype, tolerance: float
) -> None:
    """Weights, mean and shares agree to the digits of the float type, which is kept."""
    source = np.random.default_rng(0)
    scores = torch.tensor(4 * source.standard_normal((6, 40)), dtype=dtype)
    scores[0, :4] = torch.tensor([math.nan, math.inf, -math.inf, 0.0])
    mask = torch.tensor(source.random((6, 40)) < 0.7)
    found = token_weights(scores, chosen, mask)
    wanted = remedies.token_weights(scores.double().numpy(), chosen, mask.numpy())
    assert found.weights.dtype == dtype
    assert found.weights.double().numpy() == pytest.approx(
        wanted.weights, rel=tolerance, abs=tolerance
    )
    assert found.mean_weight.item() == pytest.approx(wanted.mean_weight, rel=1e-5)
    assert found.share_low.item() == pytest.approx(wanted.share_low)
    assert found.share_high.item() == pytest.approx(wanted.share_high)
    assert found.unknown.item() == wanted.unknown


def test_no_gradient_runs_through_the_weights() -> None:
    """The gradient of sum(w * log p) by log p is w itself, though w was made from log p."""
    log_probs = torch.linspace(-5, 0, 12, dtype=torch.float64, requires_grad=True)
    weights = token_weights(log_probs, SETTINGS[0]).weights
    assert not weights.requires_grad
    (weights * log_probs).sum().backward()
    assert log_probs.grad is not None
    assert torch.equal(log_probs.grad, weights)


def test_nothing_waits_for_the_device() -> None:
    """On the meta device, where no number exists to be waited for, everything still works."""
    scores = torch.zeros((4, 8), device="meta")
    found = token_weights(scores, SETTINGS[0], torch.ones((4, 8), device="meta"))
    for part in (found.weights, found.mean_weight, found.share_low, found.unknown):
        assert part.device.type == "meta"


def test_without_tokens_the_mean_is_one() -> None:
    """All masked: weights of 1, mean 1, shares 0; integers are taken as float32."""
    found = token_weights(torch.tensor([5, -5]), SETTINGS[0], torch.tensor([0, 0]))
    assert found.weights.tolist() == [1.0, 1.0]
    assert found.weights.dtype == torch.float32
    assert [found.mean_weight.item(), found.share_low.item(), found.share_high.item()] == [1, 0, 0]


def test_a_mask_of_another_shape_is_refused() -> None:
    """A mask that would be stretched over the tokens is a mistake."""
    with pytest.raises(ValueError, match=r"^mask: shape \(3,\), want that of the scores, \(2, 3\)"):
        token_weights(torch.zeros((2, 3)), SETTINGS[0], torch.ones(3))


def test_weights_are_the_same_under_no_grad_and_inference() -> None:
    """Rollout code runs without autograd; the numbers do not depend on it."""
    scores = torch.linspace(-3, 3, 7)
    plain = token_weights(scores, SETTINGS[1]).weights
    with torch.inference_mode():
        assert torch.equal(token_weights(scores, SETTINGS[1]).weights, plain)
