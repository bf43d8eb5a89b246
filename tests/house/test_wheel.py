"""What `pip install rlvitals` puts on a machine."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """Build the wheel from the working tree, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    done = subprocess.run(
        [*command, "--directory", folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return zipfile.Path(built)


@pytest.mark.parametrize(
    "name",
    [
        "rlvitals/__init__.py",
        "rlvitals/py.typed",
        "rlvitals_service/py.typed",
        "rlvitals_dashboard/py.typed",
        "rlvitals_service/postgres_child.py",
        "rlvitals_service/migrations/env.py",
        "rlvitals_service/migrations/versions",
    ],
)
def test_the_wheel_holds_code_types_and_migrations(wheel: zipfile.Path, name: str) -> None:
    """Whatever the service opens at run time is inside."""
    assert wheel.joinpath(name).exists()


def test_the_wheel_holds_no_tests_or_caches(wheel: zipfile.Path) -> None:
    """Nothing of the workshop is delivered."""
    names = wheel.root.namelist()
    assert not [name for name in names if "tests/" in name or "__pycache__" in name]


def test_the_wheel_names_command_licence_and_needs(wheel: zipfile.Path) -> None:
    """The command is installed, the licence is inside, and the client needs three packages."""
    (info,) = [path for path in wheel.iterdir() if path.name.endswith(".dist-info")]
    assert "rlvitals = rlvitals.cli:main" in (info / "entry_points.txt").read_text()
    assert "Apache License" in (info / "licenses" / "LICENSE").read_text()
    needs = [
        line.removeprefix("Requires-Dist: ")
        for line in (info / "METADATA").read_text().splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]
    assert sorted(need.partition(">")[0] for need in needs) == ["msgspec", "numpy", "urllib3"]
