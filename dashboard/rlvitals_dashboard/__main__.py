"""Serve the dashboard: ``python -m rlvitals_dashboard``."""

from __future__ import annotations

import logging
import os

from waitress import serve

import rlvitals
from rlvitals_dashboard.app import create_dashboard

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", "8401"
THREADS = 8


def main() -> None:
    """Serve until stopped; address and service come from the environment."""
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    app = create_dashboard(rlvitals.Api())
    serve(
        app.server,
        host=os.environ.get("RLVITALS_DASHBOARD_HOST", DEFAULT_HOST),
        port=int(os.environ.get("RLVITALS_DASHBOARD_PORT", DEFAULT_PORT)),
        threads=THREADS,
        ident=None,
        _quiet=True,
    )


if __name__ == "__main__":
    main()
