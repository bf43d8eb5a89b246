"""Exit with 0 if the address answers with success: the containers' health check."""

from __future__ import annotations

import sys
import urllib.request

if __name__ == "__main__":
    # No proxy: the address is this container's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(sys.argv[1], timeout=4):
            sys.exit(0)
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
