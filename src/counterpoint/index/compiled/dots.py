"""Inner products of eight rows of small integers with sixteen query rows at a time.

`dots(query, lane, rows, found)` sets `found`, (ROWS, LANES). `raised(query, lane, rows, of_rows, table,
soon)` raises the best similarities of the sixteen query rows to those with the eight rows, without writing
products to memory. Both take:

- query: all tiles, flat; what each query row's products are added to; and for `raised` its best similarity
- lane: the first of the sixteen
- rows: the levels of eight rows (`unpack`), how many one row has and, only if they are at most 30 and the
  processor has AVX2 alone, anything. If the rows are multiplied in place (`in_place`): signed bytes, how many
  one row has, where the eight begin, and what each row's products are added to. Then the query's tiles are
  unsigned

A tile is ordered so that four components of a row are multiplied with the same four of all sixteen query rows
at once (`products.multiplied`). Eight rows share each read of the tile, and their sums stay in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from counterpoint.index.codec import Rounded
from counterpoint.index.compiled.machine import (
    BYTE,
    FLOATS,
    INTS,
    LANES,
    LONG,
    WORD,
    fetched,
    instruction,
    loaded,
    number,
    place_of,
    repeated,
    spread,
)
from counterpoint.index.compiled.products import few_multiplied, multiplied

__all__ = ["ROWS", "STEP", "asked_of", "dots", "raised", "tiles_of", "total_of", "word_of"]

ROWS = 8  # stored rows multiplied at a time, as independent sums
STEP = 8  # components per iteration of the loop
LINE = 64  # bytes of a cache line


def tiles_of(rows: np.ndarray) -> np.ndarray:
    """The integers of a query, (m, components), as flat tiles in the order for `dots`.

    A tile is (components / 4, LANES, 4). Rows and components are padded with zeros.
    """
    lanes, width = -(-len(rows) // LANES) * LANES, -(-rows.shape[1] // STEP) * STEP
    whole = np.zeros((lanes, width), np.int8)
    whole[: len(rows), : rows.shape[1]] = rows
    tiles = whole.reshape(lanes // LANES, LANES, width // 4, 4)
    return _aligned(tiles.transpose(0, 2, 1, 3).reshape(lanes // LANES, width * LANES))


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy aligned to cache lines, so that no vector crosses two of them."""
    room = np.empty(array.nbytes + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    found = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def asked_of(query: Rounded) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """A query in the kernels' form: tiles, sums of each row's integers, scales, and number of rows."""
    integers, count = query.rows.astype(np.int8), len(query.rows)
    tiles = tiles_of(integers)
    sums, scales = np.zeros(len(tiles) * LANES, np.int32), np.zeros(len(tiles) * LANES, np.float32)
    sums[:count], scales[:count] = integers.sum(axis=1, dtype=np.int32), query.scales
    return tiles, sums, scales, count


def _sums(code: Any, fetch: Callable[[Any], None] | None = None) -> list[Any]:
    """For each of eight rows, sixteen sums over all components.

    `code` are the arguments of `codegen` of an instruction whose first three are those of `dots`. `fetch`
    adds code to the loop; it is given the number of the iteration.
    """
    _, builder, signature, args = code
    lane, width, of_rows = args[1], builder.extract_value(args[2], 1), len(signature.args[2])
    in_place, few = of_rows == 4, of_rows == 3
    tiles = place_of(code, (0, 0), builder.mul(lane, width), INTS)
    start = builder.extract_value(args[2], 2) if in_place else number(0)
    places = [builder.add(start, builder.mul(width, number(row))) for row in range(ROWS)]
    rows = [place_of(code, (2, 0), place, WORD) for place in places]
    # What is found in place of the rows is added last, so that the loop need not wait for it.
    first = number(0, INTS) if in_place else loaded(builder, place_of(code, (0, 1), lane, INTS))

    def step(here: Any, before: list[Any]) -> list[Any]:
        sums = list(before)
        if fetch is not None:
            fetch(here)
        places = [
            builder.add(builder.mul(here, number(STEP // 4)), number(more)) for more in range(STEP // 4)
        ]

        def of_query(place: Any) -> Any:
            return loaded(builder, builder.gep(tiles, [place]))

        def of_row(words: Any, place: Any) -> Any:
            return spread(builder, loaded(builder, builder.gep(words, [place])), INTS)

        if few:
            asked = [of_query(place) for place in places]
            for row, words in enumerate(rows):
                levels = [of_row(words, place) for place in places]
                sums[row] = few_multiplied(builder, sums[row], list(zip(levels, asked, strict=True)))
            return sums
        for place in places:  # a tile at a time, since processors with AVX2 have few registers
            tile = of_query(place)
            for row, words in enumerate(rows):
                word = of_row(words, place)
                both = (tile, word) if in_place else (word, tile)  # the unsigned first
                sums[row] = multiplied(builder, sums[row], *both)
        return sums

    sums = repeated(builder, builder.udiv(width, number(STEP)), [first] * ROWS, step)
    if in_place:
        more = [loaded(builder, place_of(code, (2, 3), number(row), WORD)) for row in range(ROWS)]
        sums = [builder.add(total, spread(builder, one, INTS)) for total, one in zip(sums, more, strict=True)]
    return sums


@instruction
def dots(typingctx: Any, query: Any, lane: Any, rows: Any, found: Any) -> Any:
    """Store the sums."""

    def codegen(*code: Any) -> Any:
        context, builder, *_ = code
        out = place_of(code, 3, number(0), INTS)
        for row, total in enumerate(_sums(code)):
            builder.store(total, builder.gep(out, [number(row)])).align = 1
        return context.get_dummy_value()

    return types.void(query, lane, rows, found), codegen


@instruction
def raised(typingctx: Any, query: Any, lane: Any, rows: Any, of_rows: Any, table: Any, soon: Any) -> Any:
    """Raise the best similarities to each row's sums, times its factor, plus what the table has at its place.

    `of_rows` are the rows' factors and places. `soon` are packed codes, the first byte that is needed soon,
    and how many bytes eight rows have per iteration. They are prefetched spread over the loop: the processor
    waits for few cache lines at a time, and stalls if they are more. If iterations share a line, asking for
    it again takes less than a condition.
    """

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        first, each = (builder.extract_value(args[5], i) for i in (1, 2))

        def fetch(iteration: Any) -> None:
            at = builder.add(first, builder.mul(iteration, each))
            fetched(builder, place_of(code, (5, 0), at, BYTE))

        sums, where = _sums(code, fetch), place_of(code, (0, 2), args[1], FLOATS)
        highest = loaded(builder, where)
        for row, total in enumerate(sums):
            factor = loaded(builder, place_of(code, (3, 0), number(row), FLOATS.element))
            place = builder.add(loaded(builder, place_of(code, (3, 1), number(row), LONG)), args[1])
            value = builder.fmul(builder.sitofp(total, FLOATS), spread(builder, factor, FLOATS))
            value = builder.fadd(value, loaded(builder, place_of(code, 4, place, FLOATS)))
            highest = builder.select(builder.fcmp_ordered(">", value, highest), value, highest)
        builder.store(highest, where).align = 1
        return context.get_dummy_value()

    return types.void(query, lane, rows, of_rows, table, soon), codegen


@njit(nogil=True, inline="always")
def word_of(words, row):
    """The word of a row; 0 if rows have none."""
    size = words.shape[1]
    if size == 0:
        return np.uint64(0)
    low = np.uint64(words[row, np.uint64(0)]) | np.uint64(words[row, np.uint64(1)]) << np.uint64(8)
    if size == 2:
        return low
    high = np.uint64(words[row, np.uint64(2)]) | np.uint64(words[row, np.uint64(3)]) << np.uint64(8)
    return low | high << np.uint64(16)


@njit(nogil=True, inline="always")
def total_of(best, centres, scales, count, floor):
    """The score of a document, from the best similarities without its centre and the scales of the query."""
    total = np.float32(0)
    for m in range(count):
        # Of all rows at once: adding a number and multiplying by one above 0 keep the order.
        value = (best[m] + centres[m]) * scales[m]
        if floor and value < 0:
            value = np.float32(0)
        total = value if m == 0 else total + value
    return total + np.float32(0)  # no score is −0
