"""Serve the dashboard: ``python -m rlvitals_dashboard``."""

from __future__ import annotations

import logging
import os
import sys

from waitress import serve

from rlvitals.api import Api, ApiError
from rlvitals_dashboard.app import allowed_hosts, create_dashboard

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", "8401"
THREADS = 8


def main() -> None:
    """Serve until stopped; address and service come from the environment."""
    host = os.environ.get("RLVITALS_DASHBOARD_HOST", DEFAULT_HOST)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    try:
        app = create_dashboard(Api(), (*allowed_hosts(), host))
    except ApiError as error:
        sys.exit(f"rlvitals dashboard: {error}")
    port = int(os.environ.get("RLVITALS_DASHBOARD_PORT", DEFAULT_PORT))
    serve(app.server, host=host, port=port, threads=THREADS, ident=None, _quiet=True)


if __name__ == "__main__":
    main()
