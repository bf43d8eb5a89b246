"""`rlvitals demo`: a real small job under watch, apart from real runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.launcher.launched import run

pytest.importorskip("torch")


@pytest.mark.slow
def test_demo_with_steps_and_no_browser_ends_by_itself(tmp_path: Path) -> None:
    """The job trains, the summary names vitals and addresses, and nothing touches real data."""
    done = run(tmp_path, "demo", "--steps", "20", "--no-browser")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is finished at step 19" in done.stdout
    assert "ACR" in done.stdout
    assert "all fail" in done.stdout
    assert "incidents:" in done.stdout
    assert "http://127.0.0.1:" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert (tmp_path / ".rlvitals" / "demo" / "logs" / "job.log").exists()
    assert not (tmp_path / ".rlvitals" / "data").exists()
    assert not (tmp_path / ".rlvitals" / "service.json").exists()


def test_negative_steps_are_refused(tmp_path: Path) -> None:
    """A job of a negative length is a mistake in the command line."""
    refused = run(tmp_path, "demo", "--steps", "-1")
    assert refused.returncode == 2
    assert "--steps" in refused.stderr
