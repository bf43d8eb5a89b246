"""Chances of a group when its prompt's success rate is Beta distributed."""

from __future__ import annotations

import math

import numpy as np


def all_pass_chance(alpha: float, beta: float, n: int) -> float:
    """Give E[p^n] = B(alpha + n, beta) / B(alpha, beta) for p ~ Beta(alpha, beta).

    Evaluated as the exponential of sum log1p(-beta / (alpha + beta + i)) over i < n, which keeps
    its digits for a small chance and never overflows. Raises ValueError unless alpha and beta are
    positive and finite, and n >= 0.
    """
    _check(alpha, beta, n)
    return math.exp(float(np.log1p(-beta / (alpha + beta + np.arange(n))).sum()))


def all_fail_chance(alpha: float, beta: float, n: int) -> float:
    """Give E[(1 - p)^n] = B(alpha, beta + n) / B(alpha, beta) for p ~ Beta(alpha, beta)."""
    _check(alpha, beta, n)  # here, as the swap below would name the other one
    return all_pass_chance(beta, alpha, n)


def _check(alpha: float, beta: float, n: int) -> None:
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name}: want a positive finite number, got {value}")
    if n < 0:
        raise ValueError(f"n: want a number of rollouts, got {n}")
