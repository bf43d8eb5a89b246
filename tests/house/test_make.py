"""make.py: what it says and refuses before it sets anything up."""

from __future__ import annotations

import ast
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project() -> Iterator[Path]:
    """Return a folder that everybody can enter, with make.py and pyproject.toml only."""
    folder = Path(tempfile.mkdtemp(prefix="rlv-make-"))
    folder.chmod(0o755)
    for name in ("make.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    yield folder
    shutil.rmtree(folder)


def make(project: Path, *words: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Run make.py of the folder as a person would, but with nothing of ours in the environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(project)} | options
    return subprocess.run(
        [sys.executable, project / "make.py", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_is_understood_by_python_3_8() -> None:
    """An old Python gets as far as our message instead of a syntax error."""
    tree = ast.parse((ROOT / "make.py").read_text(), feature_version=(3, 8))
    roots = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert roots <= sys.stdlib_module_names


def test_make_without_a_command_tells_all_five(project: Path) -> None:
    """A person who types nothing is shown what there is, and nothing is set up."""
    done = make(project)
    assert done.returncode == 2
    assert all(f"\n{word} " in done.stdout for word in ("demo", "test", "lint", "bench", "setup"))
    assert not (project / ".venv").exists()
    assert make(project, "--help").returncode == 0


def test_a_folder_that_is_no_environment_is_never_cleared(project: Path) -> None:
    """RLVITALS_VENV on a folder with files in it is refused, and the files stay."""
    precious = project / "home" / "thesis.txt"
    precious.parent.mkdir()
    precious.write_text("years of work")
    done = make(project, "setup", RLVITALS_VENV=str(precious.parent))
    assert done.returncode == 1
    assert "holds other files" in done.stderr
    assert precious.read_text() == "years of work"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_of_another_user_is_named_with_the_way_out(project: Path) -> None:
    """Someone who may not write into the clone learns about RLVITALS_VENV."""
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip("no interpreter that every user can run")
    done = subprocess.run(
        [python, project / "make.py", "setup"],
        user="nobody",
        extra_groups=[],
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "not writable" in done.stderr
    assert "RLVITALS_VENV=" in done.stderr


def test_a_python_that_is_too_old_is_told_what_to_install(project: Path) -> None:
    """Without a suitable Python on the path the message names the versions and the package."""
    elsewhere = project / "bin"
    elsewhere.mkdir()
    code = (
        "import runpy, sys; sys.argv = ['make.py', 'setup'];"
        "made = runpy.run_path(sys.argv[0]);"
        "made['find_python'].__globals__['version_of'] = lambda path: (3, 8);"
        "made['main'](['setup'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={"PATH": str(elsewhere)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Python 3.11, 3.12, 3.13" in done.stderr
    assert "apt-get install" in done.stderr


def test_ci_runs_the_static_checks_and_every_test() -> None:
    """CI calls the same two commands that people call, and insists on the browser."""
    script = ROOT / ".ci" / "run"
    text = script.read_text()
    assert script.stat().st_mode & stat.S_IXUSR
    assert "set -euo pipefail" in text
    assert "RLVITALS_REQUIRE_BROWSER=1" in text
    assert text.index("make.py lint") < text.index("make.py test")
    assert "--fast" not in text
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
