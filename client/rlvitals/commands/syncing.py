"""Send what spools still hold."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals import discovery
from rlvitals.replay import Outcome, spools, sync
from rlvitals.transport import Transport

if TYPE_CHECKING:
    import argparse


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the sync command."""
    parser = commands.add_parser(
        "sync",
        parents=[shared],
        help="send what offline, killed or cut-off runs left on disk",
        description="Send spools. Exits 0 when all is with the service, 1 when something failed "
        "or was rejected, and leaves what failed in place.",
    )
    parser.add_argument("dir", nargs="?", help="a spool folder (default: this user's)")
    parser.add_argument(
        "--patience",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="how long to retry each spool (default 20)",
    )
    parser.set_defaults(work=send)


def send(options: argparse.Namespace) -> int:
    """Send spools, one line each; say truthfully whether all arrived."""
    folder = _folder(options.dir)
    if not folder.is_dir():
        missing = f"nothing to send: {folder} does not exist"
        if options.dir is not None:
            raise ValueError(missing)
        print(missing)
        return 0
    if not spools(folder):
        print(f"nothing to send in {folder}")
        return 0
    unknown: list[str] = []
    connections: dict[str, Transport] = {}

    def connect(meant_for: str | None) -> Transport | None:
        chosen = options.url or os.environ.get("RLVITALS_URL") or meant_for
        address = discovery.find(discovery.home(), chosen, options.token)
        if address.url is None:
            unknown.append("no service is known: give --url, set RLVITALS_URL or start one")
            return None
        return connections.setdefault(address.url, Transport(address.url, address.token))

    outcomes = list(map(_told, sync(folder, connect, options.patience)))
    for reason in unknown[:1]:
        print(f"rlvitals: {reason}", file=sys.stderr)
    bad = [one for one in outcomes if one.state == "failed" or one.lost]
    return 1 if bad or unknown else 0


def _folder(given: str | None) -> Path:
    """Take a spool folder, or a home that has one."""
    if given is None:
        return discovery.home() / "spool"
    folder = Path(given).expanduser()
    return folder / "spool" if (folder / "spool").is_dir() else folder


def _told(outcome: Outcome) -> Outcome:
    what = f"{outcome.name or outcome.path.name}: {outcome.state}"
    counted = f", {outcome.records} records" if outcome.state != "busy" else ""
    detail = f" ({outcome.detail})" if outcome.detail else ""
    print(f"{what}{counted}{detail}")
    return outcome
