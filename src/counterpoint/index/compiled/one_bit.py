"""MaxSim over rows of one bit per component, which are looked up and not multiplied.

The rows of all documents are taken 64 at a time, whatever document they are of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from counterpoint.index.compiled.bit_sums import BATCH, buffers_of, find_sums, tables_of
from counterpoint.index.compiled.dots import total_of, word_of
from counterpoint.index.compiled.machine import (
    FLOATS,
    INTS,
    LANES,
    LONG,
    instruction,
    loaded,
    looping,
    number,
    place_of,
    prefetch,
    repeated,
    spread,
)

__all__ = ["by_look_ups"]

# Imported code: 89b62221. numba compiles anew when this file changes, but not when that does.


@instruction
def _raise(typingctx: Any, best: Any, starts: Any, lane: Any, sums: Any, rows: Any, of_rows: Any) -> Any:
    """Raise the best similarities of sixteen query rows to those with some rows of a document.

    `rows` are the first of them and the end; `of_rows` their factors, their places in a table, and the table.
    """

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        first, end = (builder.extract_value(args[4], i) for i in range(2))
        where = place_of(code, 0, args[2], FLOATS)
        start = loaded(builder, place_of(code, 1, args[2], INTS))

        def step(here: Any, highest: list[Any]) -> list[Any]:
            total = loaded(builder, place_of(code, 3, builder.mul(here, number(LANES)), INTS))
            total = builder.add(builder.shl(total, number(1, INTS)), start)
            factor = loaded(builder, place_of(code, (5, 0), here, FLOATS.element))
            place = builder.add(loaded(builder, place_of(code, (5, 1), here, LONG)), args[2])
            value = builder.fmul(builder.sitofp(total, FLOATS), spread(builder, factor, FLOATS))
            value = builder.fadd(value, loaded(builder, place_of(code, (5, 2), place, FLOATS)))
            return [builder.select(builder.fcmp_ordered(">", value, highest[0]), value, highest[0])]

        (highest,) = repeated(builder, end, [loaded(builder, where)], step, first)
        builder.store(highest, where).align = 1
        return context.get_dummy_value()

    return types.void(best, starts, lane, sums, rows, of_rows), codegen


@looping
def _take(rows, going, documents):
    """Write the numbers of the next rows of the documents.

    Returns:
        How many, and the document and row to go on with.
    """
    (document, at), (firsts, ends), count = going, documents, 0
    while count < BATCH and document < len(firsts):
        some = min(BATCH - count, ends[document] - at)
        for i in range(some):
            rows[count + i] = at + i
        count, at = count + some, at + some
        if at == ends[document]:
            document += 1
            if document < len(firsts):
                at = firsts[document]
    for i in range(count, BATCH):
        rows[i] = rows[count - 1] if count else 0
    return count, (document, at)


@looping
def _find_places(rows, stored, tables, halves, of_rows):
    """Find the factors of rows and where their words' products begin; prefetch these and the next rows."""
    (now, then), (values, factors, words, places), (factor, bases) = rows, stored, of_rows
    flat, width = values.reshape(-1), np.uint64(values.shape[1])
    of_words, lanes = tables.reshape(-1), np.uint64(tables.shape[1])
    for i in range(np.uint64(BATCH)):
        row, following = np.uint64(now[i]), np.uint64(then[i])
        prefetch(flat, following * width)
        prefetch(factors, following)
        factor[i] = halves[factors[row]]
        bases[i] = np.uint64(places[word_of(words, row)]) * lanes
        prefetch(of_words, bases[i])


@looping
def _find_scores(query, stored, documents, room, floor):
    """Find what `by_look_ups` returns."""
    (asked, starts, scales, centres), (firsts, ends) = query, documents
    (best, scores, now, then), buffers, (factor, bases), (table, halves) = room
    flat, of_words, count = stored[0].reshape(-1), table.reshape(-1), asked[1]
    rows, following, of_rows = now, then, (factor, bases)
    scored = 0
    some, going = _take(rows, (0, firsts[0] if len(firsts) else np.int64(0)), documents)
    while some:
        soon, going = _take(following, going, documents)
        _find_places((rows, following), stored, table, halves, of_rows)
        find_sums(asked, flat, rows, buffers)
        done = 0
        while done < some:
            while firsts[scored] == ends[scored]:
                scored += 1
            here = rows[done]
            end = done + min(some - done, ends[scored] - here)
            if here == firsts[scored]:
                best[:] = -np.inf
            for lane in range(0, len(best), LANES):
                of_lane, found = buffers[2][lane * BATCH :], (factor, bases, of_words)
                _raise(best, starts, np.uint64(lane), of_lane, (np.uint64(done), np.uint64(end)), found)
            here += end - done
            done = end
            if here == ends[scored]:
                scores[scored] = total_of(best, centres[scored], scales, count, floor)
                scored += 1
        rows, following, some = following, rows, soon


@njit(nogil=True, cache=True)
def by_look_ups(query, tables, stored, where, halves, floor):
    """`counterpoint.index.compiled.maxsim.maxsim_bits` for rows of 1 bit and at least 16 bytes."""
    tiles, of_query, scales, count = query
    values, factors, words, _ = stored
    places, firsts, ends = where
    width, lanes = values.shape[1], len(of_query)
    asked = (tables_of(tiles, count, width), count, width), -of_query, scales, tables[1]
    scores, best = np.zeros(len(firsts), np.float32), np.zeros(lanes, np.float32)
    now, then = np.zeros(BATCH, np.int64), np.zeros(BATCH, np.int64)
    of_rows = np.zeros(BATCH, np.float32), np.zeros(BATCH, np.uint64)
    room = (best, scores, now, then), buffers_of(lanes, width), of_rows, (tables[0], halves)
    _find_scores(asked, (values, factors, words, places), (firsts, ends), room, floor)
    return scores
