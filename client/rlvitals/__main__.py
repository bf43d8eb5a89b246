"""`python -m rlvitals`, for where the command is not on the path."""

from __future__ import annotations

import sys

from rlvitals.cli import main

sys.exit(main())
