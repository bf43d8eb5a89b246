"""Forecasts of the end of a run from its first steps, scored on configurations left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.model_selection import KFold, LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from policies.logistic import Series

    Floats = NDArray[np.float64]

EARLY = 100  # steps that a forecast may see
ALPHAS = np.logspace(-2, 3, 11)

FEATURES = {
    "ACR100": ("acr",),
    "all-wrong + all-right": ("all_fail", "all_pass"),
    "reward": ("reward",),
    "reward + slope": ("reward", "reward_slope"),
    "split + reward + slope": ("all_fail", "all_pass", "reward", "reward_slope"),
    "+ grad norm, signal, N, ΔACR": (
        "all_fail",
        "all_pass",
        "reward",
        "reward_slope",
        "grad_norm",
        "signal",
        "size",
        "acr_change",
    ),
}

MODELS: dict[str, Callable[[], object]] = {
    "line": LinearRegression,
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(ALPHAS)),
    "quadratic": lambda: make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        RidgeCV(ALPHAS),
    ),
    "boosting": lambda: GradientBoostingRegressor(
        n_estimators=80, max_depth=2, learning_rate=0.1, subsample=0.8, random_state=0
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Hold how good predictions are; errors are bootstrap standard errors over configurations.

    ``r2_draws`` are the R² of the bootstrap, whose draws are the same for every score of as many
    configurations.
    """

    r2: float
    r2_draws: Floats
    mae: float
    auc: float
    auc_error: float

    @property
    def r2_error(self) -> float:
        """Give the standard error of the R²."""
        return float(self.r2_draws.std())

    def above(self, other: Score) -> tuple[float, float]:
        """Give by how much the R² is higher than another on the same runs, and its error."""
        return self.r2 - other.r2, float((self.r2_draws - other.r2_draws).std())


def early_features(series: Series, size: int, steps: int = EARLY) -> dict[str, float]:
    """Give what the first ``steps`` show: means, the slope of the reward, the change of the ACR."""
    half = steps // 2
    means = {
        name: float(getattr(series, name)[:steps].mean())
        for name in ("acr", "all_fail", "all_pass", "reward", "grad_norm", "signal")
    }
    slope = np.polyfit(np.arange(steps), series.reward[:steps], 1)[0]
    change = series.acr[half:steps].mean() - series.acr[:half].mean()
    return {
        **means,
        "reward_slope": float(slope * steps),
        "acr_change": float(change),
        "size": float(size),
    }


def out_of_fold(
    rows: Sequence[Mapping[str, float]],
    ends: Floats,
    features: str,
    model: str,
    *,
    apart: Sequence[float] | None = None,
    repeats: int = 1,
) -> Floats:
    """Predict each end by a model that never saw it: ten random folds, or one value of ``apart``.

    Shape [repeats, configurations]; each repeat shuffles the folds anew.
    """
    table = np.array([[row[name] for name in FEATURES[features]] for row in rows])
    if apart is not None:
        folds = LeaveOneGroupOut()
        return cross_val_predict(MODELS[model](), table, ends, cv=folds, groups=apart)[None]
    shuffles = [KFold(10, shuffle=True, random_state=seed) for seed in range(repeats)]
    return np.array([cross_val_predict(MODELS[model](), table, ends, cv=cv) for cv in shuffles])


def score(predicted: Floats, ends: Floats, draws: int = 300) -> Score:
    """Score predictions of shape [repeats, configurations], means over the repeats.

    The AUC is that of the runs that end in the lowest third.
    """
    low = ends < np.quantile(ends, 1 / 3)
    rng = np.random.default_rng(0)
    r2s, aucs = [], []
    for _ in range(draws):
        pick = rng.integers(0, len(ends), len(ends))
        r2s.append(_mean(r_squared, predicted[:, pick], ends[pick]))
        aucs.append(_auc(predicted[:1, pick], low[pick]))
    return Score(
        _mean(r_squared, predicted, ends),
        np.array(r2s),
        float(100 * np.abs(predicted - ends).mean()),
        _auc(predicted, low),
        float(np.nanstd(aucs)),
    )


def r_squared(predicted: Floats, ends: Floats) -> float:
    """Give 1 - residual sum of squares / total; below 0 the mean would have been better."""
    return float(1 - ((predicted - ends) ** 2).sum() / ((ends - ends.mean()) ** 2).sum())


def _mean(measure: Callable[[Floats, Floats], float], predicted: Floats, ends: Floats) -> float:
    return float(np.mean([measure(row, ends) for row in predicted]))


def _auc(predicted: Floats, low: NDArray[np.bool_]) -> float:
    """Give the chance that a low run is foreseen below another, by ranks; ties count half."""
    if low.all() or not low.any():
        return float("nan")
    ranks = rankdata(-predicted, axis=1)[:, low]
    count = int(low.sum())
    wins = ranks.sum(axis=1) - count * (count + 1) / 2
    return float((wins / (count * (len(low) - count))).mean())
