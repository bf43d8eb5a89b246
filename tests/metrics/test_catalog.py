"""Each metric is described once, and every trainer's name finds it."""

from __future__ import annotations

import pytest

from rlvitals.metrics import CATALOG, COLUMNS, canonical, describe, vitals
from rlvitals.metrics.tally import Tally

DESIGNED = [
    "acr",
    "acr_all_fail",
    "acr_all_pass",
    "acr_constant",
    "acr_outcome",
    "acr_trained",
    "acr_effective",
    "acr_pooled",
    "acr_pooled_low",
    "acr_pooled_high",
    "shaping_only",
    "reward_mean",
    "reward_std",
    "reward_std_within",
    "success_rate",
    "pass_at_1",
    "pass_at_2",
    "pass_at_4",
    "pass_at_8",
    "pass_at_16",
    "pass_at_32",
    "pass_at_64",
    "tail_miss_risk",
    "grad_norm",
    "loss",
    "kl",
    "entropy",
    "clip_fraction",
    "response_length_mean",
    "truncated_fraction",
    "learning_rate",
    "step_seconds",
    "groups",
    "rollouts",
    "singletons",
]


def test_columns_are_those_of_the_design() -> None:
    """Every key of the design is a column, and no other is."""
    assert sorted(COLUMNS) == sorted(DESIGNED)


def test_every_vital_is_described() -> None:
    """Whatever vitals() gives can be labelled, also pass@k for an odd group size."""
    for key in vitals(Tally.from_counts({6: [1, 0, 0, 0, 0, 0, 1]})):
        metric = describe(key)
        assert metric is not None
        assert metric.key == key
    assert describe("pass_at_6") is not None
    assert describe("pass_at_0") is None
    assert describe("my_metric") is None


def test_every_entry_is_complete() -> None:
    """A metric has a label, a definition in sentences, a reference and bounds in order."""
    for key, metric in CATALOG.items():
        assert metric.key == key
        assert metric.label
        assert metric.definition.endswith(".")
        assert metric.reference
        assert metric.low is None or metric.high is None or metric.low < metric.high
        assert canonical(key) == key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("reward", "reward_mean"),
        ("train/reward", "reward_mean"),
        ("critic/rewards/mean", "reward_mean"),
        ("completion_length", "response_length_mean"),
        ("completions/mean_length", "response_length_mean"),
        ("response_length/mean", "response_length_mean"),
        ("completions/clipped_ratio", "truncated_fraction"),
        ("response_length/clip_ratio", "truncated_fraction"),
        ("actor/grad_norm", "grad_norm"),
        ("train/grad_norm", "grad_norm"),
        ("actor/entropy", "entropy"),
        ("actor/entropy_loss", "entropy"),
        ("actor/ppo_kl", "kl"),
        ("clip_ratio", "clip_fraction"),
        ("clip_ratio/region_mean", "clip_fraction"),
        ("actor/pg_clipfrac", "clip_fraction"),
        ("actor/lr", "learning_rate"),
        ("step_time", "step_seconds"),
        ("pass@8", "pass_at_8"),
    ],
)
def test_trainer_names_find_their_key(name: str, key: str) -> None:
    """Old and new spellings of TRL, verl and ms-swift mean one series."""
    assert canonical(name) == key


@pytest.mark.parametrize(
    "name", ["my/own", "rewards/accuracy/mean", "eval_reward", "actor/lr(1e-4)", "sampling/mean"]
)
def test_unknown_names_are_kept(name: str) -> None:
    """A name that means nothing here, or something scaled, stays as it is."""
    assert canonical(name) == name


def test_the_trainers_zero_std_share_is_not_the_collapse_rate() -> None:
    """frac_reward_zero_std keeps its name, with and without prefix, and is said to be foreign."""
    assert canonical("train/frac_reward_zero_std") == "frac_reward_zero_std"
    assert "trainer" in CATALOG["frac_reward_zero_std"].label
