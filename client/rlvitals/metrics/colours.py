"""One colour, one meaning; safe for the colour-blind (Okabe and Ito, 2008)."""

from __future__ import annotations

ALL_FAIL = "#D55E00"
ALL_PASS = "#009E73"  # noqa: S105
CONSTANT = "#8C8C8C"
LIVE = "#0072B2"
COLLAPSED = "#CC79A7"
