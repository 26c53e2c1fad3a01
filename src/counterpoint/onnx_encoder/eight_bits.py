"""Matrices of 8-bit integers, and their products with rows that are rounded in the same blocks.

A matrix is rounded in blocks of 128 weights, each with its own scale. What is multiplied with it is rounded
in the same blocks, row by row, so that one large component makes only its own block coarser. Sums of products
of integers are exact, and the rest is computed in one fixed order. So `product`, in numpy, and the compiled
`compiled_product.product` give the same numbers, to the last bit, on any processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int8, Int32

__all__ = ["BLOCK", "LANES", "LEAST", "TOP", "Matrix", "product", "rounded", "rounded_rows"]

BLOCK = 128  # 128 products of integers up to 127 stay below 2^24, which float32 holds exactly
LANES = 16  # outputs that a compiled kernel computes at once
EACH = 4  # components that it multiplies at once
TOP = 127
SMALL = 2**18  # products that OpenBLAS computes on one thread; starting others would take longer
LEAST = 1e-30
"""A block whose largest number is smaller becomes zeros; its inverse would be infinite."""

Rows = Float[np.ndarray, "m k"]


class Matrix(NamedTuple):
    """A rounded matrix of `outputs` rows, filled up with zeros to whole tiles of 16 rows and whole blocks.

    Attributes:
        tiles: integers by tile, by group of four components, then by row, then by component in the group.
        scales: of each tile, block and row.
        sums: of the integers of each tile, block and row.
        outputs: rows without the filling.
        inputs: components without the filling.
    """

    tiles: Int8[np.ndarray, "t g 16 4"]
    scales: Float[np.ndarray, "t b 16"]
    sums: Int32[np.ndarray, "t b 16"]
    outputs: int
    inputs: int

    def whole(self) -> Float[np.ndarray, "b k n"]:
        """The integers of each block as numbers, a column for each output."""
        tiles, groups = self.tiles.shape[:2]
        rows = self.tiles.transpose(1, 3, 0, 2).reshape(EACH * groups // BLOCK, BLOCK, LANES * tiles)
        return rows[:, :, : self.outputs].astype(np.float32)


def rounded(matrix: Float[np.ndarray, "n k"]) -> Matrix:
    """Round a matrix."""
    outputs, inputs = matrix.shape
    filled = _filled(matrix, rows=LANES)
    tiles, blocks = len(filled) // LANES, filled.shape[1] // BLOCK
    scales, whole = _rounded(filled.reshape(len(filled), blocks, BLOCK))
    sums = whole.sum(2).astype(np.int32)  # exact in float32

    def by_tile(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.reshape(tiles, LANES, blocks).transpose(0, 2, 1))

    words = whole.astype(np.int8).view(np.int32)  # four components each, moved together
    grouped = np.ascontiguousarray(words.reshape(tiles, LANES, -1).transpose(0, 2, 1))
    integers = grouped.view(np.int8).reshape(*grouped.shape, EACH)
    return Matrix(integers, by_tile(scales), by_tile(sums), outputs, inputs)


def rounded_rows(rows: Rows) -> tuple[Float[np.ndarray, "m b"], Float[np.ndarray, "m b 128"]]:
    """Scales and integers of rows that are multiplied with a matrix."""
    filled = _filled(rows)
    return _rounded(filled.reshape(len(filled), filled.shape[1] // BLOCK, BLOCK))


def product(rows: Rows, matrix: Matrix, bias: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
    """Compute rows · matrixᵀ + bias."""
    (of_rows, integers), weights = rounded_rows(rows), matrix.whole()
    scales = matrix.scales.transpose(1, 0, 2).reshape(len(weights), -1)[:, : matrix.outputs]
    total = np.zeros((len(rows), matrix.outputs), np.float32)
    some = max(LANES, SMALL // (BLOCK * max(1, len(rows))))
    for start in range(0, matrix.outputs, some):
        part = slice(start, start + some)
        for block, of_matrix in enumerate(scales):
            sums = integers[:, block] @ weights[block, :, part]
            total[:, part] += sums * of_rows[:, block, None] * of_matrix[part]
    return total + bias


def _rounded(blocks: Float[np.ndarray, "n b k"]) -> tuple[Float[np.ndarray, "n b"], np.ndarray]:
    largest = np.abs(blocks).max(2)
    there = largest >= np.float32(LEAST)
    factors = np.float32(TOP) / np.where(there, largest, np.float32(1)) * there
    return largest / np.float32(TOP), np.rint(blocks * factors[:, :, None])


def _filled(values: Rows, rows: int = 1) -> Rows:
    """Zeros added, up to a multiple of `rows` and to whole blocks."""
    more = -len(values) % rows, -values.shape[1] % BLOCK
    return np.pad(values, ((0, more[0]), (0, more[1]))) if any(more) else values
