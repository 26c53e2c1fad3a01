"""From centroids to candidates: `counterpoint.index.proposing`, compiled.

Tables have one row per centroid and one column per query row, padded with zeros to whole tiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import BYTE, LANES, given, instruction, loaded, number, place_of
from counterpoint.index.packing import WIDTHS

__all__ = ["gathered", "interactions", "levels_of", "probed"]

# Imported code: edbd5614. numba compiles anew when this file changes, but not when that does.

BITS = np.array(WIDTHS)
BITS.setflags(write=False)
BYTES = ir.VectorType(BYTE, LANES)


FLOAT_1, FLOAT_2, LEVELS = given(types.float32, 1), given(types.float32, 2), given(types.uint8, 2)
LONG_1, LONG_2 = given(types.int64, 1), given(types.int64, 2)
LISTS = types.Tuple((given(types.uint8, 1), LONG_1, LONG_1))

# Indices are unsigned, as numba would check signed ones for negative values.


@njit(
    types.Tuple((types.int64[:, ::1], types.float32))(FLOAT_2, FLOAT_1, types.int64, types.int64),
    nogil=True,
    cache=True,
)
def probed(bases, scales, count, probes):
    """The best centroids of each query row, and the largest similarity of all.

    Args:
        bases: (c, rows padded to whole tiles) float32, products without the scales of the query's rows.
        scales: (rows padded to whole tiles,) float32.
        count: number of query rows.
        probes: number of centroids per query row, at most c.

    Returns:
        (m, p) int64, and a float32.
    """
    lanes = bases.shape[1]
    values = np.full((lanes, probes), np.float32(-np.inf), np.float32)
    found, least = np.zeros((lanes, probes), np.int64), np.full(lanes, np.float32(-np.inf), np.float32)
    least[count:] = np.inf  # nothing is looked for there
    for c in range(len(bases)):
        row, over = bases[c], False
        for i in range(lanes):
            m = np.uint64(i)
            over |= row[m] * scales[m] > least[m]
        if not over:
            continue
        for m in range(count):
            value = row[m] * scales[m]
            if value > least[m]:
                at = probes - 1
                while at > 0 and values[m, at - 1] < value:
                    values[m, at], found[m, at] = values[m, at - 1], found[m, at - 1]
                    at -= 1
                values[m, at], found[m, at] = value, c
                least[m] = values[m, probes - 1]
    top = np.float32(-np.inf)
    for m in range(count):
        top = max(top, values[m, 0])
    return found[:count].copy(), top


@njit(types.uint8[:, ::1](FLOAT_2, FLOAT_1, types.float32), nogil=True, cache=True)
def levels_of(bases, scales, top):
    """Similarities as levels (c, rows padded to whole tiles) uint8; `top` is the largest similarity."""
    unit = np.float32(255) / top if top > 0 else np.float32(0)
    levels = np.zeros(bases.shape, np.uint8)
    for c in range(len(bases)):
        row, mine = bases[c], levels[c]
        for i in range(bases.shape[1]):
            m = np.uint64(i)
            value = np.rint(row[m] * scales[m] * unit)
            mine[m] = np.uint8(min(max(value, np.float32(0)), np.float32(255)))
    return levels


@njit(nogil=True, inline="always")
def _number(packed, at, bits, i):
    """Number `i` of a packed list of this width whose numbers begin at byte `at`."""
    if bits < 8:
        place = i * bits
        return (np.int64(packed[at + place // 8]) >> (place % 8)) & ((1 << bits) - 1)
    total, first = np.int64(0), at + i * (bits // 8)
    for byte in range(bits // 8):
        total |= np.int64(packed[first + byte]) << (8 * byte)
    return total


@njit(types.int32[::1](LEVELS, LONG_2, LISTS, types.int64), nogil=True, cache=True)
def gathered(levels, probes, lists, documents):
    """`counterpoint.index.proposing.gathered` over packed lists.

    Args:
        levels: (c, rows padded to whole tiles) uint8.
        probes: (m, p) int64, best first.
        lists: (bytes of all lists, number of documents of each, where each begins and the last ends).
        documents: number of documents.

    Returns:
        (n,) int32.
    """
    packed, counts, starts = lists
    found, seen = np.zeros(documents, np.int32), np.zeros(documents, np.int32)
    for m in range(len(probes)):
        least = np.int32(levels[probes[m, -1], m])
        for centroid in probes[m]:
            gain = np.int32(levels[centroid, m]) - least
            if gain == 0:
                break
            count = counts[centroid]
            if count == 0:
                continue
            at = starts[centroid] + 1
            bits = BITS[packed[at - 1]]
            tail, exception = at + (count * bits + 7) // 8, (np.int64(1) << bits) - 1
            document = np.int64(-1)
            for i in range(count):
                gap = np.int64(0) if bits == 0 else _number(packed, at, bits, i)
                if gap == exception and 0 < bits < 32:
                    gap = _number(packed, tail, 32, 0)
                    tail += 4
                document += gap + 1
                if seen[document] != m + 1:
                    seen[document] = m + 1
                    found[document] += gain
    return found


@instruction
def _highest(typingctx: Any, levels: Any, places: Any, run: Any, best: Any) -> Any:
    """Set `best` to the highest levels of sixteen query rows with the centroids of some rows.

    Args:
        typingctx: numba's own.
        levels: flat.
        places: of the rows' centroids.
        run: the first row, the end of the rows, bytes of a centroid's levels, the first of the sixteen.
        best: sixteen bytes.
    """

    def codegen(*code: Any) -> Any:
        context, builder, signature, args = code
        of_places = context.get_value_type(signature.args[1].dtype)
        table, numbers = (place_of(code, i, number(0), kind) for i, kind in ((0, BYTE), (1, of_places)))
        first, last, width, column = (builder.extract_value(args[2], i) for i in range(4))
        start, loop, done = builder.block, *(builder.append_basic_block(name) for name in ("loop", "done"))
        builder.cbranch(builder.icmp_signed("<", first, last), loop, done)
        builder.position_at_end(loop)
        at, before = builder.phi(first.type), builder.phi(BYTES)
        place = builder.zext(builder.load(builder.gep(numbers, [at])), first.type)
        where = builder.gep(table, [builder.add(builder.mul(place, width), column)])
        mine = loaded(builder, builder.bitcast(where, BYTES.as_pointer()))
        after = builder.select(builder.icmp_unsigned(">", mine, before), mine, before)
        following = builder.add(at, number(1))
        for phi, old, new in ((at, first, following), (before, number(0, BYTES), after)):
            phi.add_incoming(old, start)
            phi.add_incoming(new, loop)
        builder.cbranch(builder.icmp_signed("<", following, last), loop, done)
        builder.position_at_end(done)
        highest = builder.phi(BYTES)
        highest.add_incoming(number(0, BYTES), start)
        highest.add_incoming(after, loop)
        builder.store(highest, place_of(code, 3, number(0), BYTES)).align = 1
        return context.get_dummy_value()

    return types.void(levels, places, run, best), codegen


@njit(
    [types.int32[::1](LEVELS, given(kind, 1), LONG_1, LONG_1) for kind in (types.uint16, types.uint32)],
    nogil=True,
    cache=True,
)
def interactions(levels, places, firsts, lasts):
    """`counterpoint.index.proposing.interactions`, with places as uint16 or uint32.

    Returns:
        (k,) int32.
    """
    found, best = np.zeros(len(firsts), np.int32), np.zeros(LANES, np.uint8)
    flat, width = levels.reshape(-1), levels.shape[1]
    for document in range(len(firsts)):
        total = np.int32(0)
        for column in range(0, width, LANES):
            _highest(flat, places, (firsts[document], lasts[document], width, column), best)
            for i in range(LANES):
                total += np.int32(best[np.uint64(i)])
        found[document] = total
    return found
