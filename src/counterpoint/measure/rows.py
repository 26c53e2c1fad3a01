"""Check rows of vectors for the measures: finite, in float64, enough of them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from counterpoint.errors import DataError, ShapeError

__all__ = ["Rows", "checked_rows", "several_rows", "unit_rows"]

Rows = Float[np.ndarray, "n d"]


def checked_rows(x: Rows) -> Rows:
    """Convert rows to float64.

    Raises:
        ShapeError: they are not rows.
        DataError: a value is not finite.
    """
    rows = np.asarray(x, np.float64)
    if rows.ndim != 2:
        raise ShapeError(f"expected rows of vectors, found an array of shape {rows.shape}")
    if not np.isfinite(rows).all():
        count = int((~np.isfinite(rows)).any(1).sum())
        raise DataError(f"{count} of {len(rows)} vectors are not finite; the training may have diverged")
    return rows


def several_rows(x: Rows) -> Rows:
    """Convert at least two rows to float64; errors as in `checked_rows`."""
    rows = checked_rows(x)
    if len(rows) < 2:
        raise ShapeError(f"needs at least two vectors, found {len(rows)}")
    return rows


def unit_rows(rows: Rows) -> Rows:
    """Scale every row to length 1; a row of zeros stays unchanged."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)
