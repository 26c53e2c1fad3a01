"""Inner products of eight rows of small integers with sixteen query rows at a time.

`dots(tile, levels, width, found)` sets `found`, (ROWS, LANES). A tile is ordered so that one instruction
multiplies four components of a row with the same four of all sixteen query rows (AVX-512 VNNI). Eight rows
share each read of the tile. Without VNNI, plain loops do the same, which the compiler vectorises. Integers
are exact, so both give the same sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from counterpoint.index.codec import Rounded
from counterpoint.index.compiled.machine import (
    INTS,
    LANES,
    LONG,
    VNNI,
    WORD,
    instruction,
    loaded,
    number,
    place_of,
    spread,
)
from counterpoint.index.compiled.vnni import multiplied

__all__ = ["ROWS", "STEP", "asked_of", "dots", "tiles_of"]

ROWS = 8  # stored rows multiplied at a time, as independent sums
STEP = 8  # components per iteration of the loop
LINE = 64  # bytes of a cache line


def tiles_of(rows: np.ndarray) -> np.ndarray:
    """The integers of a query, (m, components), as flat tiles in the order for `dots`.

    With VNNI a tile is (components / 4, LANES, 4), else (LANES, components). Rows and components are padded
    with zeros.
    """
    lanes, width = -(-len(rows) // LANES) * LANES, -(-rows.shape[1] // STEP) * STEP
    whole = np.zeros((lanes, width), np.int8)
    whole[: len(rows), : rows.shape[1]] = rows
    tiles = whole.reshape(lanes // LANES, LANES, width // 4, 4)
    ordered = tiles.transpose(0, 2, 1, 3) if VNNI else tiles
    return _aligned(ordered.reshape(lanes // LANES, width * LANES))


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


@instruction
def _vnni(typingctx: Any, tile: Any, levels: Any, width: Any, found: Any) -> Any:
    """`vpdpbusd` over all components: unsigned rows times a signed tile."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        tiles, out = (place_of(code, which, number(0), INTS) for which in (0, 3))
        rows = [place_of(code, 1, builder.mul(args[2], number(row)), WORD) for row in range(ROWS)]
        count = builder.udiv(args[2], number(4))
        start, loop, done = builder.block, *(builder.append_basic_block(name) for name in ("loop", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        here = builder.phi(LONG)
        before = [builder.phi(INTS) for _ in range(ROWS)]
        sums = list(before)
        for more in range(STEP // 4):
            place = builder.add(here, number(more))
            of_query = loaded(builder, builder.gep(tiles, [place]))
            for row, words in enumerate(rows):
                word = spread(builder, loaded(builder, builder.gep(words, [place])), INTS)
                sums[row] = multiplied(builder, sums[row], word, of_query)
        following = builder.add(here, number(STEP // 4))
        here.add_incoming(number(0), start)
        here.add_incoming(following, loop)
        for old, new in zip(before, sums, strict=True):
            old.add_incoming(number(0, INTS), start)
            old.add_incoming(new, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, count), loop, done)
        builder.position_at_end(done)
        for row, total in enumerate(sums):
            builder.store(total, builder.gep(out, [number(row)])).align = 1
        return context.get_dummy_value()

    return types.void(tile, levels, width, found), codegen


@njit(nogil=True, cache=True)
def _plain(tile, levels, width, found):
    """The same with loops."""
    for row in range(ROWS):
        mine = levels[row * width : (row + 1) * width]
        for lane in range(LANES):
            asked = tile[lane * width : (lane + 1) * width]
            total = np.int32(0)
            for i in range(len(mine)):
                total += np.int32(mine[i]) * np.int32(asked[i])
            found[row, lane] = total


dots: Any = _vnni if VNNI else _plain
