"""Steps of BERT on rows in float32, in one fixed order; the compiled ones give the same numbers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["ERF", "ROOT_HALF", "attended", "gelu", "normalised"]

Rows = Float[np.ndarray, "m k"]

LANES = 16  # partial sums that a compiled kernel adds at once
ROOT_HALF = 0.5**0.5
ERF = 0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784, 1.0
"""Coefficients of a polynomial p with 1 − erf(x) = p(x)^−16 ± 3e-7 for x ≥ 0, the highest power first
(Abramowitz and Stegun 1964, 7.1.28). It needs no exponential."""


def attended(
    made: Float[np.ndarray, "t 3*n"], bias: Float[np.ndarray, " t"], *, heads: int, scale: np.float32
) -> Float[np.ndarray, "t n"]:
    """Attention of each position to all (Vaswani et al. 2017, equation 1).

    Args:
        made: queries, keys and values of each position, each by head.
        bias: what is added to the scores of each position.
        heads: number of heads.
        scale: of the scores.
    """
    positions, size = len(made), made.shape[1] // 3 // heads
    queries, keys, values = made.reshape(positions, 3, heads, size).transpose(1, 2, 3, 0)
    scores = np.zeros((heads, positions, positions), np.float32)
    for component in range(size):
        scores = scores + queries[:, component, :, None] * keys[:, component, None]
    scores = scores * scale + bias
    shares = np.exp(scores - scores.max(2, keepdims=True, initial=-np.inf))
    mixed = np.zeros((heads, size, positions), np.float32)
    for position in range(positions):
        mixed = mixed + values[:, :, position, None] * shares[:, None, :, position]
    totals = _total(shares.reshape(heads * positions, positions)).reshape(heads, 1, positions)
    return (mixed / totals).transpose(2, 0, 1).reshape(positions, heads * size)


def gelu(rows: Rows) -> Rows:
    """The product x · Φ(x), with Φ by the error function (Hendrycks and Gimpel 2016)."""
    size = np.abs(rows) * np.float32(ROOT_HALF)
    power = np.full_like(rows, np.float32(ERF[0]))
    for coefficient in ERF[1:]:
        power = power * size + np.float32(coefficient)
    with np.errstate(over="ignore"):  # infinite, for the tail 0
        for _ in range(4):
            power = power * power
    tail, half = np.float32(1) / power, np.float32(0.5) * rows
    return half * np.where(rows >= 0, np.float32(2) - tail, tail)


def normalised(
    rows: Rows, weight: Float[np.ndarray, " k"], bias: Float[np.ndarray, " k"], epsilon: float
) -> Rows:
    """Layer normalisation of each row."""
    size = np.float32(rows.shape[1])
    centred = rows - (_total(rows) / size)[:, None]
    variance = _total(centred * centred) / size
    return centred / np.sqrt(variance + np.float32(epsilon))[:, None] * weight + bias


def _total(rows: Rows) -> Float[np.ndarray, " m"]:
    """The sum of each row: sixteen partial sums, whose halves are added until one is left."""
    filled = np.pad(rows, ((0, 0), (0, -rows.shape[1] % LANES)))
    partial = np.zeros((len(rows), LANES), np.float32)
    for start in range(0, filled.shape[1], LANES):
        partial = partial + filled[:, start : start + LANES]
    while partial.shape[1] > 1:
        half = partial.shape[1] // 2
        partial = partial[:, :half] + partial[:, half:]
    return partial[:, 0]
