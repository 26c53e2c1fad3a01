"""Rows of signed bytes that are multiplied where they are stored, without unpacking them.

The processor's instruction takes unsigned bytes on one side. Elsewhere 128 is added to a row (`unpacked`);
here it is added to the query. So 128 times the sum of the row has to be taken off. That sum serves all rows
of the query, and finding it takes less time than writing a copy of the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from counterpoint.index.compiled.bit_sums import aligned
from counterpoint.index.compiled.dots import ROWS, STEP
from counterpoint.index.compiled.machine import INTS, VNNI, instruction, loaded, number, place_of, repeated
from counterpoint.index.compiled.products import added_up_four, multiplied

__all__ = ["multiplied_in_place", "ones_of", "sum_rows", "unsigned"]

# Imported code: 89b62221. numba compiles anew when this file changes, but not when that does.

WIDE = 64  # bytes of a row added up at once


@njit(nogil=True, cache=True)
def multiplied_in_place(bits, size):
    """Whether rows of `size` bytes are. Without VNNI, unpacking a row once for the whole query is faster."""
    return VNNI and bits == 8 and size >= WIDE and size % STEP == 0


@njit(nogil=True, cache=True)
def unsigned(tiles):
    """The tiles of a query, flat, plus 128."""
    found = aligned(len(tiles))
    found[:] = tiles.view(np.uint8) ^ np.uint8(128)
    return found


@njit(nogil=True, cache=True)
def ones_of(size):
    """What `size` bytes of a row are multiplied with to add them up, 64 at a time.

    The last 64 of a row may overlap those before. What they share has zeros there.
    """
    found = np.ones(-(-size // WIDE) * WIDE, np.uint8)
    last = max(0, len(found) - WIDE)
    found[last : last + -size % WIDE] = 0
    return found


@instruction
def sum_rows(typingctx: Any, rows: Any, ones: Any) -> Any:
    """Set what each row's products are added to. `rows` is as for `dots`, in place."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        width, start = (builder.extract_value(args[0], i) for i in (1, 2))
        starts = [builder.add(start, builder.mul(width, number(row))) for row in range(ROWS)]
        last, out = builder.sub(width, number(WIDE)), place_of(code, (0, 3), number(0), INTS.element)

        def step(here: Any, totals: list[Any]) -> list[Any]:
            at = builder.mul(here, number(WIDE))
            weights = loaded(builder, place_of(code, 1, at, INTS))
            at = builder.select(builder.icmp_unsigned("<", at, last), at, last)
            places = (place_of(code, (0, 0), builder.add(row, at), INTS) for row in starts)
            both = zip(totals, places, strict=True)
            return [multiplied(builder, total, weights, loaded(builder, place)) for total, place in both]

        rounds = builder.udiv(builder.add(width, number(WIDE - 1)), number(WIDE))
        sums = repeated(builder, rounds, [number(0, INTS)] * ROWS, step)
        for row in range(0, ROWS, 4):
            found = added_up_four(builder, sums[row : row + 4])
            to = builder.bitcast(builder.gep(out, [number(row)]), found.type.as_pointer())
            builder.store(builder.mul(found, number(-128, found.type)), to).align = 4
        return context.get_dummy_value()

    return types.void(rows, ones), codegen
