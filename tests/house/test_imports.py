"""What a training job has to load, proved in an environment that holds nothing else."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "client" / "rlvitals"
PURE = ("metrics", "remedies", "judgement")
CLIENT_DEPENDENCIES = ("numpy", "numpy.libs", "msgspec", "urllib3")
HEAVY = ("alembic", "dash", "fastapi", "pandas", "plotly", "psycopg", "sklearn", "sqlalchemy")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the client and its dependencies only."""
    folder = tmp_path_factory.mktemp("bare")
    packages = folder / "packages"
    packages.mkdir()
    spec = importlib.util.find_spec("numpy")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parents[1]
    for name in CLIENT_DEPENDENCIES:
        if (installed / name).exists():
            (packages / name).symlink_to(installed / name)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "bare.pth").write_text(f"{packages}\n{CLIENT.parent}\n")
    return folder / "venv" / "bin" / "python"


def run_in(python: Path | str, code: str) -> str:
    """Run code in the interpreter, away from the repository, and return what it printed."""
    done = subprocess.run(
        [python, "-W", "error", "-c", code], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_bare_environment_holds_nothing_else(bare_python: Path) -> None:
    """The proof below is worth something only if the heavy packages are out of reach."""
    names = (*HEAVY, "torch", "rlvitals_service")
    code = f"import importlib.util as u; print([n for n in {names!r} if u.find_spec(n)])"
    assert run_in(bare_python, code) == "[]"


def test_the_client_works_with_numpy_msgspec_and_urllib3_only(bare_python: Path) -> None:
    """A training job needs three small packages and no more."""
    code = "import rlvitals; rlvitals.init; rlvitals.Api; rlvitals.Run; print(rlvitals.__version__)"
    assert run_in(bare_python, code)


def test_the_formulas_work_in_the_bare_environment(bare_python: Path) -> None:
    """Metrics and remedies compute there, too: one of two groups has collapsed."""
    code = (
        "from rlvitals import metrics, remedies;"
        "print(metrics.advantage_collapse_rate([[0, 0], [0, 1]]), remedies.Focal(gamma=1.0).gamma)"
    )
    assert run_in(bare_python, code) == "0.5 1.0"


def test_importing_the_client_loads_nothing_heavy() -> None:
    """Where everything is installed, `import rlvitals` still leaves it alone."""
    names = {*HEAVY, "torch", "transformers", "rlvitals_service", "rlvitals_dashboard"}
    code = f"import sys, rlvitals; print(sorted({names!r} & set(sys.modules)))"
    assert run_in(sys.executable, code) == "[]"


def imports_of(path: Path) -> Iterator[str]:
    """Yield the full name of every module that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


@pytest.mark.parametrize("part", PURE)
def test_the_pure_parts_import_numpy_and_the_standard_library_only(part: str) -> None:
    """A whitelist where the import contracts have a blacklist."""
    allowed = (f"rlvitals.{part}", "rlvitals.metrics")
    files = sorted((CLIENT / part).rglob("*.py"))
    assert files
    for path in files:
        for name in imports_of(path):
            root = name.partition(".")[0]
            if root == "rlvitals":
                assert name.startswith(allowed), f"{path} imports {name}"
            else:
                assert root == "numpy" or root in sys.stdlib_module_names, f"{path}: {name}"
