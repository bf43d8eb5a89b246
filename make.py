"""Set up, show, test and check rlvitals with nothing but a Python: `python3 make.py demo`.

demo [--steps N] [--no-browser] [--data DIR]   train a tiny model here and watch its vital signs
test [--fast] [PYTEST ARGUMENT ...]            run every test (--fast: without the slow ones)
lint                                           run ruff, mypy --strict and the import contracts
bench [NAME [ARGUMENT ...]]                    run a script of benchmarks/, or list them
setup                                          only make the environment

Each command sets itself up once, in a virtual environment: .venv, or where RLVITALS_VENV says.
RLVITALS_TORCH_INDEX names another package index for PyTorch, for example one of CPU builds.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Sequence

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("RLVITALS_VENV") or ROOT / ".venv").absolute()
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "rlvitals-stamp"

# 3.11 first: most builds of PyTorch exist for it.
PYTHONS = ((3, 11), (3, 12), (3, 13))
# On its own and first: left to the others, pip may choose another release and a build of gigabytes.
TORCH = ["torch==2.13.0"]
PROJECT = [
    "--editable=.[dev,trl]",
    "trl==1.16.0",
    "transformers==5.24.*",
    "datasets==5.2.*",
    "accelerate==1.15.*",
]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main(words: list[str]) -> int:
    """Run the named command and return the exit status."""
    commands = {"demo": demo, "test": test, "lint": lint, "bench": bench, "setup": setup}
    if not words or words[0] not in commands:
        print(__doc__)
        return 0 if words and words[0] in ("-h", "--help", "help") else 2
    set_up()
    return commands[words[0]](words[1:])


def setup(_: list[str]) -> int:
    """Say where the environment is."""
    print(f"Ready: {VENV}")
    return 0


def demo(words: list[str]) -> int:
    """Hand over to the `rlvitals demo` command."""
    command = str(VENV / "bin" / "rlvitals")
    os.execv(command, [command, "demo", *words])


def test(words: list[str]) -> int:
    """Run pytest over everything, in a real browser too where one can be had."""
    find_browser()
    arguments = [word for word in words if word != "--fast"]
    if "--fast" in words:
        arguments += ["-m", "not slow"]
    if not os.access(ROOT, os.W_OK):
        arguments += ["-p", "no:cacheprovider"]
    # The test machine's cores are for the programs under test, not for matrix products.
    return run([PYTHON, "-m", "pytest", *arguments], OMP_NUM_THREADS="1")


def lint(_: list[str]) -> int:
    """Run every static check and fail if one does."""
    python = [str(PYTHON), "-m"]
    failed = [
        name
        for name, command in (
            ("ruff check", [*python, "ruff", "check"]),
            ("ruff format", [*python, "ruff", "format", "--check"]),
            ("mypy", [*python, "mypy", "--strict", "client", "service", "dashboard"]),
            ("import contracts", [str(VENV / "bin" / "lint-imports"), "--no-logo"]),
        )
        if run(command, f"{name}:") != 0
    ]
    print(f"Failed: {', '.join(failed)}" if failed else "All static checks passed.")
    return len(failed)


def bench(words: list[str]) -> int:
    """Run one script of benchmarks/, or say which there are."""
    scripts = {path.stem: path for path in sorted((ROOT / "benchmarks").glob("[a-z]*.py"))}
    if words and words[0] in scripts:
        return run([PYTHON, scripts[words[0]], *words[1:]], OMP_NUM_THREADS="1")
    print("python3 make.py bench NAME, where NAME is one of")
    for name, path in scripts.items():
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        print(f"  {name:24} {about.splitlines()[0] if about else ''}")
    return 2 if words else 0


def set_up() -> None:
    """Make the environment, unless the one that is there was made from the same files."""
    if STAMP.is_file() and STAMP.read_text(encoding="ascii") == stamp(PYTHON):
        return
    refuse_unwritable(VENV if VENV.exists() else VENV.parent)
    started = time.monotonic()
    if not is_usable(PYTHON):
        version, python = find_python()
        named = f"Python {version[0]}.{version[1]}"
        if version != PYTHONS[0]:
            print(f"Note: rlvitals is developed on Python 3.11; for {named} PyTorch may be larger.")
        print(f"Setting up {VENV} with {named} (once, some minutes)", flush=True)
        make_venv(python)
    index = os.environ.get("RLVITALS_TORCH_INDEX")
    pip(TORCH + ([f"--index-url={index}"] if index else []))
    pip(PROJECT)
    STAMP.write_text(stamp(PYTHON), encoding="ascii")
    print(f"Set up in {time.monotonic() - started:.0f} s.", flush=True)


def stamp(python: Path) -> str:
    """Return what the environment depends on, as one hash; empty where it is broken."""
    if not python.exists():
        return "none"
    parts = [(ROOT / "pyproject.toml").read_bytes(), repr((TORCH, PROJECT)).encode()]
    parts += [str(ROOT).encode(), str(python.resolve()).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def refuse_unwritable(folder: Path) -> None:
    """Stop with the way out when this user may not write where the environment would go."""
    while not folder.exists():
        folder = folder.parent
    if os.access(folder, os.W_OK):
        return
    sys.exit(
        f"{folder} is not writable for you (it belongs to user {folder.stat().st_uid}).\n"
        "Clone rlvitals as yourself, or name a folder of yours for the environment:\n"
        f"  RLVITALS_VENV=$HOME/.venvs/rlvitals python3 make.py {' '.join(sys.argv[1:])}"
    )


def find_python() -> tuple[tuple[int, int], str]:
    """Find an interpreter that rlvitals runs on, this one or another on the path."""
    names = [f"python{major}.{minor}" for major, minor in PYTHONS]
    found = [(version_of(path), path) for path in [sys.executable, *names]]
    for version in PYTHONS:
        for known, path in found:
            if known == version:
                return version, path
    wanted = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    sys.exit(
        f"rlvitals needs one of Python {wanted}; this is {platform.python_version()}, and none of "
        "them is on the path.\nOn Debian or Ubuntu: apt-get install python3 python3-venv"
    )


def is_usable(python: Path) -> bool:
    """Tell whether the environment's interpreter runs, has pip and is of a version we support."""
    if version_of(str(python)) not in PYTHONS:
        return False
    asked = [str(python), "-m", "pip", "--version"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def version_of(python: str) -> tuple[int, int] | None:
    """Ask an interpreter for its version; None when it does not run (a version manager's stub)."""
    asked = "import sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = answer.stdout.split()
    return int(major), int(minor)


def make_venv(python: str) -> None:
    """Make a fresh virtual environment with pip in it, in place of a broken one."""
    if VENV.is_dir() and any(VENV.iterdir()) and not (VENV / "pyvenv.cfg").exists():
        sys.exit(f"{VENV} holds other files: empty it, or name another folder in RLVITALS_VENV.")
    made = subprocess.run(
        [python, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        said = (made.stdout + made.stderr).strip()
        sys.exit(
            f"{said}\n\nThe virtual environment could not be made. On Debian or Ubuntu run\n"
            "  apt-get install python3-venv\nand then this command again."
        )


def pip(what: list[str]) -> None:
    """Install with pip into the environment, or stop."""
    print(f"  pip install {' '.join(what)}", flush=True)
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--root-user-action=ignore"]
    if run([PYTHON, "-m", "pip", "install", *options, *what]) != 0:
        sys.exit("Set-up stopped: see pip's message above. The next call begins again.")


def find_browser() -> None:
    """Make sure of a Chromium for the browser tests, installing Debian's where root may."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing Debian's Chromium for the browser tests", flush=True)
        run(["apt-get", "update", "-qq"])
        run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
            DEBIAN_FRONTEND="noninteractive",
        )
    if any(shutil.which(name) for name in BROWSERS):
        return
    if os.environ.get("RLVITALS_REQUIRE_BROWSER") == "1":
        sys.exit("RLVITALS_REQUIRE_BROWSER=1, but there is no Chromium and none can be installed.")
    print("No Chromium found: the browser tests will be skipped.", flush=True)


def run(command: Sequence[str | Path], title: str = "", **environment: str) -> int:
    """Run a command at the root of the project and return its exit status."""
    if title:
        print(title, flush=True)
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **environment}, check=False)
    return done.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
