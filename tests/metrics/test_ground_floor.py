"""The ground floor stands on NumPy alone."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import venv
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[2] / "client"

# One golden value of each package: tail-miss of (8, .5, .05), and |A| of 8 stratified values.
GOLDEN = """
from rlvitals import metrics, remedies
offsets = remedies.virtual_offsets(8, 1)
print(round(metrics.tail_miss_probability(8, 0.5, 0.05), 10))
print(round(remedies.virtual_advantage(8, offsets, eps=0.0, ddof=0), 4))
"""

# What a site-packages folder would have added is at most this package and what NumPy brings.
BEYOND = """
import importlib.metadata, importlib.util, sys
import numpy
from rlvitals import metrics, remedies
print(sorted({d.name for d in importlib.metadata.distributions()}))
others = ("msgspec", "urllib3", "scipy", "pandas", "torch")
print([name for name in others if importlib.util.find_spec(name)])
roots = {name.partition(".")[0] for name in sys.modules}
known = sys.stdlib_module_names | {"numpy", "rlvitals", "__main__", "sitecustomize"}
print(sorted(name for name in roots - known if not name.startswith(("_", "cython"))))
"""


@pytest.fixture(scope="module")
def numpy_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment that holds NumPy and this project's client; give its interpreter."""
    spec = importlib.util.find_spec("numpy")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parents[1]
    folder = tmp_path_factory.mktemp("numpy-alone")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in ("numpy", "numpy.libs"):  # the second holds BLAS, where the wheel brings its own
        if (installed / name).exists():
            (site / name).symlink_to(installed / name)
    (site / "client.pth").write_text(f"{CLIENT}\n", encoding="utf-8")
    return folder / "venv" / "bin" / "python"


def printed(python: Path | str, program: str) -> list[str]:
    """Run a program away from the repository, every warning an error; give its lines."""
    done = subprocess.run(
        [python, "-I", "-W", "error", "-c", program],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_formulas_compute_where_only_numpy_is_installed(numpy_alone: Path) -> None:
    """`from rlvitals import metrics, remedies` gives golden values with NumPy and nothing else."""
    assert printed(numpy_alone, GOLDEN) == ["0.6578326688", "-0.8115"]


def test_the_environment_holds_numpy_alone(numpy_alone: Path) -> None:
    """There is no other package to be found in it, and none was imported: the proof is one."""
    assert printed(numpy_alone, BEYOND) == ["[]", "[]", "[]"]


def test_formulas_import_numpy_and_nothing_else() -> None:
    """Where everything is installed, importing them loads neither torch nor the wire."""
    program = (
        "import sys, rlvitals.metrics, rlvitals.remedies; "
        "print([name for name in ('torch', 'msgspec', 'urllib3', 'scipy', 'pandas', "
        "'rlvitals.records') if name in sys.modules])"
    )
    assert printed(sys.executable, program) == ["[]"]
