"""What to do about each cause, with the setting's name in the common trainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlvitals.judgement.incidents import Cause

# Below this share the smaller side of a collapse asks for nothing of its own.
BOTH_SIDES = 0.15

ADVICE: Mapping[str, str] = {
    "truncation": (
        "Raise the length limit (TRL and ms-swift max_completion_length, verl "
        "data.max_response_length) before judging difficulty."
    ),
    "verifier": (
        "Score a known-correct answer with the reward function, then compare the prompt template "
        "and the answer format it expects with one real rollout."
    ),
    "group_size": (
        "Raise the number of rollouts a prompt (TRL and ms-swift num_generations, verl "
        "actor_rollout_ref.rollout.n); the model itself is not at fault."
    ),
    "all_fail": (
        "Postpone prompts the model cannot solve yet, raise the number of rollouts a prompt (TRL "
        "num_generations, verl actor_rollout_ref.rollout.n), or turn AVSPO on for this run."
    ),
    "all_pass": (
        "Retire solved prompts or add harder ones; dynamic sampling (verl "
        "algorithm.filter_groups.enable) skips them at the price of more rollouts."
    ),
    "both": (
        "Filter prompts by their success rate from both ends: retire the solved ones, postpone "
        "those out of reach (verl algorithm.filter_groups.enable); AVSPO reaches what is left."
    ),
    "constant": (
        "Declare what counts as success (success_threshold, or correct= with the rewards) to see "
        "which groups are solved, and check that partial credit can differ within a group."
    ),
    "filtered": (
        "Dynamic sampling throws most groups away: choose prompts by success rate instead of "
        "paying for rollouts that are dropped."
    ),
}


def advise(causes: tuple[Cause, ...]) -> str:
    """Give the advice for the leading cause, or for both sides where neither is small."""
    if not causes:
        return ""
    shares = {cause.name: cause.share for cause in causes}
    leading = causes[0].name
    sides = min(shares.get("all_fail", 0.0), shares.get("all_pass", 0.0))
    if leading in {"all_fail", "all_pass"} and sides >= BOTH_SIDES:
        leading = "both"
    return ADVICE.get(leading, "")
