"""Numbers published with the advantage collapse rate (arXiv 2605.21125), as the paper has them."""

from __future__ import annotations

# Model: collapse rate without and with AVSPO, then MATH-500 and the mean of six benchmarks
# without and with it, in per cent (main table).
MAIN_TABLE = {
    "0.5B": (0.45, 0.18, 24.6, 31.4, 16.5, 21.0),
    "3B": (0.37, 0.14, 36.8, 42.7, 27.9, 32.2),
    "3B-Instruct": (0.35, 0.13, 68.9, 73.6, 39.7, 43.4),
    "Math-1.5B": (0.40, 0.15, 58.6, 67.2, 33.5, 39.6),
    "Math-7B": (0.33, 0.14, 65.0, 74.1, 42.2, 45.9),
    "14B": (0.28, 0.11, 72.5, 78.9, 49.9, 54.5),
}

# Final MATH-500 in per cent = INTERCEPT + SLOPE x ACR100, over 245 configurations.
INTERCEPT, SLOPE = 51.4, -29.6
CORRELATION, CONFIGURATIONS = -0.785, 245

# Collapse rate over the first 100 steps and final accuracy in per cent, by what is varied, read
# off the bars of the published figures.
PANELS = {
    "model size": [(0.72, 34), (0.73, 52), (0.31, 59), (0.15, 60.5), (0.36, 65)],
    "temperature": [
        (0.46, 63.5),
        (0.30, 66),
        (0.16, 60.5),
        (0.11, 61.5),
        (0.05, 54),
        (0.08, 56),
    ],
    "group size": [
        (0.52, 51),
        (0.34, 58.7),
        (0.15, 59),
        (0.28, 59.6),
        (0.19, 58),
        (0.22, 57),
        (0.15, 59),
    ],
    "difficulty": [
        (0.31, 60),
        (0.28, 51),
        (0.39, 56),
        (0.32, 57),
        (0.32, 63),
        (0.43, 61),
        (0.52, 42),
    ],
}
