"""Each chartable number, said once: what it is, which way is good, and where it comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rlvitals.metrics import colours
from rlvitals.metrics.names import canonical

__all__ = ["CATALOG", "COLUMNS", "Metric", "canonical", "describe"]

Better = Literal["up", "down"]

PASS_AT_COLUMNS = (1, 2, 4, 8, 16, 32, 64)

ACR = "He et al., Advantage Collapse, arXiv 2605.21125"
F_GRPO = "Plyusov et al., F-GRPO, arXiv 2602.06717"
CHEN = "Chen et al., arXiv 2107.03374, eq. 1"
DAPO = "Yu et al., DAPO, arXiv 2503.14476"
GRPO = "Shao et al., GRPO, arXiv 2402.03300"
ENTROPY = "Cui et al., The Entropy Mechanism, arXiv 2505.22617"
WILSON = "Wilson, 1927, score interval"


@dataclass(frozen=True, slots=True)
class Metric:
    """Describe one metric.

    ``low`` and ``high`` bound its values where they are bounded; ``better`` is None where neither
    direction is good in itself. ``group`` is the panel it belongs to. ``column`` marks those
    stored as a column of table ``step``.
    """

    key: str
    label: str
    unit: str
    low: float | None
    high: float | None
    better: Better | None
    definition: str
    reference: str
    group: str
    color: str | None = None
    column: bool = False


def _share(
    key: str,
    label: str,
    better: Better | None,
    definition: str,
    reference: str,
    group: str,
    color: str | None = None,
    *,
    column: bool = True,
) -> Metric:
    return Metric(key, label, "", 0.0, 1.0, better, definition, reference, group, color, column)


def _number(
    key: str,
    label: str,
    unit: str,
    better: Better | None,
    definition: str,
    reference: str,
    group: str,
    *,
    low: float | None = None,
    column: bool = True,
) -> Metric:
    return Metric(key, label, unit, low, None, better, definition, reference, group, None, column)


def _pass_at(k: int) -> Metric:
    return _share(
        f"pass_at_{k}",
        f"pass@{k}",
        "up",
        f"Chance that at least one of {k} rollouts of a prompt is correct, estimated without "
        "bias from c correct of n as 1 - C(n-c, k) / C(n, k), averaged over groups.",
        CHEN,
        "coverage",
        column=k in PASS_AT_COLUMNS,
    )


_COLLAPSE = (
    _share(
        "acr",
        "Advantage collapse rate",
        "down",
        "Share of groups of two or more rollouts whose rewards are all equal (max - min at most "
        "the tolerance), so that their advantages are zero. Groups that dynamic sampling removed "
        "for this count as collapsed.",
        ACR,
        "collapse",
        colours.COLLAPSED,
    ),
    _share(
        "acr_all_fail",
        "Collapsed: all failed",
        "down",
        "Share of groups collapsed because every rollout failed: too hard, cut short, or a "
        "verifier that finds nothing.",
        ACR,
        "collapse",
        colours.ALL_FAIL,
    ),
    _share(
        "acr_all_pass",
        "Collapsed: all passed",
        None,
        "Share of groups collapsed because every rollout was correct: the prompt is mastered.",
        ACR,
        "collapse",
        colours.ALL_PASS,
    ),
    _share(
        "acr_constant",
        "Collapsed: constant",
        "down",
        "Share of groups collapsed with equal rewards that are neither all failed nor all "
        "correct, or whose success is not known.",
        ACR,
        "collapse",
        colours.CONSTANT,
    ),
    _share(
        "acr_outcome",
        "Outcome collapse rate",
        "down",
        "Share of groups with known success in which all rollouts are correct or none is, "
        "whatever shaping terms do to the rewards.",
        ACR,
        "collapse",
    ),
    _share(
        "acr_trained",
        "Collapse rate, trained",
        "down",
        "Advantage collapse rate of the groups that were trained on, after dynamic sampling.",
        DAPO,
        "collapse",
    ),
    _share(
        "acr_effective",
        "Collapse rate, effective",
        "down",
        "Share of groups whose final advantages, after any remedy, are all zero.",
        ACR,
        "collapse",
    ),
    _share(
        "acr_pooled",
        "Collapse rate, pooled",
        "down",
        "Collapsed groups over all groups of the latest window: at least 20 steps and 64 groups.",
        ACR,
        "collapse",
    ),
    _share(
        "acr_pooled_low",
        "Collapse rate, pooled, lower bound",
        "down",
        "Lower end of the 95 % interval of the pooled advantage collapse rate.",
        WILSON,
        "collapse",
    ),
    _share(
        "acr_pooled_high",
        "Collapse rate, pooled, upper bound",
        "down",
        "Upper end of the 95 % interval of the pooled advantage collapse rate.",
        WILSON,
        "collapse",
    ),
    _share(
        "shaping_only",
        "Gradient from shaping only",
        "down",
        "Share of groups with known success whose outcome is the same for all rollouts while "
        "their rewards differ: only shaping terms move the policy.",
        ACR,
        "collapse",
    ),
    _share(
        "frac_reward_zero_std",
        "Zero-std share, as the trainer sent it",
        "down",
        "The trainer's own figure. In some versions and settings it flags a whole batch, or the "
        "wrong one of batch and group, so it is never read as the advantage collapse rate.",
        "TRL GRPOTrainer log",
        "collapse",
        column=False,
    ),
)

_REWARD = (
    _number("reward_mean", "Reward", "", "up", "Mean reward over all rollouts.", GRPO, "reward"),
    _number(
        "reward_std",
        "Reward std",
        "",
        None,
        "Standard deviation (ddof=1) of the rewards of all rollouts of a step together.",
        GRPO,
        "reward",
        low=0.0,
    ),
    _number(
        "reward_std_within",
        "Reward std within groups",
        "",
        None,
        "Mean over groups of two or more of the standard deviation (ddof=1) within the group.",
        GRPO,
        "reward",
        low=0.0,
    ),
    _share(
        "success_rate",
        "Success rate",
        "up",
        "Share of correct rollouts among those of groups with known success.",
        GRPO,
        "reward",
    ),
)

_COVERAGE = (
    *(_pass_at(k) for k in PASS_AT_COLUMNS),
    _share(
        "tail_miss_risk",
        "Tail-miss risk",
        "down",
        "Chance that a group updates the policy yet saw none of the rare correct answers: mean "
        "of (1 - rho)^c over groups with 0 < c < n (others count 0), rho = 0.1 being the rare "
        "share of the correct mass. Unbiased for Lemma 3.1.",
        F_GRPO,
        "coverage",
    ),
)

_OPTIMISATION = (
    _number(
        "grad_norm",
        "Gradient norm",
        "",
        None,
        "Global L2 norm of the gradient before clipping.",
        "Pascanu et al., arXiv 1211.5063",
        "optimisation",
        low=0.0,
    ),
    _number(
        "loss",
        "Loss",
        "",
        None,
        "Policy loss as the trainer reports it. Its value near 0 is normal in GRPO and says "
        "nothing about learning.",
        GRPO,
        "optimisation",
    ),
    _number(
        "kl",
        "KL divergence",
        "nats",
        None,
        "Divergence of the policy from the reference or old policy, as the trainer estimates it.",
        GRPO,
        "optimisation",
    ),
    _number(
        "entropy",
        "Entropy",
        "nats",
        None,
        "Mean entropy of the next-token distribution. Judge it against the run's own start.",
        ENTROPY,
        "optimisation",
        low=0.0,
    ),
    _share(
        "clip_fraction",
        "Clip fraction",
        None,
        "Share of tokens whose probability ratio was clipped; 0 by construction with one update "
        "a batch.",
        "Schulman et al., PPO, arXiv 1707.06347",
        "optimisation",
    ),
    _number(
        "learning_rate",
        "Learning rate",
        "",
        None,
        "Step size in force at this step.",
        "the trainer's scheduler",
        "optimisation",
        low=0.0,
    ),
)

_ROLLOUTS = (
    _number(
        "response_length_mean",
        "Response length",
        "tokens",
        None,
        "Mean number of tokens of a rollout.",
        "Liu et al., Dr. GRPO, arXiv 2503.20783",
        "rollouts",
        low=0.0,
    ),
    _share(
        "truncated_fraction",
        "Truncated rollouts",
        "down",
        "Share of rollouts cut at the length limit; a cut answer mostly fails.",
        DAPO,
        "rollouts",
    ),
    _number(
        "step_seconds",
        "Step time",
        "s",
        "down",
        "Wall-clock time of one step.",
        "the trainer's clock",
        "rollouts",
        low=0.0,
    ),
    _number(
        "groups",
        "Groups",
        "",
        None,
        "Number of groups with two or more usable rewards.",
        GRPO,
        "rollouts",
        low=0.0,
    ),
    _number(
        "rollouts",
        "Rollouts",
        "",
        None,
        "Number of rollouts with a usable reward.",
        GRPO,
        "rollouts",
        low=0.0,
    ),
    _number(
        "singletons",
        "Groups of one",
        "",
        "down",
        "Number of groups with a single usable reward: no group-relative advantage exists.",
        GRPO,
        "rollouts",
        low=0.0,
    ),
)

CATALOG: dict[str, Metric] = {
    metric.key: metric
    for panel in (_COLLAPSE, _REWARD, _COVERAGE, _OPTIMISATION, _ROLLOUTS)
    for metric in panel
}

COLUMNS: tuple[str, ...] = tuple(key for key, metric in CATALOG.items() if metric.column)

_PASS_AT = re.compile(r"pass_at_([1-9]\d{0,6})\Z")


def describe(key: str) -> Metric | None:
    """Find the metric of a canonical key, pass_at_k for any k included; None for other names."""
    if key in CATALOG:
        return CATALOG[key]
    match = _PASS_AT.match(key)
    return _pass_at(int(match[1])) if match else None
