"""The `rlvitals` command."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from rlvitals import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAUNCHED = {
    "up": "start database, service and dashboard; one Ctrl-C stops all",
    "demo": "start everything and train a small model that collapses",
    "service": "start the service only",
    "migrate": "bring the database's schema up to date",
    "dashboard": "start the dashboard only",
}
EXTRAS = {"dashboard": "dashboard"}
OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code.

    0 is success, 1 a failure that the message explains, 2 wrong usage.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    if given and given[0] in LAUNCHED:
        return _guarded(lambda: launch(given[0], given[1:]))
    parser = build_parser()
    if not given:
        parser.print_help(sys.stderr)
        return WRONG_USAGE
    options = parser.parse_args(given)
    return _guarded(lambda: int(options.work(options)))


def build_parser() -> argparse.ArgumentParser:
    """Describe all commands."""
    from rlvitals.commands import reading, steering, syncing, tokens

    parser = argparse.ArgumentParser(
        prog="rlvitals",
        description="Vital signs of RL-with-verifiable-rewards training.",
        epilog="`rlvitals demo` shows everything at work; `rlvitals COMMAND --help` explains one.",
    )
    parser.add_argument("--version", action="version", version=f"rlvitals {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in LAUNCHED.items():
        commands.add_parser(name, help=summary, add_help=False)
    shared = argparse.ArgumentParser(add_help=False)
    where = shared.add_argument_group("which service")
    where.add_argument("--url", help="its address (default: RLVITALS_URL, else the local one)")
    where.add_argument("--token", help="a token (default: RLVITALS_TOKEN or RLVITALS_TOKEN_FILE)")
    for subject in (reading, steering, syncing, tokens):
        subject.add(commands, shared)
    return parser


def launch(command: str, arguments: list[str]) -> int:
    """Hand a command over to the service's launcher or to the dashboard."""
    try:
        if command == "dashboard":
            from rlvitals_dashboard import __main__ as dashboard

            return int(dashboard.main(arguments))
        from rlvitals_service import launcher

        return int(launcher.main(command, arguments))
    except ModuleNotFoundError as missing:
        extra = EXTRAS.get(command, "service,dashboard" if command in ("up", "demo") else "service")
        print(
            f"rlvitals: `rlvitals {command}` needs more than the client (no module named "
            f"{missing.name!r}).\nInstall it with: pip install 'rlvitals[{extra}]'",
            file=sys.stderr,
        )
        return FAILED


def _guarded(work: Callable[[], int]) -> int:
    from rlvitals.api import ApiError

    try:
        return work()
    except ApiError as error:
        print(f"rlvitals: {error.message}{_hint(error.status)}", file=sys.stderr)
        return FAILED
    except ValueError as error:
        print(f"rlvitals: {error}", file=sys.stderr)
        return WRONG_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        print(f"rlvitals: {error}", file=sys.stderr)
        return FAILED


def _hint(status: int) -> str:
    hints = {
        401: " (give --token or set RLVITALS_TOKEN)",
        403: " (the token's scope does not reach this)",
    }
    return hints.get(status, "")


if __name__ == "__main__":
    sys.exit(main())
