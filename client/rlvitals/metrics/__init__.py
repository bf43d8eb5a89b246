"""The ground floor: pure formulas over groups of rollouts, NumPy only.

What a trainer holds comes in as ``Groups`` (rollouts, segments, success, columns) and is summed up
as a ``Tally`` (histograms, pooling), and the sum of two tallies is the tally of all their groups.
From it come the numbers of a step, window or run: ``vitals``, collapse and its what-ifs, pass@k,
tail-miss, efficiency. Gradient norms, signatures and comparisons with a baseline stand beside it.
The pages of docs/science say how each number is defined, estimated and misread.
"""

from __future__ import annotations

from rlvitals.metrics.advantages import (
    advantage_bound,
    advantage_mass,
    advantages_beyond_bound,
    total_advantage_mass,
)
from rlvitals.metrics.beta_binomial import BetaBinomialFit, fit_beta_binomial
from rlvitals.metrics.catalog import CATALOG, COLUMNS, Metric, canonical, describe
from rlvitals.metrics.collapse import (
    Collapse,
    Share,
    advantage_collapse_rate,
    collapse_rate_by_prompt,
    wilson_interval,
)
from rlvitals.metrics.crossover import Change, Crossover, crossover
from rlvitals.metrics.efficiency import (
    RolloutUse,
    dynamic_sampling_price,
    learnability,
    observed_learnability,
    wasted_gpu_hours,
)
from rlvitals.metrics.extrapolation import extrapolate_pass_at_k, pass_at_k_bounds
from rlvitals.metrics.gradient import (
    exponential_average,
    log_norm_variation,
    outlier_rate,
    robust_baseline,
    signal_to_noise,
    spike_score,
)
from rlvitals.metrics.group_size import collapse_at, expected_collapse
from rlvitals.metrics.groups import Groups
from rlvitals.metrics.larger_groups import collapse_at_larger
from rlvitals.metrics.means import Mean
from rlvitals.metrics.pass_at_k import (
    PassAtK,
    pass_at_k,
    pass_at_k_bootstrap,
    pass_at_k_interval,
    pass_at_k_variance,
)
from rlvitals.metrics.posterior import (
    dirichlet_tail_miss,
    expected_tail_miss,
    mean_posterior_tail_miss,
    posterior_tail_miss,
)
from rlvitals.metrics.resampling import Estimate, bootstrap_ratio
from rlvitals.metrics.smaller_groups import CollapseAt, collapse_at_smaller, collapse_bounds
from rlvitals.metrics.spread import Spread
from rlvitals.metrics.tail_miss import (
    mean_tail_miss,
    peak_group_size,
    realised_tail_miss,
    tail_hit_probability,
    tail_miss_probability,
)
from rlvitals.metrics.tally import Tally
from rlvitals.metrics.unseen import UnseenMass, unseen_mass
from rlvitals.metrics.vitals import vitals

__all__ = [
    "CATALOG",
    "COLUMNS",
    "BetaBinomialFit",
    "Change",
    "Collapse",
    "CollapseAt",
    "Crossover",
    "Estimate",
    "Groups",
    "Mean",
    "Metric",
    "PassAtK",
    "RolloutUse",
    "Share",
    "Spread",
    "Tally",
    "UnseenMass",
    "advantage_bound",
    "advantage_collapse_rate",
    "advantage_mass",
    "advantages_beyond_bound",
    "bootstrap_ratio",
    "canonical",
    "collapse_at",
    "collapse_at_larger",
    "collapse_at_smaller",
    "collapse_bounds",
    "collapse_rate_by_prompt",
    "crossover",
    "describe",
    "dirichlet_tail_miss",
    "dynamic_sampling_price",
    "expected_collapse",
    "expected_tail_miss",
    "exponential_average",
    "extrapolate_pass_at_k",
    "fit_beta_binomial",
    "learnability",
    "log_norm_variation",
    "mean_posterior_tail_miss",
    "mean_tail_miss",
    "observed_learnability",
    "outlier_rate",
    "pass_at_k",
    "pass_at_k_bootstrap",
    "pass_at_k_bounds",
    "pass_at_k_interval",
    "pass_at_k_variance",
    "peak_group_size",
    "posterior_tail_miss",
    "realised_tail_miss",
    "robust_baseline",
    "signal_to_noise",
    "spike_score",
    "tail_hit_probability",
    "tail_miss_probability",
    "total_advantage_mass",
    "unseen_mass",
    "vitals",
    "wasted_gpu_hours",
    "wilson_interval",
]
