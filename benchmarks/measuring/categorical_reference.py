"""What an earlier implementation of the categorical policy ended with, for comparison."""

from __future__ import annotations

# By actions, N and gamma: mass of correct actions and retention, of another implementation
# (four seeds at 1,280 actions, one at 128,000; the std of retention is known for gamma 0 only).
_SMALL = {
    2: ((0.852, 0.683), (0.852, 0.683), (0.852, 0.683)),
    4: ((0.971, 0.222), (0.959, 0.289), (0.931, 0.457)),
    8: ((0.986, 0.156), (0.978, 0.210), (0.962, 0.316)),
    16: ((0.991, 0.134), (0.985, 0.178), (0.974, 0.260)),
    32: ((0.994, 0.139), (0.987, 0.203), (0.975, 0.316)),
    64: ((0.996, 0.142), (0.989, 0.240), (0.977, 0.410)),
    128: ((0.996, 0.195), (0.988, 0.421), (0.971, 0.734)),
    256: ((0.996, 0.352), (0.984, 0.796), (0.969, 0.939)),
    512: ((0.993, 0.869), (0.982, 0.981), (0.969, 0.995)),
    1024: ((0.993, 0.980), (0.984, 0.998), (0.972, 1.000)),
    2048: ((0.994, 0.998), (0.985, 1.000), (0.974, 1.000)),
}
_LARGE = {
    2: ((0.633, 0.994), (0.633, 0.994)),
    32: ((0.703, 0.962), (0.700, 0.965)),
    256: ((0.993, 0.043), (0.975, 0.149)),
    2048: ((0.997, 0.035), (0.988, 0.129)),
    8192: ((0.999, 0.043), (0.992, 0.195)),
    32768: ((0.999, 0.084), (0.965, 0.994)),
    131072: ((0.993, 0.995), (0.971, 1.000)),
}
REFERENCE = {
    1280: {
        (n, g): cell for n, row in _SMALL.items() for g, cell in zip((0, 0.5, 1), row, strict=True)
    },
    128_000: {
        (n, g): cell for n, row in _LARGE.items() for g, cell in zip((0, 1), row, strict=True)
    },
}
REFERENCE_SD = {  # of retention at gamma 0, over the four seeds of 1,280 actions
    2: 0.107,
    4: 0.012,
    8: 0.013,
    16: 0.006,
    32: 0.004,
    64: 0.005,
    128: 0.018,
    256: 0.085,
    512: 0.056,
    1024: 0.006,
    2048: 0.003,
}
# What the earlier run found of retention with AVSPO, by N and gamma: none, wrong, right, both.
REFERENCE_SIDES = {
    (4, 0.0): (0.221, 0.204, 0.810, 0.795),
    (8, 0.0): (0.143, 0.143, 0.283, 0.283),
    (16, 0.0): (0.113, 0.113, 0.120, 0.120),
    (8, 1.0): (0.293, None, None, 0.672),
}
