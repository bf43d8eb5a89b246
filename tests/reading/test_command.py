"""The command prints tables that can be cut, and ends with a truthful code."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serving import Service

import rlvitals
from rlvitals.cli import build_parser, main
from rlvitals.commands.table import table


@pytest.fixture(autouse=True)
def address(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the command at the service, as an administrator."""
    monkeypatch.setenv("RLVITALS_URL", service.url)
    monkeypatch.setenv("RLVITALS_TOKEN", service.tokens["admin"])


def test_runs_lists_one_line_a_run(run: rlvitals.Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Id, name, state and ACR stand in the table."""
    assert main(["runs", "--project", "reading"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["ID", "PROJECT", "NAME"]
    [line] = [line for line in lines if str(run.id) in line]
    assert "first run" in line
    assert "0.5" in line


@pytest.mark.parametrize("named", ["id", "name"])
def test_history_prints_csv_by_id_or_name(
    named: str, run: rlvitals.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is found by its id or its name; NaN is written by name."""
    wanted = str(run.id) if named == "id" else "first run"
    assert main(["history", wanted, "--metrics", "acr,grad_norm", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 30
    assert rows[10] == {"step": "10", "acr": "0.5", "grad_norm": "NaN"}


def test_history_names_what_has_no_data(
    run: rlvitals.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """A metric without data is named on stderr, the others are printed."""
    assert main(["history", str(run.id), "--metrics", "acr,nonesuch"]) == 0
    assert "nonesuch" in capsys.readouterr().err


def test_export_writes_a_whole_file(
    run: rlvitals.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file holds every step, and no unfinished one is left."""
    target = tmp_path / "run.csv"
    assert main(["export", str(run.id), "-o", str(target)]) == 0
    assert len(target.read_text().splitlines()) == 31
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("run")] == ["run.csv"]


def test_directive_is_set_shown_and_withdrawn(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """The three actions speak to the service, and show tells what became of each."""
    run_id = service.api().new_run(abilities=["focal", "avspo"])
    options = ["--focal", "0.5", "--avspo-option", "threshold=0.4", "--reason", "try it"]
    assert main(["directive", "set", run_id, *options, "--expires-at-step", "90"]) == 0
    assert main(["directive", "withdraw", run_id]) == 0
    capsys.readouterr()
    assert main(["directive", "show", run_id]) == 0
    out = capsys.readouterr().out
    assert "gamma=0.5" in out
    assert "threshold=0.4" in out
    assert "try it" in out


def test_setting_nothing_is_wrong_usage(
    run: rlvitals.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a remedy there is nothing to set, and the message says so."""
    assert main(["directive", "set", str(run.id)]) == 2
    assert "--focal" in capsys.readouterr().err


def test_a_token_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the secret is on standard output, so that a shell can take it."""
    assert main(["token", "create", "ci", "--scope", "ingest", "--scope", "read"]) == 0
    secret = capsys.readouterr().out.strip()
    assert len(secret.split()) == 1
    assert main(["token", "list"]) == 0
    out = capsys.readouterr().out
    assert "ingest read" in out
    assert secret not in out
    [line] = [line for line in out.splitlines() if " ci " in line]
    assert main(["token", "revoke", line.split()[0]]) == 0


def test_incidents_are_listed(run: rlvitals.Run, capsys: pytest.CaptureFixture[str]) -> None:
    """The NaN gradient is in the list."""
    assert main(["incidents", "first run"]) == 0
    assert "gradient_nonfinite" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["history", "no such run"], 1, "rlvitals runs"),
        (["runs", "--token", "wrong"], 1, "token"),
        (["runs", "--url", "http://127.0.0.1:9"], 1, "cannot reach"),
        (["sync", "/no/such/folder"], 2, "/no/such/folder"),
    ],
)
def test_failures_are_told_and_not_zero(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each failure has a message and a code of its own."""
    assert main(arguments) == code
    assert says in capsys.readouterr().err


def test_sync_sends_what_was_recorded_offline(
    service: Service, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sync brings an offline run in, deletes its spool, and has nothing to do after that."""
    run = rlvitals.init(mode="offline", project="synced", name="off", success_threshold=1.0)
    for step in range(250):
        run.log_groups([[1.0, 0.0]], step=step)
    run.finish()
    assert main(["sync", "--url", "http://127.0.0.1:9", "--patience", "0.1"]) == 1
    assert main(["sync"]) == 0
    assert "250 records" in capsys.readouterr().out
    assert not list((home / "spool").iterdir())
    assert main(["sync"]) == 0
    reader = rlvitals.Api()
    [summary] = reader.runs("synced")
    assert (summary["step"], summary["state"]) == (249, "finished")
    assert len(reader.history(summary["id"], ["acr"]).series("acr")) == 250


def test_sync_leaves_a_stray_file_and_says_so(
    service: Service, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A spool that is not one is left in place and makes the code 1."""
    (home / "spool").mkdir(parents=True)
    (home / "spool" / "stray.spool").write_text("nothing of ours")
    assert main(["sync"]) == 1
    assert "header" in capsys.readouterr().out
    assert (home / "spool" / "stray.spool").exists()


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """--help works everywhere and lists the commands that start things too."""
    for arguments in (["--help"], ["history", "--help"], ["directive", "set", "--help"]):
        with pytest.raises(SystemExit) as ended:
            build_parser().parse_args(arguments)
        assert ended.value.code == 0
    out = capsys.readouterr().out
    for command in ("up", "demo", "service", "dashboard", "migrate", "runs", "sync", "token"):
        assert command in out


def test_without_a_command_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The bare command is wrong usage and explains itself."""
    assert main([]) == 2
    assert "directive" in capsys.readouterr().err


def test_a_setting_without_a_value_says_how_one_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """The message is about the option, not about our code."""
    with pytest.raises(SystemExit) as ended:
        main(["directive", "set", "run", "--avspo-option", "threshold"])
    assert ended.value.code == 2
    assert "NAME=VALUE, not 'threshold'" in capsys.readouterr().err


def test_a_missing_service_names_the_extra(tmp_path: Path) -> None:
    """Where only the client is installed, `rlvitals up` says what to install."""
    blocker = "import sys; sys.modules['rlvitals_service'] = None; "
    code = blocker + "from rlvitals.cli import main; sys.exit(main(['up']))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 1
    assert "pip install 'rlvitals[service,dashboard]'" in done.stderr


def test_a_closed_pipe_is_no_error(run: rlvitals.Run) -> None:
    """`rlvitals export RUN | head -1` ends quietly."""
    command = f"{sys.executable} -m rlvitals.cli export {run.id} | head -c 10"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.stderr == ""


def test_a_table_keeps_its_columns() -> None:
    """Numbers stand to the right, texts to the left, wide signs count twice."""
    assert table(("NAME", "ACR"), [("日本", 0.123456), ("b", None)]) == (
        "NAME     ACR\n日本  0.1235\nb          -"
    )
