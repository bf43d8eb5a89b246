"""`rlvitals demo`: everything on this machine, and a small real GRPO job to watch."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlvitals.api import Api, ApiError
from rlvitals.discovery import home
from rlvitals_service.children import Child, GivenUp
from rlvitals_service.launcher import DASHBOARD_PORT, HOST, PORT, say
from rlvitals_service.local import CannotStart, DataFolder, free_port
from rlvitals_service.stack import LOOK_SECONDS, ONE_THREAD, Stack, stopping_signals

JOB = "tiny_grpo.py"
JOB_STOP_SECONDS = 15.0
REPORT_SECONDS = 5.0


def demo(argv: Sequence[str]) -> int:
    """Run the demo; it ends by itself when it was given steps and no browser."""
    options = _parse(argv)
    job = find_job()
    folder = DataFolder((options.data or home() / "demo").expanduser().absolute())
    with stopping_signals() as stop_asked, folder.owned():
        port = options.port if options.port is not None else free_port(HOST, PORT)
        dashboard_port = options.dashboard_port
        if dashboard_port is None:
            dashboard_port = free_port(HOST, DASHBOARD_PORT)
        stack = Stack(folder, HOST, port, dashboard_port, say, stop_asked, own_database=True)
        child: Child | None = None
        try:
            stack.start()
            child = _start_job(stack, job, options.steps)
            _welcome(stack, child, options)
            return _follow(stack, child, ends=options.no_browser and options.steps is not None)
        finally:
            if child is not None:
                child.stop(JOB_STOP_SECONDS)
            stack.stop()


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("rlvitals demo", description=__doc__)
    parser.add_argument("--steps", type=int, help="training steps of the job (0: until stopped)")
    parser.add_argument("--no-browser", action="store_true", help="do not open the dashboard")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder for the demo's data")
    parser.add_argument("--port", type=int, help=f"of the service ({PORT}, else a free one)")
    parser.add_argument(
        "--dashboard-port", type=int, help=f"of the dashboard ({DASHBOARD_PORT}, else a free one)"
    )
    options = parser.parse_args(argv)
    if options.steps is not None and options.steps < 0:
        parser.error("--steps must not be negative")
    return options


def find_job() -> Path:
    """Find the example job: in the repository, else as packed into the wheel."""
    here = Path(__file__).resolve()
    for folder in (here.parents[2] / "examples", here.parent / "examples"):
        if (folder / JOB).is_file():
            if find_spec("torch") is None:
                msg = "The demo trains a small real model and needs torch: pip install torch."
                raise CannotStart(msg)
            return folder / JOB
    raise CannotStart(f"The example {JOB} is missing beside {here.parent}: install rlvitals again.")


def _start_job(stack: Stack, job: Path, steps: int | None) -> Child:
    command = [sys.executable, str(job), "--name", job.stem.replace("_", "-")]
    command += [] if steps is None else ["--steps", str(steps)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RLVITALS_")},
        **dict.fromkeys(ONE_THREAD, "1"),
        "PYTHONUNBUFFERED": "1",
        "RLVITALS_URL": stack.url,
        "RLVITALS_TOKEN": stack.folder.read_token(),
        "RLVITALS_MODE": "online",
        # The job's spool stays with the demo's data, apart from real runs.
        "RLVITALS_HOME": str(stack.folder.path),
    }
    child = Child("job", command, environment, stack.folder.log("job"))
    child.start()
    return child


def _welcome(stack: Stack, child: Child, options: argparse.Namespace) -> None:
    say(f"\nA small GRPO job trains now (its log: {child.log}). Watch it, and steer it:\n")
    say(f"  dashboard  {stack.dashboard_url or 'not installed'}")
    say(f"  service    {stack.url}   (REST: {stack.url}/docs)")
    say(f"  data       {stack.folder.path}\n")
    say("Ctrl-C stops everything." if not options.no_browser else "")
    if not options.no_browser and stack.dashboard_url and _has_display():
        webbrowser.open(stack.dashboard_url)


def _has_display() -> bool:
    shows = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return shows or not sys.platform.startswith("linux")


def _follow(stack: Stack, child: Child, *, ends: bool) -> int:
    """Look after everything; report the job now and then, and sum it up when it is done."""
    looks, done = 0, False
    with Api(stack.url, stack.folder.read_token()) as api:
        while not stack.stop_asked.wait(LOOK_SECONDS):
            stack.watch()
            looks += 1
            if done:
                continue
            if child.exit_code is not None:
                done = True
                if child.exit_code != 0:
                    raise GivenUp(f"The job failed. {child.last_words()}")
                _summary(stack, api)
                if ends:
                    return 0
                say("The dashboard stays until Ctrl-C.")
            elif looks % int(REPORT_SECONDS / LOOK_SECONDS) == 0:
                _report(api)
    return 0


def _report(api: Api) -> None:
    run = _newest_run(api)
    if run is not None:
        say(f"  step {run['step']}: {_vitals(run['latest'])}")


def _summary(stack: Stack, api: Api) -> None:
    """Say in plain words how the job ended."""
    run = _newest_run(api)
    if run is None:
        raise GivenUp("The job is done, but the service knows of no run. See the job's log.")
    say(f"\nThe job is done: run {run['name']} is {run['state']} at step {run['step']}.")
    say(f"  {_vitals(run['latest'])}")
    try:
        incidents = api.incidents(run["id"])
    except ApiError as error:
        incidents = []
        say(f"  incidents: unknown ({error})")
    say(f"  incidents: {len(incidents) or 'none'}")
    for incident in incidents:
        since = f"since step {incident['onset_step']}"
        say(f"    {incident['severity']}  {incident['title']}  ({since})")
    say(f"  verdict: {run['verdict'] or 'none yet'}")
    say(f"  dashboard {stack.dashboard_url}/runs/{run['id']}" if stack.dashboard_url else "")
    say(f"  service   {stack.url}/api/v1/runs/{run['id']}")


def _newest_run(api: Api) -> dict[str, Any] | None:
    try:
        runs = api.runs(sort="-last_seen_at", limit=1)
    except ApiError:
        return None
    return dict(runs[0]) if runs else None


def _vitals(latest: dict[str, Any]) -> str:
    """Write the main vitals with their sides; a metric without data is left out."""
    names = {
        "acr": "ACR",
        "acr_all_fail": "all fail",
        "acr_all_pass": "all pass",
        "success_rate": "success",
    }
    known = {label: latest.get(name) for name, label in names.items()}
    return ", ".join(f"{k} {v:.0%}" for k, v in known.items() if isinstance(v, (int, float)))
