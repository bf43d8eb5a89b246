"""Whatever happens to the service, training goes on and nothing is lost."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rlvitals
from rlvitals import exits, replay
from rlvitals.run import Run
from rlvitals.settings import resolve
from rlvitals.spool import Spool
from rlvitals.transport import Transport

NewRun = Callable[..., rlvitals.Run]


@pytest.fixture
def quick() -> Callable[..., Run]:
    """Start runs that do not take five seconds to give up."""
    started: list[Run] = []

    def start(finish_seconds: float = 0.4, config: Any = None, **given: Any) -> Run:
        hurried = {"finish_seconds": finish_seconds, "flush_seconds": 0.05}
        run = Run(replace(resolve(**given), **hurried, read_seconds=0.5), config)
        started.append(run)
        return run

    return start


def closed_port() -> str:
    """Give an address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def bring_in(folder: Path, url: str, token: str | None = None) -> list[replay.Outcome]:
    """Sync a home to a service."""
    transport = Transport(url, token)
    outcomes = list(replay.sync(folder / "spool", lambda _: transport, patience_seconds=2.0))
    transport.close()
    return outcomes


def test_no_service_at_init_costs_nothing_and_loses_nothing(
    quick: Any, recorder: Any, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without anybody listening, one warning, and all steps are sent later, once."""
    run = quick(url=closed_port(), id="k")
    for step in range(50):
        run.log({"loss": step}, step=step)
        run.log_groups([[1.0, 0.0]], step=step)
    run.finish()
    reached = [r for r in caplog.records if "cannot reach" in r.message]
    assert len(reached) == 1
    assert "rlvitals sync" in caplog.records[-1].message
    [outcome] = bring_in(home, recorder.url)
    assert (outcome.state, outcome.lost) == ("sent", 0)
    assert recorder.scalars("loss") == {step: float(step) for step in range(50)}
    assert len(recorder.groups()) == 50
    assert recorder.finished[0]["state"] == "finished"
    assert not list((home / "spool").iterdir())


def test_a_service_that_hangs_never_holds_up_a_call(quick: Any, recorder: Any, home: Path) -> None:
    """While the service does not answer, calls return and finish keeps its limit."""
    run = quick(url=recorder.url, id="k")
    run.log({"loss": 0}, step=0)
    recorder.wait(lambda: recorder.merged)
    recorder.answering.clear()
    done = threading.Event()

    def train() -> None:
        for step in range(1, 500):
            run.log({"loss": step}, step=step)
        run.finish()
        done.set()

    threading.Thread(target=train, daemon=True).start()
    assert done.wait(20), "a call or finish hangs together with the service"
    recorder.answering.set()
    bring_in(home, recorder.url)
    assert recorder.scalars("loss") == {step: float(step) for step in range(500)}


def test_an_outage_in_mid_run_is_made_up_for(new_run: NewRun, recorder: Any) -> None:
    """Errors and refusals to connect are retried until everything is there, exactly once."""
    run = new_run()
    recorder.failures += [(503, {}), (500, {}), (429, {"Retry-After": "0.1"}), (502, {})]
    for step in range(40):
        run.log({"loss": step}, step=step)
    recorder.wait(lambda: len(recorder.scalars("loss")) == 40, 30)
    run.finish()
    assert recorder.scalars("loss") == {step: float(step) for step in range(40)}
    assert run.losses == {}


def test_a_backlog_is_sent_without_a_pause_between_batches(recorder: Any) -> None:
    """What waits after an outage, or is logged fast, is not held back for the next flush."""
    recorder.refuse_steps = True
    run = Run(replace(resolve(url=recorder.url), flush_seconds=3600.0))
    for step in range(450):
        run.log({"loss": step}, step=step)
    recorder.wait(lambda: len(run._outbox.store.read(2**20)) == 450)
    recorder.refuse_steps = False
    recorder.wait(lambda: len(recorder.scalars("loss")) == 450, 30)
    run.finish()


def test_a_small_batch_does_not_hold_back_the_full_one_behind_it(recorder: Any) -> None:
    """What came together while the first few records were under way follows at once."""
    run = Run(replace(resolve(url=recorder.url), flush_seconds=3600.0))
    assert run.wait_registered(20)
    recorder.answering.clear()
    run.log({"loss": 0}, step=0)
    recorder.wait(lambda: any(path.endswith("/steps") for path in recorder.held))
    for step in range(1, 251):
        run.log({"loss": step}, step=step)
    recorder.wait(lambda: len(run._outbox.store.read(2**20)) == 251)
    recorder.answering.set()
    recorder.wait(lambda: len(recorder.scalars("loss")) == 251, 30)
    run.finish()


def test_a_service_that_comes_and_goes_is_warned_about_once(
    recorder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Every second request failing is one trouble, not a warning a minute."""
    run = Run(replace(resolve(url=recorder.url), flush_seconds=0.01))
    assert run.wait_registered(20)
    for step in range(4):
        recorder.failures.append((503, {}))
        run.log({"loss": step}, step=step)
        recorder.wait(lambda at=step: len(recorder.scalars("loss")) == at + 1, 30)
    run.finish()
    assert sum("in trouble" in r.message for r in caplog.records) == 1


def test_retry_after_is_honoured(new_run: NewRun, recorder: Any) -> None:
    """The service's wish for patience is the least wait before the next request."""
    recorder.failures += [(429, {"Retry-After": "1.0"})]
    began = time.monotonic()
    run = new_run()
    assert run.wait_registered(20)
    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize("status", [401, 403, 404, 409])
def test_a_refusal_stops_sending_with_one_warning_and_keeps_the_data(
    status: int, quick: Any, recorder: Any, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A refused run is not retried, is warned about once, and can be sent once that is mended."""
    recorder.failures += [(status, {})] * 100
    run = quick(url=recorder.url, id="k", finish_seconds=5.0)
    recorder.wait(lambda: "refuses" in caplog.text)
    for step in range(30):
        run.log({"loss": step}, step=step)
    run.finish()
    asked = len(recorder.requests)
    assert asked == 1
    assert sum("refuses" in r.message for r in caplog.records) == 1
    recorder.failures.clear()
    bring_in(home, recorder.url)
    assert len(recorder.scalars("loss")) == 30


def test_a_wrong_token_is_named(
    quick: Any, recorder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning says what to check."""
    recorder.tokens = {"right"}
    quick(url=recorder.url, token="wrong").finish()
    assert "RLVITALS_TOKEN" in caplog.text


def test_a_batch_that_is_too_large_is_split(new_run: NewRun, recorder: Any) -> None:
    """On 413 batches shrink until they fit, and nothing is lost."""
    recorder.largest_body = 3000
    recorder.failures += [(503, {})]
    run = new_run()
    for step in range(60):
        run.log({f"metric_{i}": step for i in range(20)}, step=step)
    run.finish()
    assert len(recorder.scalars("metric_0")) == 60
    assert run.losses == {}


def test_a_single_record_too_large_is_given_up_and_counted(new_run: NewRun, recorder: Any) -> None:
    """One impossible record costs itself only."""
    recorder.largest_body = 3000
    run = new_run()
    run.log({f"metric_{i}": 1.0 for i in range(1000)}, step=0)
    run.alert("beside it")
    run.log({"loss": 1.0}, step=1)
    run.finish()
    assert recorder.scalars("loss") == {1: 1.0}
    assert [alert.title for alert in recorder.alerts] == ["beside it"]
    assert run.losses == {"too_large": 1}
    assert recorder.lost == {"too_large": 1}


def test_a_rejected_record_is_counted_and_not_sent_again(new_run: NewRun, recorder: Any) -> None:
    """One bad record spoils neither its batch nor the rest of the run."""
    recorder.reject = lambda record: "step 1 is bad" if record.step == 1 else None
    run = new_run()
    for step in range(3):
        run.log({"loss": step}, step=step)
    run.finish()
    assert recorder.scalars("loss") == {0: 0.0, 2: 2.0}
    assert run.losses == {"rejected": 1}


def test_an_answer_of_something_else_is_no_service(
    quick: Any, recorder: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of a proxy, answered with 200, is not taken for an acknowledgement."""
    handler = recorder.server.RequestHandlerClass
    true_reply = handler.reply
    monkeypatch.setattr(
        handler, "reply", lambda self, status, answer, headers=None: true_reply(self, 200, [1])
    )
    run = quick(url=recorder.url, id="k")
    run.log({"loss": 1.0}, step=0)
    run.finish()
    monkeypatch.undo()
    monkeypatch.setenv("RLVITALS_SILENT", "1")
    bring_in(home, recorder.url)
    assert recorder.scalars("loss") == {0: 1.0}


def test_finish_keeps_to_five_seconds_against_a_dead_service(home: Path) -> None:
    """With default settings finish gives up after five seconds in all."""
    run = rlvitals.init(url=closed_port())
    run.log({"loss": 1.0}, step=0)
    assert run.settings.finish_seconds == 5.0
    began = time.monotonic()
    run.finish()
    assert time.monotonic() - began < 12.0  # far less than any time-out of a request
    assert len(list((home / "spool").glob("*.spool"))) == 1


def test_the_service_is_found_when_it_comes_up_later(quick: Any, recorder: Any, home: Path) -> None:
    """A run that began without any known service sends once `rlvitals up` wrote down its own."""
    run = quick(finish_seconds=5.0)
    run.log({"loss": 1.0}, step=0)
    home.mkdir(exist_ok=True)
    (home / "service.json").write_text(f'{{"url": "{recorder.url}", "token": "t", "pid": 1}}')
    recorder.wait(lambda: recorder.merged, 30)
    run.finish()
    assert recorder.finished


def test_offline_records_and_sync_brings_it_in(recorder: Any, home: Path) -> None:
    """An offline run asks nobody, ends at once, and `sync` sends it whole."""
    run = rlvitals.init(mode="offline", url=recorder.url, name="off", config={"lr": 1})
    run.log({"loss": 1.0}, step=0)
    run.finish()
    assert not recorder.requests
    [outcome] = bring_in(home, recorder.url)
    assert (outcome.state, outcome.records, outcome.name) == ("sent", 1, "off")
    assert recorder.registrations[0]["config"] == {"lr": 1}
    assert bring_in(home, recorder.url) == []


def test_sync_says_when_it_fails_and_keeps_the_spool(recorder: Any, home: Path) -> None:
    """What could not be sent stays, and the outcome is 'failed'."""
    run = rlvitals.init(mode="offline")
    run.log({"loss": 1.0}, step=0)
    run.finish()
    [outcome] = bring_in(home, closed_port())
    assert outcome.state == "failed"
    assert outcome.detail
    assert len(list((home / "spool").glob("*.spool"))) == 1


def test_sync_leaves_living_runs_alone(new_run: NewRun, recorder: Any, home: Path) -> None:
    """The spool of a process that still writes is busy, not sent twice."""
    recorder.refuse_steps = True
    run = new_run()
    run.log({"loss": 1.0}, step=0)
    recorder.wait(lambda: run.spool is not None)
    assert [outcome.state for outcome in bring_in(home, recorder.url)] == ["busy"]
    recorder.refuse_steps = False


TRAINER = """
import os, sys, time
import rlvitals
run = rlvitals.init(project="p", url=sys.argv[1], id="killed")
for step in range(int(sys.argv[2])):
    run.log({"loss": step}, step=step)
    run.log_groups([[1.0, 0.0], [0.0, 0.0]], step=step)
    print(step, flush=True)
    time.sleep(0.005)
print("end", flush=True)
time.sleep(60)
"""


def start_trainer(url: str, steps: int) -> subprocess.Popen[str]:
    """Start a trainer of 5 ms steps."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", TRAINER, url, str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def train_and_kill(url: str) -> None:
    """Kill -9 a trainer as soon as it has made 400 steps of 5 ms."""
    with start_trainer(url, 400) as trainer:
        assert trainer.stdout is not None
        for line in trainer.stdout:
            if line.strip() == "399":
                break
        trainer.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("alive", [True, False])
def test_a_killed_trainer_loses_at_most_its_last_steps(
    alive: bool, recorder: Any, home: Path
) -> None:
    """All but the last moments are on disk; the next run, or a sync, brings them in."""
    recorder.refuse_steps = True
    train_and_kill(recorder.url if alive else closed_port())
    recorder.refuse_steps = False
    if alive:
        later = rlvitals.init(project="p", url=recorder.url)
        recorder.wait(lambda: any(end["run"] == "id-killed" for end in recorder.finished), 30)
        later.finish()
    else:
        [outcome] = bring_in(home, recorder.url)
        assert outcome.state == "sent"
    kept = len(recorder.scalars("loss"))
    assert kept >= 300  # how few are lost when the machine is free is held below
    assert abs(len(recorder.groups()) - kept) <= 1
    [end] = [end for end in recorder.finished if end["run"] == "id-killed"]
    assert end["state"] == "crashed"


def test_at_best_a_killed_trainer_loses_two_steps(recorder: Any, home: Path) -> None:
    """Given the processor when it asks for it, the writing thread is two steps behind at most."""
    kept = 0
    for _ in range(5):
        train_and_kill(closed_port())
        recorder.merged.clear()
        bring_in(home, recorder.url)
        kept = max(kept, len(recorder.scalars("loss")))
        if kept >= 398:
            return
    pytest.fail(f"{400 - kept} steps were lost at best")


def test_a_forked_child_leaves_the_parents_line_alone(new_run: NewRun, recorder: Any) -> None:
    """The child's calls do nothing, its exit ends nothing, and the parent goes on."""
    run = new_run()
    run.log({"loss": 0.0}, step=0)
    recorder.wait(lambda: recorder.merged)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        run.log({"loss": 777.0}, step=100)
        run.log_groups([[1.0, 0.0]], step=100)
        given = [[1.0]]
        same = run.reweight(given, [[1.0]]) is given
        run.finish()
        exits.finish_all()
        counted = msgspec.json.encode([run.losses, same])
        os.write(write, counted)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(write)
    with os.fdopen(read, "rb") as told:
        losses, same = msgspec.json.decode(told.read())
    assert losses == {"forked": 3}
    assert same
    run.log({"loss": 1.0}, step=1)
    run.finish()
    assert recorder.scalars("loss") == {0: 0.0, 1: 1.0}
    assert len(recorder.finished) == 1


def test_a_child_may_have_a_line_of_its_own(new_run: NewRun, recorder: Any) -> None:
    """Calling init in a forked child works like anywhere else."""
    new_run(id="parent")
    child = os.fork()
    if child == 0:
        own = rlvitals.init(id="child", url=recorder.url, source="worker")
        own.log({"loss": 3.0}, step=0)
        own.finish()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert [end["run"] for end in recorder.finished] == ["id-child"]


def script(body: str, url: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own."""
    command = [sys.executable, "-c", textwrap.dedent(body), url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_script_that_just_ends_finishes_its_run(recorder: Any) -> None:
    """Without a call of finish the end of the program closes the run."""
    body = """
        import sys, rlvitals
        rlvitals.init(url=sys.argv[1])
        rlvitals.log({"loss": 1.0}, step=0)
    """
    done = script(body, recorder.url)
    assert done.returncode == 0, done.stderr
    assert [end["state"] for end in recorder.finished] == ["finished"]
    assert recorder.scalars("loss") == {0: 1.0}


def test_a_script_that_dies_of_an_exception_has_failed(recorder: Any) -> None:
    """An uncaught exception is shown as ever and marks the run failed."""
    body = """
        import sys, rlvitals
        rlvitals.init(url=sys.argv[1])
        raise RuntimeError("training broke")
    """
    done = script(body, recorder.url)
    assert done.returncode == 1
    assert "training broke" in done.stderr
    assert [end["state"] for end in recorder.finished] == ["failed"]


def test_a_disk_that_refuses_leaves_memory(
    new_run: NewRun, recorder: Any, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no spool can be written data still reaches the service, with one warning."""
    home.write_text("a file where the folder should be")
    run = new_run()
    run.log({"loss": 1.0}, step=0)
    run.finish()
    assert recorder.scalars("loss") == {0: 1.0}
    assert sum("spool" in r.message for r in caplog.records) == 1


def test_broken_logging_does_not_reach_training(
    quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A logging handler that raises changes nothing for the trainer."""

    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("no logging today")

    handler = Broken()
    logging.getLogger("rlvitals").addHandler(handler)
    try:
        run = quick(url=closed_port())
        run.log({"loss": "text"}, step=-1)
        run.finish()
    finally:
        logging.getLogger("rlvitals").removeHandler(handler)
    assert run.losses["log_refused"] == 1


def test_a_burst_beyond_the_queue_is_kept_whole(home: Path) -> None:
    """A loop faster than the disk is slowed by a hair rather than robbed of its steps."""
    run = Run(replace(resolve(mode="offline"), queue_items=8000, finish_seconds=60.0))
    for step in range(24_000):
        run.log({"loss": step}, step=step)
    run.finish()
    assert run.losses == {}
    assert run.spool is not None
    spool, steps, at = Spool.open(run.spool), [], 0
    while frames := spool.read(at):
        steps += [msgspec.msgpack.decode(f.body)["step"] for f in frames if f.kind == b"r"]
        at = frames[-1].end
    spool.close()
    assert steps == list(range(24_000))


def test_a_call_stays_within_a_millisecond_also_when_the_queue_fills_up(home: Path) -> None:
    """What slows an endless burst down is less than what a call may cost: 1 ms at p99."""
    best = math.inf
    for _ in range(5):
        run = Run(replace(resolve(mode="offline"), queue_items=1000, finish_seconds=60.0))
        took = []
        for step in range(3000):
            began = time.perf_counter()
            run.log({"loss": step}, step=step)
            took.append(time.perf_counter() - began)
        run.finish()
        best = min(best, sorted(took)[2970])
        if best < 0.001:
            return
    pytest.fail(f"p99 is {best * 1000:.2f} ms at best")


def test_a_stuck_disk_drops_the_oldest_and_counts(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the writer stands still, calls do not wait: the newest stay and losses are counted."""
    stuck, go_on = threading.Event(), threading.Event()

    def hang(self: Run) -> Spool:
        stuck.set()
        go_on.wait(60)
        raise OSError("gave up")

    monkeypatch.setattr(Run, "_open_spool", hang)
    run = Run(replace(resolve(mode="offline"), queue_items=100, finish_seconds=30.0))
    assert stuck.wait(10)
    for step in range(250):
        run.log({"loss": step}, step=step)
    assert run.losses == {"queue_full": 150}
    assert next(item.step for item in run._outbox._queue) == 150  # type: ignore[union-attr]
    go_on.set()
    run.finish()
