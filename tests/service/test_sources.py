"""A run of several sources (ranks) ends when all of them have, or when the first one fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serving import Api, Service, serving


def ranks(api: Api, *sources: str, **given: Any) -> tuple[str, dict[str, Any]]:
    """Introduce some ranks of one new job; give the run's id and what introduces another."""
    wanted = {"project": "ranks", "key": f"key-{time.time_ns()}", "attempt_key": "job", **given}
    answers = [api.post("/runs", {**wanted, "source": source}) for source in sources]
    assert len({(answer.json["id"], answer.json["attempt"]) for answer in answers}) == 1
    return answers[0].json["id"], wanted


def finish(api: Api, run_id: str, source: str | None = None, **said: Any) -> str:
    """Say that a source ended; give the state that the service answers."""
    body = said if source is None else {"source": source, **said}
    answer = api.post(f"/runs/{run_id}/finish", body)
    assert answer.status == 200, answer.body
    return str(answer.json["state"])


def state(api: Api, run_id: str) -> tuple[str, int | None, bool]:
    """Give the state, the exit code, and whether there is a time of the end."""
    run = api.get(f"/runs/{run_id}").json
    return run["state"], run["exit_code"], run["finished_at"] is not None


def test_a_run_is_finished_once_all_its_ranks_are(api: Api) -> None:
    """The first of two ranks that finishes ends nothing; saying so again changes nothing."""
    run_id, _ = ranks(api, "0", "1")
    assert finish(api, run_id, "0") == "running"
    assert finish(api, run_id, "0") == "running"
    assert finish(api, run_id, "0", state="failed") == "running"
    assert state(api, run_id) == ("running", None, False)
    assert finish(api, run_id, "1") == "finished"
    assert state(api, run_id) == ("finished", None, True)


@pytest.mark.parametrize("how", ["failed", "crashed"])
def test_the_first_rank_that_fails_shows_at_once(how: str, api: Api) -> None:
    """A failed or crashed rank ends the run; what other ranks say after it changes nothing."""
    run_id, wanted = ranks(api, "0", "1", "2")
    assert finish(api, run_id, "0") == "running"
    assert finish(api, run_id, "2", state=how, exit_code=3) == how
    assert state(api, run_id) == (how, 3, True)
    assert finish(api, run_id, "1", state="failed", exit_code=1) == how
    api.post("/runs", {**wanted, "source": "3"})
    assert state(api, run_id) == (how, 3, True)


def test_an_end_without_a_source_ends_the_whole_attempt(api: Api) -> None:
    """Whoever does not say which source it is speaks for all."""
    run_id, _ = ranks(api, "0", "1")
    assert finish(api, run_id) == "finished"


def test_a_source_that_only_sent_records_counts(api: Api) -> None:
    """A rank that was never introduced but reported is waited for, too."""
    run_id, _ = ranks(api, "0")
    api.send(run_id, {"step": 1, "source": "a", "scalars": {"loss": 1.0}})
    api.send(run_id, {"step": 2, "source": "0", "scalars": {"loss": 1.0}})
    assert finish(api, run_id, "0") == "running"
    api.send(run_id, {"step": 3, "source": "0", "scalars": {"loss": 1.0}})
    assert finish(api, run_id, "a") == "finished"
    api.send(run_id, {"step": 4, "source": "a", "scalars": {"loss": 1.0}})
    assert state(api, run_id)[0] == "finished"


def test_a_rank_that_comes_after_the_others_finished_goes_on(api: Api) -> None:
    """A slow start is no lost rank: the run goes on until that one ends, once."""
    run_id, wanted = ranks(api, "0")
    assert finish(api, run_id, "0") == "finished"
    api.post("/runs", {**wanted, "source": "0"})
    assert state(api, run_id)[0] == "finished"
    api.post("/runs", {**wanted, "source": "1"})
    assert state(api, run_id) == ("running", None, False)
    assert finish(api, run_id, "1") == "finished"
    api.post("/runs", {**wanted, "source": "1"})
    assert state(api, run_id)[0] == "finished"


def test_each_attempt_has_ranks_of_its_own(api: Api) -> None:
    """A rank that the earlier attempt had is not waited for; one that it lost ends nothing now."""
    run_id, wanted = ranks(api, "0", "1")
    assert finish(api, run_id, "0") == "running"
    api.post("/runs", {**wanted, "attempt_key": "again"})
    assert finish(api, run_id, "1", attempt=1, state="crashed") == "running"
    assert finish(api, run_id, "0", attempt=2) == "finished"


def test_what_ranks_sum_up_is_put_together(api: Api) -> None:
    """Each rank adds to the summary; a new attempt's first summary replaces the old one."""
    run_id, wanted = ranks(api, "0", "1")
    finish(api, run_id, "0", summary={"best": 1, "zero": 0})
    finish(api, run_id, "1", summary={"best": 2, "one": 1})
    assert api.get(f"/runs/{run_id}").json["summary"] == {"best": 2, "zero": 0, "one": 1}
    api.post("/runs", {**wanted, "attempt_key": "again"})
    finish(api, run_id, "0", attempt=2, summary={"last": 3})
    assert api.get(f"/runs/{run_id}").json["summary"] == {"last": 3}


def test_a_rank_that_never_ends_leaves_the_run_stale(
    database_url: str, eventually: Callable[..., Any]
) -> None:
    """Nothing is heard of the last rank: stale, not finished; the end of another is a word."""
    quick = {"stale_after": "PT0.6S", "stale_check_every": "PT0.1S"}
    with serving(database_url, **quick) as service:
        api = service.api("admin")
        run_id, _ = ranks(api, "0", "1", "2")
        assert finish(api, run_id, "0") == "running"
        eventually(lambda: state(api, run_id)[0] == "stale")
        assert finish(api, run_id, "1") == "running"
        eventually(lambda: state(api, run_id)[0] == "stale")
        assert finish(api, run_id, "2") == "finished"
        incidents = api.get(f"/runs/{run_id}/incidents").json["incidents"]
        assert {one["state"] for one in incidents if one["kind"] == "stale"} == {"closed"}


RANK = """
import sys, rlvitals
run = rlvitals.init(project="ranks", id=sys.argv[1])
assert run.wait_registered(30)
run.log({"loss": 1.0}, step=0)
print(run.id, flush=True)
code = sys.stdin.readline().strip()
if code == "finish":
    run.finish()
else:
    sys.exit(int(code))
"""


class Rank:
    """A real process that is one rank of two and ends when it is told."""

    def __init__(self, service: Service, home: Path, key: str, number: int) -> None:
        launcher = {"WORLD_SIZE": "2", "RANK": str(number), "LOCAL_WORLD_SIZE": "2"}
        known = {"RLVITALS_URL": service.url, "RLVITALS_TOKEN": service.tokens["ingest"]}
        environ = {**os.environ, **launcher, **known, "RLVITALS_HOME": str(home)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", RANK, key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        assert self.process.stdout is not None
        self.run_id = self.process.stdout.readline().strip()

    def end(self, how: str) -> int:
        """Tell it how to end, and wait for that; give its exit code."""
        self.process.communicate(how + "\n", timeout=60)
        return self.process.returncode


@pytest.mark.parametrize(
    ("ends", "states", "code"),
    [
        (("finish", "0"), ("running", "finished"), None),
        (("0", "3"), ("running", "failed"), 3),
        (("3", "finish"), ("failed", "failed"), 3),
    ],
)
def test_two_processes_of_one_job(
    ends: tuple[str, str],
    states: tuple[str, str],
    code: int | None,
    service: Service,
    api: Api,
    tmp_path: Path,
) -> None:
    """Two real ranks that no launcher's agent speaks for: the run ends as both of them say."""
    key = f"job-{time.time_ns()}"
    both = [Rank(service, tmp_path, key, number) for number in range(2)]
    assert len({rank.run_id for rank in both}) == 1
    seen = []
    for rank, how in zip(both, ends, strict=True):
        assert rank.end(how) == (int(how) if how.isdigit() else 0)
        seen.append(state(api, rank.run_id)[0])
    assert tuple(seen) == states
    assert state(api, both[0].run_id)[1] == code
