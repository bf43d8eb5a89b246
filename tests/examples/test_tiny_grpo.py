"""The plain PyTorch example must be a real, repeatable run that collapses on both sides."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

SCRIPT = Path(__file__).parents[2] / "examples" / "tiny_grpo.py"


@pytest.fixture(scope="module")
def tiny() -> Any:
    """Load the example by path; examples are no package."""
    spec = importlib.util.spec_from_file_location("tiny_grpo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _one_thread_and_no_service(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RLVITALS_MODE", "disabled")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def train(tiny: Any, *argv: str) -> list[dict[str, float]]:
    """Train in this process; leave out the only column that depends on the clock."""
    rows = tiny.train(tiny.parse_args(list(argv)), threading.Event())
    return [{key: row[key] for key in row if key != "step_seconds"} for row in rows]


def test_a_seed_repeats_the_run_and_another_seed_does_not(tiny: Any) -> None:
    """Two runs of one seed must agree to the last bit, and a second seed must differ."""
    size = ("--steps", "30", "--groups", "8", "--eval-every", "10")
    first, again = train(tiny, *size, "--seed", "3"), train(tiny, *size, "--seed", "3")
    other = train(tiny, *size, "--seed", "4")
    assert len(first) == 30
    assert first == again
    assert first != other


def test_evaluation_does_not_disturb_training(tiny: Any) -> None:
    """Training must go the same way whether or not the run evaluates."""
    size = ("--steps", "12", "--groups", "8", "--seed", "0")
    assert train(tiny, *size, "--eval-every", "0") == train(tiny, *size, "--eval-every", "3")


def test_rewards_are_zero_or_one_and_mark_exact_answers(tiny: Any) -> None:
    """A reward must be 1 exactly when all the tokens of the answer are right."""
    torch.manual_seed(0)
    prompts = tiny.draw(tiny.make_prompts(), 64, torch.Generator().manual_seed(5))
    batch = tiny.rollout(tiny.Policy(), prompts, 8, torch.Generator().manual_seed(6))
    written = batch.tokens[:, -tiny.ANSWER_LENGTH :].view(64, 8, tiny.ANSWER_LENGTH).tolist()
    expected = [
        [float(tuple(answer[: len(prompt.answer)]) == prompt.answer) for answer in group]
        for prompt, group in zip(prompts, written, strict=True)
    ]
    assert batch.rewards.shape == (64, 8)
    assert batch.rewards.tolist() == expected
    assert set(batch.rewards.unique().tolist()) == {0.0, 1.0}


def test_only_tokens_of_the_answer_count(tiny: Any) -> None:
    """The mask must hold as many ones as the prompt's answer has tokens."""
    prompts = tiny.make_prompts()
    batch = tiny.rollout(tiny.Policy(), prompts, 2, torch.Generator().manual_seed(0))
    lengths = [float(len(prompt.answer)) for prompt in prompts for _ in range(2)]
    assert batch.mask.sum(dim=1).tolist() == lengths
    assert set(lengths) == {1.0, 2.0}


def test_the_prompts_hold_three_difficulties_in_their_shares(tiny: Any) -> None:
    """A long draw must show easy, medium and hard prompts in the declared shares."""
    prompts = tiny.make_prompts()
    assert len({prompt.id for prompt in prompts}) == len(prompts)
    assert {prompt.difficulty for prompt in prompts} == {"easy", "medium", "hard"}
    dice = torch.Generator().manual_seed(0)
    drawn = [prompt for _ in range(200) for prompt in tiny.draw(prompts, 32, dice)]
    for difficulty, share in tiny.SHARES.items():
        found = sum(prompt.difficulty == difficulty for prompt in drawn) / len(drawn)
        assert found == pytest.approx(share, abs=0.03)


def test_prompts_have_the_answers_a_person_would_give(tiny: Any) -> None:
    """Copy, successor, sum and product must be right at hand-checked points."""
    answers = {prompt.id: prompt.answer for prompt in tiny.make_prompts()}
    assert answers["copy 4"] == (4,)
    assert answers["next 5"] == (0,)
    assert answers["add 4 5"] == (3,)
    assert answers["times 5 4"] == (3, 2)  # 20 = 3 * 6 + 2


def test_group_advantages_match_hand_computation(tiny: Any) -> None:
    """One right of four has mean 1/4 and sample std 1/2; equal rewards give exactly zero."""
    rewards = torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    expected = [0.75 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001]
    advantages = tiny.group_advantages(rewards)
    assert advantages[0].tolist() == pytest.approx(expected, rel=1e-6)
    assert advantages[1:].abs().max().item() == 0.0


def test_a_signal_ends_an_endless_run_cleanly() -> None:
    """SIGTERM must end a run of --steps 0 with exit status 0, after at least one step."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), "--steps", "0", "--groups", "4", "--group-size", "2"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("step    25")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_both_sides_of_collapse_rise_over_the_run(tiny: Any) -> None:
    """At seed 0 the groups all wrong and all right must both rise, past half together."""
    rows = train(tiny, "--steps", "400", "--seed", "0", "--eval-every", "0")

    def share(key: str, first: int, last: int) -> float:
        return sum(row[key] for row in rows[first:last]) / (last - first)

    assert share("all_wrong", 350, 400) > share("all_wrong", 0, 50) + 0.08
    assert share("all_right", 0, 50) < 0.02
    assert share("all_right", 350, 400) > 0.2
    assert share("all_wrong", 50, 100) + share("all_right", 50, 100) < 0.5
    assert share("all_wrong", 350, 400) + share("all_right", 350, 400) > 0.6
    assert share("reward", 350, 400) > 2 * share("reward", 0, 50)
