"""Create, list and revoke tokens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlvitals.commands.reading import connect
from rlvitals.commands.table import table

if TYPE_CHECKING:
    import argparse

SCOPES = ("ingest", "read", "control", "admin")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the token commands."""
    token = commands.add_parser("token", help="create, list or revoke tokens (needs admin)")
    actions = token.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", parents=[shared], help="create a token and print it")
    create.add_argument("name", help="what it is for")
    create.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        help="may be repeated (default: ingest); admin implies all",
    )
    create.add_argument("--project", help="let it see this project only")
    create.set_defaults(work=create_token)
    listing = actions.add_parser("list", parents=[shared], help="list tokens")
    listing.set_defaults(work=list_tokens)
    revoke = actions.add_parser("revoke", parents=[shared], help="revoke a token")
    revoke.add_argument("id", help="id of the token, as `token list` shows it")
    revoke.set_defaults(work=revoke_token)


def create_token(options: argparse.Namespace) -> int:
    """Create a token; the secret alone goes to standard output."""
    made = connect(options).create_token(
        options.name, options.scope or ("ingest",), options.project
    )
    print(f"token {made['id']} was created; it is shown this once:", file=sys.stderr)
    print(made["token"])
    return 0


def list_tokens(options: argparse.Namespace) -> int:
    """Print tokens without their secrets."""
    headings = ("ID", "NAME", "PROJECT", "SCOPES", "CREATED", "LAST USED", "REVOKED")
    rows = (
        [
            token["id"],
            token["name"],
            token.get("project"),
            " ".join(token.get("scopes") or []),
            token.get("created_at"),
            token.get("last_used_at"),
            token.get("revoked_at"),
        ]
        for token in connect(options).tokens()
    )
    print(table(headings, rows))
    return 0


def revoke_token(options: argparse.Namespace) -> int:
    """Revoke a token."""
    connect(options).revoke_token(options.id)
    print(f"token {options.id} is revoked")
    return 0
