"""Serve the dashboard: ``python -m rlvitals_dashboard``."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import TYPE_CHECKING

from waitress import serve

from rlvitals.api import Api, ApiError
from rlvitals_dashboard.app import allowed_hosts, create_dashboard

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", "8401"
THREADS = 8


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until stopped; the service's address and token come from the environment."""
    options = _parse(argv)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    try:
        app = create_dashboard(Api(), (*allowed_hosts(), options.host))
        serve(
            app.server,
            host=options.host,
            port=options.port,
            threads=THREADS,
            ident=None,
            _quiet=True,
        )
    except (ApiError, OSError) as error:
        sys.stderr.write(f"rlvitals dashboard: {error}\n")
        return 1
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "rlvitals dashboard",
        description="Serve the dashboard only, for the service of RLVITALS_URL.",
    )
    host = os.environ.get("RLVITALS_DASHBOARD_HOST", DEFAULT_HOST)
    port = os.environ.get("RLVITALS_DASHBOARD_PORT", DEFAULT_PORT)
    parser.add_argument(
        "--host", default=host, help="address to listen on (RLVITALS_DASHBOARD_HOST, %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=port, help="port (RLVITALS_DASHBOARD_PORT, %(default)s)"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
