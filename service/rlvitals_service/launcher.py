"""The commands that run things on this machine: up, demo, service, migrate."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rlvitals_service.children import GivenUp
from rlvitals_service.local import (
    CannotStart,
    DataFolder,
    announce,
    announced,
    default_data,
    withdraw,
)
from rlvitals_service.stack import (
    LOOK_SECONDS,
    Stack,
    Stopped,
    answers,
    stopping_signals,
)

HOST, PORT, DASHBOARD_PORT = "127.0.0.1", 8400, 8401


def main(command: str, argv: Sequence[str]) -> int:
    """Run one of the commands with its own arguments; give the exit status."""
    commands: dict[str, Callable[[Sequence[str]], int]] = {
        "up": up,
        "demo": _demo,
        "service": service,
        "migrate": migrate,
    }
    try:
        return commands[command](argv)
    except (CannotStart, GivenUp) as error:
        sys.stderr.write(f"rlvitals {command}: {error}\n")
        return 1
    except Stopped:
        return 0


def up(argv: Sequence[str]) -> int:
    """Run database, service and dashboard until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser("rlvitals up", description="Run everything on this machine.")
    add_address_options(parser)
    options = parser.parse_args(argv)
    folder = DataFolder((options.data or default_data()).expanduser().absolute())
    with stopping_signals() as stop_asked, folder.owned():
        stack = Stack(folder, options.host, options.port, options.dashboard_port, say, stop_asked)
        try:
            stack.start()
            _replace_note(stack)
            _welcome(stack)
            while not stop_asked.wait(LOOK_SECONDS):
                stack.watch()
            say("Stopping.")
        finally:
            withdraw()
            stack.stop()
    return 0


def service(argv: Sequence[str]) -> int:
    """Serve the REST interface only, on the database that RLVITALS_DATABASE_URL names."""
    parser = argparse.ArgumentParser("rlvitals service", description=service.__doc__)
    parser.add_argument("--host", help=f"address to listen on (RLVITALS_HOST, {HOST})")
    parser.add_argument("--port", type=int, help=f"port to listen on (RLVITALS_PORT, {PORT})")
    options = parser.parse_args(argv)
    _set_environment({"RLVITALS_HOST": options.host, "RLVITALS_PORT": options.port})
    from rlvitals_service.__main__ import main as serve

    return serve()


def migrate(argv: Sequence[str]) -> int:
    """Bring the database that RLVITALS_DATABASE_URL names up to date."""
    parser = argparse.ArgumentParser("rlvitals migrate", description=migrate.__doc__)
    parser.parse_args(argv)
    from sqlalchemy.exc import OperationalError

    from rlvitals_service import migrate as migrations
    from rlvitals_service.database import Database
    from rlvitals_service.settings import Settings

    settings = Settings()
    if not settings.database_url:
        msg = "Set RLVITALS_DATABASE_URL; the database of `rlvitals up` is migrated when it starts."
        raise CannotStart(msg)
    try:
        database = Database.from_settings(settings)
        try:
            migrations.upgrade(database)
        finally:
            database.dispose()
    except (ValueError, OperationalError) as error:
        raise CannotStart(f"Cannot migrate: {str(error).splitlines()[0]}") from error
    say(f"The database is at revision {migrations.head()}.")
    return 0


def add_address_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where data lies and where things answer."""
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder for all data")
    parser.add_argument("--host", default=HOST, help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=PORT, help="of the service (%(default)s)")
    parser.add_argument(
        "--dashboard-port", type=int, default=DASHBOARD_PORT, help="of the dashboard (%(default)s)"
    )


def say(text: str) -> None:
    """Tell the person at the terminal, if there still is one."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read along is gone; at exit Python would complain about it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _demo(argv: Sequence[str]) -> int:
    from rlvitals_service.demo import demo

    return demo(argv)


def _replace_note(stack: Stack) -> None:
    """Let clients of this user find this service; say so when it takes another's place."""
    other = announced()
    if other.get("url") not in {None, stack.url} and answers(f"{other['url']}/healthz"):
        say(f"New training jobs of this user now report here, no longer to {other['url']}.")
    announce(stack.url, stack.folder.read_token(), stack.dashboard_url)


def _welcome(stack: Stack) -> None:
    lines = ["", "rlvitals is up.", ""]
    if stack.dashboard_url:
        lines.append(f"  dashboard  {stack.dashboard_url}")
    lines += [
        f"  service    {stack.url}   (REST: {stack.url}/docs)",
        f"  data       {stack.folder.path}",
        "",
        "A training job of yours on this machine needs no configuration:",
        "",
        "  import rlvitals",
        '  run = rlvitals.init(project="math", success_threshold=1.0)',
        "  run.log_groups(rewards, step=step)",
        "",
        "From another machine: start with --host 0.0.0.0; there, set RLVITALS_URL to this address",
        f"and RLVITALS_TOKEN to what stands in {stack.folder.token}.",
        "Ctrl-C stops everything; the data stays.",
    ]
    say("\n".join(lines))


def _set_environment(values: dict[str, object]) -> None:
    for name, value in values.items():
        if value is not None:
            os.environ[name] = str(value)
