"""GRPO-SG: weights for tokens by how sure the policy was of them (arXiv 2511.00066, Eq. 20).

The paper gives no values for its five parameters, so none has a default here. The same numbers on
the device of a tensor come from ``rlvitals.trainers.sharpness``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.metrics.rollouts import as_floats
from rlvitals.remedies.checks import check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_WEIGHT = 1000.0  # finite in every float type, float16 included


@dataclass(frozen=True, slots=True)
class Sharpness:
    """Set w = clip(alpha (sigmoid(h / tau) - mu), low, high) for the score h of a chosen token.

    With ``low`` at 0 or below a token may be silenced, or have its update turned around; see
    ``silences``.
    """

    alpha: float
    tau: float
    mu: float
    low: float
    high: float

    def __post_init__(self) -> None:
        check_number(self.alpha, "sharpness.alpha", 0, 1e6)
        check_number(self.tau, "sharpness.tau", 1e-6, 1e6)
        check_number(self.mu, "sharpness.mu", -1e6, 1e6)
        check_number(self.low, "sharpness.low", -LARGEST_WEIGHT, LARGEST_WEIGHT)
        check_number(self.high, "sharpness.high", self.low, LARGEST_WEIGHT)

    @property
    def silences(self) -> bool:
        """Say whether some score has a weight of 0 or less: it silences or reverses its token."""
        return min(max(-self.alpha * self.mu, self.low), self.high) <= 0


@dataclass(frozen=True, slots=True, eq=False)
class TokenWeights:
    """Hold a weight a token, in the layout of the scores, and what the weights are like.

    ``share_low`` and ``share_high`` are the shares of tokens at the bounds; they and the
    ``mean_weight`` count neither masked tokens nor the ``unknown`` ones, whose score is NaN. Both
    of these have weight 1. Without any token left the mean is 1 and the shares are 0.
    """

    weights: NDArray[Any]
    mean_weight: float
    share_low: float
    share_high: float
    unknown: int


def token_weights(scores: Any, settings: Sharpness, mask: Any = None) -> TokenWeights:
    """Give each token its weight, a constant to the gradient.

    ``scores`` holds h, the score of each chosen token: its logit as Eq. 20 has it, or what shares
    no unknown constant with other tokens and models, its log-probability (at most 0, so that
    sigmoid(h / tau) <= 1/2) or its probability as in the first version of the paper. ``mask``, of
    the same shape, is true, or above 0, where a token counts. The weights keep the float type of
    the scores. Raises ValueError naming the field when shapes differ or entries are no numbers.
    """
    given = scores if _is_float(scores) else as_floats(scores, "scores")
    counted = _mask(mask, given.shape)
    h = given.astype(np.float64)
    known = counted & ~np.isnan(h)
    with np.errstate(over="ignore"):  # exp of a very low score: infinite, so the sigmoid is 0
        unbounded = settings.alpha * (1.0 / (1.0 + np.exp(-h / settings.tau)) - settings.mu)
    weights = np.where(known, unbounded.clip(settings.low, settings.high), 1.0)
    at = unbounded[known]
    return TokenWeights(
        weights.astype(given.dtype),
        mean_weight=float(weights[known].mean()) if at.size else 1.0,
        share_low=_share(at <= settings.low),
        share_high=_share(at >= settings.high),
        unknown=int(np.count_nonzero(counted & ~known)),
    )


def token_advantages(advantages: Any, weights: Any) -> NDArray[Any]:
    """Give each token the advantage of its rollout times its own weight.

    The last step of the one order in which remedies act: ``advantages`` has a number a rollout,
    as ``reweight`` gave them, and ``weights`` a row of tokens for each, in the same order. The
    result has the shape of ``weights`` and the wider of the two float types. A finite advantage
    stays finite, at the largest number of that type if need be; one that is not stays what it is.
    For weights above 0 this is the clipped surrogate times the weight: min and clip see the ratio
    alone.
    """
    flat = np.asarray(advantages).ravel()
    rows = np.asarray(weights)
    if rows.ndim != 2 or len(rows) != len(flat):  # noqa: PLR2004
        raise ValueError(f"weights: want a row of tokens for each of {len(flat)} rollouts")
    with np.errstate(over="ignore", invalid="ignore"):
        product: NDArray[Any] = flat[:, None] * rows
    largest = np.finfo(product.dtype).max
    finite = np.isfinite(flat)[:, None]
    return np.where(finite, product.clip(-largest, largest), flat[:, None])


def _is_float(scores: Any) -> bool:
    return isinstance(scores, np.ndarray) and scores.dtype.kind == "f"


def _mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if mask is None:
        return np.ones(shape, np.bool_)
    counted: NDArray[np.bool_] = as_floats(mask, "mask") > 0
    if counted.shape != shape:
        raise ValueError(f"mask: shape {counted.shape}, want that of the scores, {shape}")
    return counted


def _share(marks: NDArray[np.bool_]) -> float:
    return float(marks.mean()) if marks.size else 0.0
