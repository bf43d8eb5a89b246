"""What a trainer logs arrives as it was, in every form and numbering a trainer may use."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import rlvitals

NewRun = Callable[..., rlvitals.Run]

MIXED = [[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]


def test_a_run_registers_logs_and_finishes(new_run: NewRun, recorder: Any) -> None:
    """Registration, groups, scalars and the end reach the service, and the spool is gone."""
    run = new_run(name="first", config={"lr": 1e-6}, tags=["a", "b"], success_threshold=1.0)
    run.log_groups(MIXED, step=3, group_ids=["x", "y"])
    run.log({"loss": 0.5, "train/grad_norm": 2}, step=3)
    run.finish()
    sent = recorder.registrations[0]
    assert sent["name"] == "first"
    assert sent["config"] == {"lr": 1e-6}
    assert sent["tags"] == ["a", "b"]
    assert sent["abilities"] == ["focal", "avspo"]
    [record] = recorder.merged.values()
    assert record.groups.size == [4, 4]
    assert record.groups.n_correct == [2, 0]
    assert record.groups.reward_std == [pytest.approx(math.sqrt(1 / 3)), 0.0]
    assert record.groups.group_id == ["x", "y"]
    assert record.scalars == {"loss": 0.5, "grad_norm": 2.0}
    said = {"attempt": 1, "source": "0", "state": "finished"}
    assert recorder.finished == [{"run": f"id-{run.key}", **said}]
    assert not list((run.settings.home / "spool").iterdir())


@pytest.mark.parametrize(
    "rewards",
    [
        np.array(MIXED),
        torch.tensor(MIXED),
        torch.tensor(MIXED, dtype=torch.bfloat16, requires_grad=True),
        [torch.tensor(row) for row in MIXED],
        [tuple(row) for row in MIXED],
    ],
)
def test_any_kind_of_rewards_gives_the_same_groups(
    rewards: Any, new_run: NewRun, recorder: Any
) -> None:
    """Arrays, tensors of any type and rows of either are the same rewards."""
    run = new_run(success_threshold=1.0)
    run.log_groups(rewards, step=0)
    run.finish()
    [record] = recorder.merged.values()
    assert record.groups.reward_mean == [0.5, 0.0]
    assert record.groups.n_correct == [2, 0]


def test_what_is_changed_after_the_call_does_not_show(new_run: NewRun, recorder: Any) -> None:
    """Rewards and scalars are copied before the call returns."""
    run = new_run()
    rewards, loss, kept = np.ones((2, 4)), torch.tensor(1.0), np.array(2.0)
    scores = torch.ones(2, 4)
    run.log_groups(rewards, step=0)
    run.log_groups(scores, step=1)
    run.log({"loss": loss, "kl": kept}, step=0)
    rewards[:] = 7.0
    scores.zero_()
    loss.fill_(9.0)
    kept[...] = 9.0
    run.finish()
    assert [r.groups.reward_mean for r in recorder.groups()] == [[1.0, 1.0], [1.0, 1.0]]
    assert recorder.scalars("loss") == {0: 1.0}
    assert recorder.scalars("kl") == {0: 2.0}


def test_scalars_of_every_kind_arrive_and_others_are_counted(
    new_run: NewRun, recorder: Any
) -> None:
    """Numbers keep their value and class, None stays none, the rest is a loss with a reason."""
    run = new_run()
    run.log(
        {
            "a": 1,
            "b": np.float32(0.5),
            "c": torch.tensor([2.0], requires_grad=True),
            "d": "0.25",
            "e": None,
            "f": math.nan,
            "g": math.inf,
            "h": np.float64("-inf"),
            "i": True,
            "j": "text",
            "k": [1.0],
            "l": torch.ones(3),
            "m": 10**400,
            "n": object(),
            7: 1.5,
        },
        step=0,
    )
    run.finish()
    [record] = recorder.merged.values()
    assert record.scalars == {
        "a": 1.0,
        "b": 0.5,
        "c": 2.0,
        "d": 0.25,
        "e": None,
        "f": "NaN",
        "g": "Infinity",
        "h": "-Infinity",
        "i": 1.0,
        "7": 1.5,
    }
    assert run.losses == {"scalar_str": 1, "scalar_unusable": 3, "scalar_int": 1}
    assert recorder.lost == run.losses


def test_without_steps_a_counter_pairs_calls_of_one_iteration(
    new_run: NewRun, recorder: Any
) -> None:
    """Each kind of call moves the counter when it comes again."""
    run = new_run()
    for value in range(3):
        run.log_groups(MIXED)
        run.log({"loss": value})
    run.finish()
    assert recorder.scalars("loss") == {0: 0.0, 1: 1.0, 2: 2.0}
    assert [r.step for r in recorder.groups()] == [0, 1, 2]


def test_a_given_step_holds_for_calls_without_one(new_run: NewRun, recorder: Any) -> None:
    """After an explicit step, calls without a step belong to it."""
    run = new_run()
    run.log_groups(MIXED, step=41)
    run.log({"loss": 1.0})
    run.finish()
    assert recorder.scalars("loss") == {41: 1.0}


def test_steps_may_go_back(new_run: NewRun, recorder: Any) -> None:
    """A step lower than an earlier one is kept like any other."""
    run = new_run()
    for step in (249, 203, 2**40):
        run.log({"loss": step}, step=step)
    run.finish()
    assert sorted(recorder.scalars("loss")) == [203, 249, 2**40]


def test_several_calls_in_a_step_are_several_generations(new_run: NewRun, recorder: Any) -> None:
    """Micro-batches without a generation are numbered, so none replaces another."""
    run = new_run()
    for _ in range(3):
        run.log_groups(MIXED, step=5)
    run.log_groups(MIXED, step=6)
    run.log_groups(MIXED, step=5, phase="eval")
    run.finish()
    assert [(r.step, r.generation) for r in recorder.groups()] == [(5, 0), (5, 1), (5, 2), (6, 0)]
    assert [(r.step, r.generation) for r in recorder.groups("eval")] == [(5, 0)]


def test_a_generation_used_again_at_a_later_step_is_carried(new_run: NewRun, recorder: Any) -> None:
    """The same groups under the same number count once; other groups under it count anew."""
    run = new_run()
    for step in (10, 11):
        run.log_groups(MIXED, step=step, generation=7)
    run.log_groups([[0.0, 1.0]], step=12, generation=7)
    run.finish()
    assert [(r.step, r.carried) for r in recorder.groups()] == [
        (10, False),
        (11, True),
        (12, False),
    ]


def test_one_generation_logged_in_pieces_is_whole(new_run: NewRun, recorder: Any) -> None:
    """Pieces of one numbered generation are joined; the same piece twice counts once."""
    run = new_run()
    run.log_groups([[1.0, 0.0]], step=0, generation=0, filtered=2)
    run.log_groups([[1.0, 1.0]], step=0, generation=0, dropped=1)
    run.log_groups([[1.0, 1.0]], step=0, generation=0, dropped=1)
    run.finish()
    [record] = recorder.groups()
    assert record.groups.reward_mean == [0.5, 1.0]
    assert (record.filtered, record.dropped) == (2, 1)


def test_missing_rewards_are_counted_not_guessed(new_run: NewRun, recorder: Any) -> None:
    """None and NaN leave the group smaller and count as errored."""
    run = new_run(success_threshold=1.0)
    run.log_groups([[1.0, None, 0.0, math.nan], [None, None]], step=0)
    run.finish()
    [record] = recorder.groups()
    assert record.groups.size == [2, 0]
    assert record.groups.reward_mean == [0.5, None]
    assert record.errored == 4


def test_sampled_and_trained_groups_stay_apart(new_run: NewRun, recorder: Any) -> None:
    """What dynamic filtering left is kept beside what was sampled."""
    run = new_run()
    run.log_groups(MIXED, step=0)
    run.log_groups(MIXED[:1], step=0, stage="trained", filtered=1)
    run.finish()
    assert [len(r.groups.size) for r in recorder.groups()] == [2]
    assert [r.filtered for r in recorder.groups(stage="trained")] == [1]


def test_a_whole_prompt_as_id_is_hashed(new_run: NewRun, recorder: Any) -> None:
    """Texts stay with the trainer: of a long prompt only a hash travels."""
    run = new_run()
    run.log_groups(MIXED, step=0, prompt_ids=["p1", "tell me " * 100_000])
    run.finish()
    short, long = recorder.groups()[0].groups.prompt_id
    assert short == "p1"
    assert len(long) == 24


@pytest.mark.parametrize("text", ["\ud83d", "😀", "a\x00b", ""])
def test_odd_texts_are_sent_as_valid_text(text: str, new_run: NewRun, recorder: Any) -> None:
    """Lone surrogates and the like neither stop a run nor its records."""
    run = new_run(name=text, config={text: text}, tags=[text])
    run.log({f"m{text}": 1.0}, step=0)
    run.alert(text, text)
    run.finish()
    assert len(recorder.merged) == 1
    assert len(recorder.alerts) == 1
    assert recorder.finished


def test_alert_carries_level_and_step(new_run: NewRun, recorder: Any) -> None:
    """An alert of the user's reaches the service."""
    run = new_run()
    run.log({"loss": 1.0}, step=9)
    run.alert("verifier down", "no answers", level="critical")
    run.finish()
    [alert] = recorder.alerts
    assert (alert.title, alert.level, alert.step) == ("verifier down", "critical", 9)


def test_a_block_that_raises_marks_the_run_failed(new_run: NewRun, recorder: Any) -> None:
    """The exception passes through and the run ends as failed."""
    run = new_run()
    run.summary["best"] = 0.75
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError
    [end] = recorder.finished
    assert end["state"] == "failed"
    assert end["exit_code"] == 1
    assert end["summary"] == {"best": 0.75}


def test_finish_twice_and_calls_after_it_do_nothing(new_run: NewRun, recorder: Any) -> None:
    """A finished run ignores and counts further calls."""
    run = new_run()
    run.finish()
    run.finish()
    run.log({"loss": 1.0})
    assert len(recorder.finished) == 1
    assert run.losses == {"after_finish": 1}


def test_module_level_calls_use_the_newest_run(recorder: Any) -> None:
    """rlvitals.log and its kin speak for the run of the last init."""
    rlvitals.log({"loss": 0.0})
    rlvitals.init(project="p", url=recorder.url)
    rlvitals.log({"loss": 1.0}, step=4)
    rlvitals.log_groups(MIXED, step=4)
    rlvitals.alert("look")
    advantages = np.ones((2, 4))
    assert rlvitals.reweight(advantages, MIXED, step=4) is advantages
    rlvitals.finish()
    assert recorder.scalars("loss") == {4: 1.0}
    assert len(recorder.alerts) == 1
    rlvitals.finish()


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "sometimes"},
        {"resume": "perhaps"},
        {"abilities": ["magic"]},
        {"success_threshold": math.nan},
        {"source": "x" * 65},
    ],
)
def test_settings_that_cannot_be_meant_raise_at_init(wrong: dict[str, Any]) -> None:
    """A programming error shows at once, and names its field."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        rlvitals.init(**wrong)


def test_environment_stands_in_for_arguments(
    recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The RLVITALS_* variables name address, project, run and tags."""
    values = {"URL": recorder.url, "PROJECT": "math", "NAME": "n", "RUN_ID": "k", "TAGS": "x, y"}
    for name, value in values.items():
        monkeypatch.setenv(f"RLVITALS_{name}", value)
    rlvitals.init().finish()
    [sent] = recorder.registrations
    assert (sent["project"], sent["name"], sent["key"]) == ("math", "n", "k")
    assert sent["tags"] == ["x", "y"]


def test_disabled_does_nothing_at_all(recorder: Any, home: Any) -> None:
    """A disabled run touches neither network nor disk and gives advantages back."""
    run = rlvitals.init(mode="disabled", url=recorder.url)
    run.log({"loss": 1.0})
    run.log_groups(MIXED)
    advantages = object()
    assert run.reweight(advantages, MIXED) is advantages
    run.finish()
    assert not home.exists()
    assert not recorder.requests


def test_resuming_is_a_new_attempt_of_the_same_run(new_run: NewRun, recorder: Any) -> None:
    """The same id later is the same run, and its records carry the new attempt."""
    for value in (1.0, 2.0):
        run = new_run(id="mine")
        run.log({"loss": value}, step=100)
        run.finish()
    assert sorted((key[0], r.scalars["loss"]) for key, r in recorder.merged.items()) == [
        (1, 1.0),
        (2, 2.0),
    ]


def test_advantages_are_looked_at_while_no_directive_is_on(new_run: NewRun, recorder: Any) -> None:
    """The share of groups without any advantage is known, and joins the groups' record."""
    run = new_run()
    rewards = np.array(MIXED)
    advantages = rewards - rewards.mean(1, keepdims=True)
    assert run.reweight(advantages, rewards, step=0) is advantages
    run.log_groups(rewards, step=0)
    run.finish()
    [record] = recorder.merged.values()
    assert (record.advantage_groups, record.advantage_zero) == (2, 1)
    assert record.groups.size == [4, 4]
    assert record.applied is None


def test_heartbeats_come_without_any_log_call(recorder: Any) -> None:
    """A run that is silent for long still shows that it lives."""
    from dataclasses import replace

    from rlvitals.run import Run
    from rlvitals.settings import resolve

    run = Run(replace(resolve(url=recorder.url), heartbeat_seconds=0.05))
    recorder.wait(lambda: len(recorder.heartbeats) >= 3)
    run.finish()
    assert recorder.heartbeats[0] == {"attempt": 1, "source": "0"}


def test_records_of_one_step_travel_together(new_run: NewRun, recorder: Any) -> None:
    """Calls of one step, close in time, are one record sent once."""
    run = new_run()
    assert run.wait_registered(20)
    for step in range(20):  # a busy machine may come between the calls of some steps
        run.log_groups(MIXED, step=step)
        run.log({"loss": 1.0}, step=step)
        run.log({"kl": 2.0}, step=step)
        recorder.wait(lambda at=step: at in recorder.scalars("kl"))
        if list(recorder.arrivals.values())[-1] == 1:
            return
    pytest.fail("every step was sent in pieces")


def test_commit_false_keeps_the_counter_in_place(new_run: NewRun, recorder: Any) -> None:
    """As with other trackers, what is logged with commit=False belongs to the step to come."""
    run = new_run()
    for value in range(2):
        run.log({"loss": value})
        run.log({"kl": value}, commit=False)
    run.finish()
    assert recorder.scalars("loss") == recorder.scalars("kl") == {0: 0.0, 1: 1.0}


def test_a_record_that_cannot_be_read_back_costs_itself_only(
    new_run: NewRun, recorder: Any
) -> None:
    """A spooled record the wire does not allow is counted, and the next ones are sent."""
    run = new_run(source="s")
    assert run.wait_registered(20)
    recorder.wait(lambda: hasattr(run._outbox, "_reducer"))
    run._outbox._reducer._source = "x" * 65
    run.log({"loss": 1.0}, step=0)
    recorder.wait(lambda: "unreadable" in run.losses)
    run._outbox._reducer._source = "s"
    run.log({"loss": 1.0}, step=1)
    run.finish()
    assert recorder.scalars("loss") == {1: 1.0}
    assert run.losses == {"unreadable": 1}
