"""Show, set and withdraw directives."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from rlvitals.commands.reading import connect, find_run
from rlvitals.commands.table import table


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the directive commands."""
    directive = commands.add_parser("directive", help="show or change what a trainer should do")
    actions = directive.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", parents=[shared], help="list directives and their fate")
    show.add_argument("run", help="id or name of the run")
    show.set_defaults(work=show_directives)

    change = actions.add_parser("set", parents=[shared], help="put remedies in force")
    change.add_argument("run", help="id or name of the run")
    change.add_argument(
        "--focal", type=float, metavar="GAMMA", help="focal weights (1 - c/n)^GAMMA"
    )
    change.add_argument("--avspo", action="store_true", help="virtual rewards for collapsed groups")
    change.add_argument(
        "--avspo-option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="a setting of AVSPO, e.g. threshold=0.5 (may be repeated; implies --avspo)",
    )
    change.add_argument(
        "--expires-at-step", type=int, metavar="STEP", help="the step from which it is void"
    )
    change.add_argument("--reason", default="", help="why, for the log")
    change.set_defaults(work=set_directive)

    withdraw = actions.add_parser(
        "withdraw", parents=[shared], help="go back to the trainer's own advantages"
    )
    withdraw.add_argument("run", help="id or name of the run")
    withdraw.add_argument("--reason", default="", help="why, for the log")
    withdraw.set_defaults(work=withdraw_directive)


def show_directives(options: argparse.Namespace) -> int:
    """Print the directives of a run, newest first."""
    api = connect(options)
    found = api.directives(find_run(api, options.run))
    headings = ("VERSION", "MODE", "REMEDIES", "STATE", "ACK", "EFFECTIVE", "BY", "REASON")
    print(table(headings, (_row(one) for one in found)))
    return 0


def set_directive(options: argparse.Namespace) -> int:
    """Put remedies in force."""
    wanted: dict[str, Any] = {"mode": "on", "reason": options.reason}
    if options.focal is not None:
        wanted["focal"] = {"gamma": options.focal}
    if options.avspo or options.avspo_option:
        wanted["avspo"] = dict(options.avspo_option)
    if len(wanted) == 2:  # noqa: PLR2004 - mode and reason alone ask for nothing
        raise ValueError("nothing to set: give --focal GAMMA, --avspo or both")
    if options.expires_at_step is not None:
        wanted["expires_at_step"] = options.expires_at_step
    api = connect(options)
    done = api.set_directive(find_run(api, options.run), wanted)
    print(f"directive {done['version']} is {done.get('state', 'pending')}")
    return 0


def withdraw_directive(options: argparse.Namespace) -> int:
    """Go back to the trainer's own advantages."""
    api = connect(options)
    done = api.withdraw_directive(find_run(api, options.run), options.reason)
    print(f"directive {done['version']} is {done.get('state', 'pending')}")
    return 0


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"must look like NAME=VALUE, not {text!r}")
    try:
        return name.strip(), msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name.strip(), value


def _row(directive: dict[str, Any]) -> list[Any]:
    remedies = [
        f"{name} {_short(directive[name])}" for name in ("focal", "avspo") if directive.get(name)
    ]
    return [
        directive["version"],
        directive["mode"],
        "; ".join(remedies),
        directive.get("state"),
        directive.get("acknowledged_step"),
        directive.get("effective_step"),
        directive.get("issued_by"),
        directive.get("refusal") or directive.get("reason"),
    ]


def _short(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items() if value is not None)
