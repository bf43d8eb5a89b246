"""Token weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rlvitals import remedies
from rlvitals.remedies import Focal, Remedies, Sharpness, reweight, token_advantages, token_weights

# Plain numbers for tests; the paper names none.
PLAIN = Sharpness(alpha=2.0, tau=1.0, mu=0.25, low=0.5, high=1.2)


def settings() -> st.SearchStrategy[Sharpness]:
    """Draw any settings that can be made."""
    bounds = st.tuples(st.floats(-1000, 1000), st.floats(-1000, 1000)).map(sorted)
    return st.builds(
        lambda alpha, tau, mu, pair: Sharpness(alpha, tau, mu, *pair),
        st.floats(0, 1e6),
        st.floats(1e-6, 1e6),
        st.floats(-1e6, 1e6),
        bounds,
    )


def test_equation_20_by_hand() -> None:
    """Sigmoid(0) = 1/2: 2 (1/2 - 1/4) = .5; at ln 3 it is 3/4: 1; far out the bounds hold."""
    found = token_weights([0.0, math.log(3), 50.0, -50.0], PLAIN)
    assert found.weights.tolist() == pytest.approx([0.5, 1.0, 1.2, 0.5])
    assert found.mean_weight == pytest.approx(3.2 / 4)
    assert (found.share_low, found.share_high, found.unknown) == (0.5, 0.25, 0)


def test_temperature_divides_the_score() -> None:
    """Tau 2 halves every score."""
    wide = Sharpness(alpha=2.0, tau=2.0, mu=0.25, low=-9.0, high=9.0)
    narrow = Sharpness(alpha=2.0, tau=1.0, mu=0.25, low=-9.0, high=9.0)
    scores = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(
        token_weights(2 * scores, wide).weights, token_weights(scores, narrow).weights
    )


def test_masked_and_unknown_tokens_keep_weight_one() -> None:
    """Padding counts nowhere; a NaN score is counted as unknown and weighs 1."""
    scores = np.array([[50.0, -50.0, math.nan], [math.nan, 50.0, -50.0]])
    found = token_weights(scores, PLAIN, mask=[[1, 1, 1], [0, 0, 0]])
    assert found.weights.tolist() == [[1.2, 0.5, 1.0], [1.0, 1.0, 1.0]]
    assert found.mean_weight == pytest.approx(0.85)
    assert (found.share_low, found.share_high, found.unknown) == (0.5, 0.5, 1)


def test_without_tokens_nothing_is_at_a_bound() -> None:
    """No token, or none that counts: mean weight 1 and shares of 0."""
    for found in (token_weights([], PLAIN), token_weights([9.0], PLAIN, mask=[False])):
        assert (found.mean_weight, found.share_low, found.share_high) == (1.0, 0.0, 0.0)


def test_log_probabilities_know_no_constant() -> None:
    """A constant added to all logits changes weights of logits, not those of log-probabilities."""
    logits = np.random.default_rng(0).normal(size=(5, 10))
    for shift in (0.0, 3.0):
        moved = logits + shift
        log_probs = moved - np.log(np.exp(moved).sum(1, keepdims=True))
        same = token_weights(log_probs[:, 0], PLAIN).weights
        np.testing.assert_allclose(
            same, token_weights(logits[:, 0] - np.log(np.exp(logits).sum(1)), PLAIN).weights
        )
    moved_weights = token_weights(logits[:, 0] + 3.0, PLAIN).weights
    assert not np.allclose(moved_weights, token_weights(logits[:, 0], PLAIN).weights)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_weights_keep_the_float_type(dtype: type) -> None:
    """Scores in any float type give weights in it."""
    assert token_weights(np.zeros(3, dtype), PLAIN).weights.dtype == dtype
    assert token_weights([0, 1], PLAIN).weights.dtype == np.float64


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        st.tuples(st.integers(0, 4), st.integers(0, 5)),
        elements={"allow_nan": True, "allow_infinity": True},
    ),
    settings(),
    st.booleans(),
)
def test_weights_are_finite_for_any_score(
    scores: np.ndarray[tuple[int, int], np.dtype[np.floating]], chosen: Sharpness, masked: bool
) -> None:
    """Within [low, high] to rounding, the shares add up to at most 1 unless both bounds agree."""
    mask = np.arange(scores.size).reshape(scores.shape) % 2 if masked else None
    before = scores.copy()
    found = token_weights(scores, chosen, mask)
    np.testing.assert_array_equal(scores, before)
    assert np.isfinite(found.weights).all()
    counted = ~np.isnan(scores) & (True if mask is None else mask > 0)
    slack = 1e-3 * max(abs(chosen.low), abs(chosen.high), 1.0)  # float16 has three digits
    low, high = chosen.low - slack, chosen.high + slack
    weights = found.weights[counted].astype(float)
    assert ((weights >= low) & (weights <= high)).all()
    assert (found.weights[~counted] == 1).all()
    assert chosen.low == chosen.high or found.share_low + found.share_high <= 1
    assert low <= found.mean_weight <= high or not counted.any()


@given(settings(), st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=10))
def test_surer_tokens_never_weigh_less(chosen: Sharpness, scores: list[float]) -> None:
    """The weight does not fall with the score, and one at or below 0 was announced."""
    weights = token_weights(sorted(scores), chosen).weights
    assert (np.diff(weights) >= 0).all()
    assert chosen.silences or (weights > 0).all()


def test_silencing_is_announced() -> None:
    """With low <= 0 and mu above what sigmoid can reach, tokens are silenced or reversed."""
    assert Sharpness(alpha=1, tau=1, mu=0.5, low=0.0, high=1).silences
    assert Sharpness(alpha=1, tau=1, mu=0.5, low=-1.0, high=1).silences
    assert not Sharpness(alpha=1, tau=1, mu=0.5, low=0.1, high=1).silences
    assert not Sharpness(alpha=1, tau=1, mu=-0.5, low=0.0, high=1).silences


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"tau": 0.0}, "tau"),
        ({"tau": -1.0}, "tau"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"mu": math.inf}, "mu"),
        ({"mu": "0"}, "mu"),
        ({"low": 1.3}, "high"),
        ({"low": -1e4}, "low"),
        ({"high": True}, "high"),
    ],
)
def test_bad_settings_are_named(changed: dict[str, object], field: str) -> None:
    """Every wrong setting raises a ValueError that starts with its full name."""
    plain: dict[str, object] = {"alpha": 1.0, "tau": 1.0, "mu": 0.0, "low": 0.5, "high": 1.0}
    with pytest.raises(ValueError, match=rf"^sharpness\.{field}: "):
        Sharpness(**{**plain, **changed})  # type: ignore[arg-type]


def test_settings_have_no_defaults() -> None:
    """The paper gives no values, so each of the five must be named."""
    with pytest.raises(TypeError):
        Sharpness(alpha=1.0, tau=1.0, mu=0.0, low=0.5)  # type: ignore[call-arg]


def test_bad_scores_and_masks_are_named() -> None:
    """Text is no score, and a mask of another shape fits no token."""
    with pytest.raises(ValueError, match=r"^scores: "):
        token_weights(["a"], PLAIN)
    with pytest.raises(ValueError, match=r"^mask: "):
        token_weights([0.0, 1.0], PLAIN, mask=[1])


def test_tokens_get_advantage_times_weight() -> None:
    """Focal .75 on advantages 1 and -1, then token weights: the order of the package."""
    rewards = [[1, 0, 0, 0]]
    focal = reweight([[1.0, -1.0, 0.0, 0.5]], rewards, Remedies(Focal(1.0)), success_threshold=1)
    weights = np.array([[1.0, 0.5], [0.5, 1.2], [1.0, 1.0], [2.0, 0.0]])
    found = token_advantages(focal.advantages, weights)
    expected = [[0.75, 0.375], [-0.375, -0.9], [0.0, 0.0], [0.75, 0.0]]
    np.testing.assert_allclose(found, expected)


def test_token_advantages_need_a_row_a_rollout() -> None:
    """Rows of another number, or no rows, are refused by name."""
    for weights in (np.ones((3, 2)), np.ones(4)):
        with pytest.raises(ValueError, match=r"^weights: "):
            token_advantages(np.zeros(4), weights)


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        3,
        elements={"allow_nan": True, "allow_infinity": True},
    ),
    st.floats(-1000, 1000),
)
def test_token_weights_break_no_advantage(
    advantages: np.ndarray[tuple[int], np.dtype[np.floating]], weight: float
) -> None:
    """A finite advantage stays finite in its float type; one that is not stays what it was."""
    found = token_advantages(advantages, np.full((3, 2), weight, advantages.dtype))
    assert found.dtype == advantages.dtype
    finite = np.isfinite(advantages)
    assert np.isfinite(found[finite]).all()
    np.testing.assert_array_equal(found[~finite], advantages[~finite, None].repeat(2, axis=1))


def test_public_names_are_there() -> None:
    """Everything the package announces can be taken from it."""
    assert all(hasattr(remedies, name) for name in remedies.__all__)
    assert remedies.__all__ == sorted(remedies.__all__)
