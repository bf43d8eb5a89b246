"""The tiny transformer must be trained by GRPO, and by nothing else where no remedy is on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import reproduce_remedies_transformer as script  # noqa: E402
from measuring.paired import Interval, difference, interval, ratio  # noqa: E402
from measuring.transformer_figures import draw_collapse, draw_gains, draw_gradient  # noqa: E402
from measuring.transformer_tables import collapse_table, end_table, gradient_table  # noqa: E402
from policies import grpo  # noqa: E402
from policies.grpo import Settings, clipped, start, train  # noqa: E402
from policies.sorting import BLANK, LONGEST, MIXES, draw, right_answers, verify  # noqa: E402
from policies.transformer import Policy, sample  # noqa: E402

from rlvitals.remedies import Avspo, Remedies, Sharpness  # noqa: E402

SHORT = Settings(mix="two-sided", seed=1, steps=4, groups=6)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(script, "EVAL_PROMPTS", 16)
    yield
    torch.set_num_threads(threads)


@cache
def few_runs() -> list[script.Run]:
    """Run the arms of the default size on one seed, once for all tests."""
    return script.run_all(script.FEW, seeds=1, steps=20)


def parameters(policy: Policy) -> torch.Tensor:
    """Give all parameters in one row."""
    return torch.cat([item.detach().flatten() for item in policy.parameters()])


def test_only_the_sorted_digits_are_right() -> None:
    """An answer is right when its counted digits are in order, whatever comes after them."""
    prompts = torch.tensor([[3, 1, 2, 1, 0], [5, 4, BLANK, BLANK, BLANK]])
    assert right_answers(prompts).tolist() == [[0, 1, 1, 2, 3], [4, 5, BLANK, BLANK, BLANK]]
    assert verify(prompts, torch.tensor([[0, 1, 1, 2, 3], [4, 5, 7, 0, 0]])).tolist() == [1, 1]
    assert verify(prompts, torch.tensor([[0, 1, 2, 1, 3], [5, 4, 7, 0, 0]])).tolist() == [0, 0]


@pytest.mark.parametrize("mix", MIXES)
def test_a_mix_draws_its_lengths_equally_often(mix: str) -> None:
    """Of 20,000 prompts each length has its share, within five standard errors."""
    prompts = draw(MIXES[mix], 20_000, torch.Generator().manual_seed(0))
    lengths = (prompts != BLANK).sum(dim=1)
    share = 1 / len(MIXES[mix].lengths)
    for length in MIXES[mix].lengths:
        found = (lengths == length).float().mean().item()
        assert abs(found - share) < 5 * (share * (1 - share) / 20_000) ** 0.5
    assert set(lengths.tolist()) == set(MIXES[mix].lengths)


def test_sampling_sees_the_policy_that_training_sees() -> None:
    """Log-probs of sampling, which keeps keys and values, are those of one pass over everything."""
    _, dice, policy = start(SHORT)
    batch = sample(policy, draw(MIXES["two-sided"], 8, dice), 4, dice)
    logits = policy(torch.cat([batch.prompts, batch.answers[:, :-1]], dim=1))
    chosen = logits.log_softmax(dim=2).gather(2, batch.answers[..., None]).squeeze(2)
    torch.testing.assert_close(batch.log_probs, chosen, atol=1e-5, rtol=0)
    assert batch.answers.shape == (32, LONGEST)


def test_samples_follow_the_policy() -> None:
    """First digits of 20,000 answers to one prompt have the policy's chances, within 5 sigma."""
    _, dice, policy = start(SHORT)
    prompt = draw(MIXES["two-sided"], 1, dice)
    with torch.no_grad():
        chance = policy(prompt)[0, 0].softmax(dim=0)
    first = sample(policy, prompt, 20_000, dice).answers[:, 0]
    found = torch.bincount(first, minlength=len(chance)) / len(first)
    assert ((found - chance).abs() < 5 * (chance * (1 - chance) / len(first)).sqrt() + 1e-9).all()


def test_a_seed_repeats_and_another_does_not() -> None:
    """The same settings give the same run to the last bit, another seed another run."""
    (first, policy), (again, same), (other, _) = map(train, (SHORT, SHORT, replace(SHORT, seed=2)))
    assert first == again
    assert torch.equal(parameters(policy), parameters(same))
    assert first != other


def test_arms_see_the_same_prompts_from_the_same_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an arm changes, its run of a seed starts alike and meets the same prompts."""
    seen: list[torch.Tensor] = []
    starts: list[torch.Tensor] = []

    def record(policy: Policy, prompts: torch.Tensor, *rest: object) -> grpo.Rollouts:
        if not seen:
            starts.append(parameters(policy))
        seen.append(prompts)
        return sample(policy, prompts, *rest)

    monkeypatch.setattr(grpo, "sample", record)
    orders = []
    for arm in (script.GRPO, script.AVSPO, script.FOCAL, script.SG_LOW):
        seen.clear()
        train(replace(SHORT, steps=2, **arm.changes))
        orders.append(torch.cat(seen))
    assert all(torch.equal(order, orders[0]) for order in orders)
    assert all(torch.equal(begin, starts[0]) for begin in starts)


def test_without_a_remedy_it_is_plain_grpo_to_the_last_bit() -> None:
    """The run without remedies ends at the parameters of GRPO written out here."""
    _, trained = train(SHORT)
    prompt_dice, dice, policy = start(SHORT)
    optimizer = torch.optim.Adam(policy.parameters(), lr=SHORT.lr, fused=True)
    for _ in range(SHORT.steps):
        prompts = draw(MIXES[SHORT.mix], SHORT.groups, prompt_dice)
        batch = sample(policy, prompts, SHORT.group_size, dice)
        rewards = batch.rewards
        centred = rewards - rewards.mean(dim=1, keepdim=True)
        advantages = (centred / (rewards.std(dim=1, keepdim=True) + 1e-4)).flatten()
        for half in (slice(0, 24), slice(24, 48)):
            answers = batch.answers[half, :, None]
            logits = policy(torch.cat([batch.prompts[half], batch.answers[half, :-1]], dim=1))
            log_prob = logits.gather(2, answers).squeeze(2) - logits.logsumexp(dim=2)
            ratio_ = (log_prob - batch.log_probs[half]).exp()
            gain = advantages[half, None].expand_as(ratio_)
            surrogate = torch.minimum(ratio_ * gain, ratio_.clamp(0.8, 1.2) * gain)
            loss = -surrogate[right_answers(batch.prompts[half]) != BLANK].mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
    assert torch.equal(parameters(trained), parameters(policy))


def test_a_weight_inside_the_clip_silences_one_sign() -> None:
    """At ratio 1 a weight of 0.5 silences what should become rarer, one of 1.5 what should not."""
    weighted = torch.tensor([0.5, 0.5, 1.5, 1.5, 1.1, 0.9], requires_grad=True)
    gain = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    surrogate, silent = clipped(weighted, gain, 0.2)
    surrogate.sum().backward()
    assert weighted.grad is not None
    assert weighted.grad.tolist() == [1.0, 0.0, 0.0, -1.0, 1.0, -1.0]
    assert silent.tolist() == [False, True, True, False, False, False]


def test_token_weights_are_counted_where_they_act() -> None:
    """Weights below the clip range silence tokens inside it and next to none outside it."""
    half = Sharpness(alpha=1.0, tau=1.0, mu=0.0, low=0.5, high=0.5)
    settings = replace(SHORT, sharpness=half)
    inside, outside = (train(replace(settings, inside=where))[0] for where in (True, False))
    for record in inside:
        assert record["weight"] == pytest.approx(0.5)
        assert record["at_low"] + record["at_high"] == pytest.approx(1.0)
    assert np.mean([record["silenced"] for record in inside]) > 0.2
    assert np.mean([record["silenced"] for record in outside]) < 0.02


def test_virtual_rewards_lower_the_effective_rate_alone() -> None:
    """AVSPO always leaves no group without an advantage, while raw collapse is still there."""
    always = Remedies(avspo=Avspo(threshold=0.0, adaptive=False))
    records, _ = train(replace(SHORT, mix="hard", remedies=always))
    assert all(record["acr_effective"] == 0 for record in records)
    assert all(record["all_fail"] > 0 for record in records)


@pytest.mark.slow
def test_the_controller_lowers_effective_below_raw_collapse() -> None:
    """Under AVSPO effective collapse is well below raw; under plain GRPO the two are equal."""
    for mix in MIXES:
        plain, avspo, _ = (run for run in few_runs() if run["mix"] == mix)
        for run, most in ((plain, 1.0), (avspo, 0.9)):
            raw = np.add(run["all_fail"], run["all_pass"])
            effective = np.array(run["acr_effective"])
            assert (effective <= raw + 1e-6).all()
            assert effective.mean() <= most * raw.mean() + 1e-6
        assert np.add(plain["all_fail"], plain["all_pass"]) == pytest.approx(plain["acr_effective"])


@pytest.mark.slow
def test_tables_and_figures_show_every_arm() -> None:
    """Every arm has a row for each mix, and figures hold the series of the runs."""
    twice = [{**run, "seed": seed} for seed in (0, 1) for run in few_runs()]
    for text in (collapse_table(twice), end_table(twice), gradient_table(twice)):
        assert len(text.splitlines()) == 2 + len(script.FEW) * len(MIXES)
        assert "nan" not in text
    assert len(draw_collapse(twice).data) == 4 * len(MIXES)
    assert len(draw_gradient(twice).data) == 2 * len(MIXES)
    assert len(draw_gains(twice).data) == 3 * len(MIXES)


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    """A file of finished runs grows by what is missing only, and gives the same rows again."""
    keep = tmp_path / "runs.jsonl"
    arms = (script.GRPO, script.SG_LOW, script.PACED)
    first = script.run_all(arms, seeds=1, steps=2, keep=keep)
    lines = keep.read_text().splitlines()
    assert len(lines) == len(first) == len(arms) * len(MIXES)
    keep.write_text("\n".join(lines[:-1]) + "\n")
    assert script.run_all(arms, seeds=1, steps=2, keep=keep) == first
    assert sorted(keep.read_text().splitlines()) == sorted(lines)
    assert json.loads(lines[0])["settings"] == repr(Settings(mix="hard", seed=0, steps=2))


def test_a_paced_arm_takes_the_mean_weight_of_the_other() -> None:
    """The control has the learning rate times the mean weight of its arm, mix and seed."""
    runs = [{"arm": script.SG_LOW.name, "mix": "hard", "seed": 3, "weight": 0.5}]
    settings = script.settings_of(script.PACED, "hard", 3, 10, runs)
    assert settings == Settings(mix="hard", seed=3, steps=10, lr=2.5e-4)


def test_intervals_are_students() -> None:
    """The interval is that of scipy's one-sample t test; ratios are made in logs."""
    values = [1.0, 2.0, 4.0, 5.5]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = interval(values)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert difference([3.0, 5.0], [1.0, 2.0]).mean == pytest.approx(2.5)
    assert ratio([2.0, 8.0], [1.0, 1.0]).mean == pytest.approx(4.0)
    assert Interval(1.0, 0.5, 1.5).clears(0)
    assert not Interval(1.0, 0.5, 1.5).clears(1.0)
