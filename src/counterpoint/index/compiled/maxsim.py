"""MaxSim over rows of small integers: unpack, multiply and take the maximum in one pass over the rows."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from counterpoint.index.compiled.bit_sums import CHUNK
from counterpoint.index.compiled.dots import ROWS, dots, raised, total_of, word_of
from counterpoint.index.compiled.in_place import multiplied_in_place, ones_of, sum_rows, unsigned
from counterpoint.index.compiled.machine import AVX2_ALONE, LANES, VNNI, given, looping, prefetch
from counterpoint.index.compiled.one_bit import by_look_ups
from counterpoint.index.compiled.unpacked import unpack

__all__ = ["HALVES", "maxsim_bits", "products_of", "products_of_words"]

# Imported code: ae06a155. numba compiles anew when this file changes, but not when that does.

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""Every float16 as float32, by its bits; numba does not support float16."""
HALVES.setflags(write=False)

AHEAD = 3 * ROWS  # rows that are prefetched
LONG = 2 * CHUNK  # bytes from which a row's bits are looked up; shorter rows are multiplied faster


FLOAT_1, FLOAT_2 = given(types.float32, 1), given(types.float32, 2)
LONG_1, HALF_1, BYTE_2 = given(types.int64, 1), given(types.uint16, 1), given(types.uint8, 2)
QUERY = types.Tuple((given(types.int8, 2), given(types.int32, 1), FLOAT_1, types.int64))
TABLE = types.Tuple((BYTE_2, HALF_1, types.int64))


@njit(nogil=True, inline="always")
def _starts(bits, sums):
    """What to add to the products of levels, which `unpack` makes, to have those of integers."""
    return sums * np.int32(-128 if bits == 8 else 1 - 2**bits)


@looping
def _find_products(query, table, halves, places, room):
    """Find what `_products_at` returns."""
    (tiles, sums, _, _), (values, factors, bits) = query, table
    made, starts, (levels, begins, found) = room
    codes, size, width = values.reshape(-1), values.shape[1], np.uint64(tiles.shape[1] // LANES)
    asked, rows = (tiles.reshape(-1), starts), (levels, width)
    for at in range(0, len(places), ROWS):
        some = min(ROWS, len(places) - at)
        for row in range(ROWS):
            begins[row] = places[at + min(row, some - 1)] * size
        unpack(codes, begins, np.uint64(size), bits, levels, width)
        for lane in range(np.uint64(0), np.uint64(len(sums)), np.uint64(LANES)):
            if AVX2_ALONE and bits < 8:
                dots(asked, lane, (*rows, bits), found)
            else:
                dots(asked, lane, rows, found)
            for row in range(some):
                place = np.uint64(places[at + row])
                factor = halves[factors[place]]
                for i in range(LANES):
                    value = np.float32(found[row, i]) * factor
                    made[place, lane + np.uint64(i)] = value + np.float32(0)  # no product is −0


@njit(nogil=True, cache=True)
def _products_at(query, table, halves, places):
    """Inner products with the rows at some places of a table; the others are not set."""
    (tiles, sums, _, _), (values, _, bits) = query, table
    levels, found = np.zeros(ROWS * tiles.shape[1] // LANES, np.uint8), np.zeros((ROWS, LANES), np.int32)
    made = np.empty((len(values), len(sums)), np.float32)
    room = made, _starts(bits, sums), (levels, np.zeros(ROWS, np.int64), found)
    _find_products(query, table, halves, places, room)
    return made


@njit(types.float32[:, ::1](QUERY, TABLE, FLOAT_1), nogil=True, cache=True)
def products_of(query, table, halves):
    """Inner products of a query's integers with every row of a table.

    Args:
        query: as for `maxsim_bits`.
        table: packed codes, factors and b of `stored` there.
        halves: `HALVES`.

    Returns:
        (n, rows padded to whole tiles) float32.
    """
    return _products_at(query, table, halves, np.arange(len(table[1])))


@njit(types.float32[:, ::1](QUERY, TABLE, BYTE_2, types.UniTuple(LONG_1, 3), FLOAT_1), nogil=True, cache=True)
def products_of_words(query, table, words, where, halves):
    """The same with the rows of a table that some documents' words have; the others are not set.

    `words` and `where` are those of `maxsim_bits`, and the result is the first of its tables.
    """
    places, firsts, ends = where
    known = np.zeros(len(table[1]), np.uint8)
    chosen, count = np.empty(len(known) + 1, np.int64), np.uint64(0)
    for document in range(len(firsts)):
        for row in range(firsts[document], ends[document]):
            place = places[word_of(words, np.uint64(row))]
            chosen[count] = place  # the next one takes its place if it is known
            count += np.uint64(1) - np.uint64(known[place])
            known[place] = 1
    return _products_at(query, table, halves, chosen[:count])


@njit(nogil=True, cache=True)
def _room_for(query, stored):
    """What `_find_scores` reads of a query, and what it writes to for every eight rows."""
    (tiles, sums, scales, _), (values, _, _, bits) = query, stored
    flat, size = tiles.reshape(-1), values.shape[1]
    in_place = unsigned(flat if multiplied_in_place(bits, size) else flat[:0]), ones_of(size)
    levels, begins = np.zeros(ROWS * tiles.shape[1] // LANES, np.uint8), np.zeros(ROWS, np.int64)
    of_rows, sums_of_rows = (np.zeros(ROWS, np.float32), np.zeros(ROWS, np.uint64)), np.zeros(ROWS, np.int32)
    of_lanes = _starts(bits, sums), np.zeros(len(scales), np.float32)
    return of_lanes, in_place, (levels, begins), of_rows, sums_of_rows


@looping
def _find_scores(query, tables, stored, where, room, floor):
    """Find what `maxsim_bits` returns."""
    (tiles, _, scales, count), (values, factors, words, bits), (places, firsts, ends) = query, stored, where
    ((starts, best), (of_query, ones), (levels, begins), of_rows, sums_of_rows), halves, scores = room
    flat, width, lanes = tiles.reshape(-1), np.uint64(tiles.shape[1] // LANES), np.uint64(len(scales))
    of_words, last, most = tables[0].reshape(-1), len(factors) - 1, np.uint64(max(0, len(places) - 1))
    asked, rows, (of_row, bases) = (flat, starts, best), (levels, width), of_rows
    codes, size, with_words = values.reshape(-1), values.shape[1], words.shape[1] > 0
    whole_in_place, asked_in_place = multiplied_in_place(bits, size), (of_query, starts, best)
    for document in range(len(firsts)):
        if firsts[document] == ends[document]:
            continue
        best[:] = -np.inf
        for at in range(firsts[document], ends[document], ROWS):
            soon = at + AHEAD  # documents lie far apart, so the processor cannot prefetch them itself
            if soon >= ends[document] and document + 1 < len(firsts):
                soon = firsts[document + 1] + AHEAD - (ends[document] - at + ROWS - 1) // ROWS * ROWS
            if soon < len(factors):
                prefetch(factors, np.uint64(soon))
            following = codes, np.uint64(max(0, soon) * size), np.uint64(ROWS * bits)
            end = ends[document] - 1  # the last block repeats the last row, which changes no maximum
            in_place = whole_in_place and at + ROWS <= ends[document]
            rows_in_place = codes, width, np.uint64(at) * width, sums_of_rows
            if in_place:
                sum_rows(rows_in_place, ones)
            else:
                for row in range(ROWS):
                    begins[row] = min(at + row, end) * size
                unpack(codes, begins, np.uint64(size), bits, levels, width)
            for row in range(ROWS):
                of_row[np.uint64(row)] = halves[factors[np.uint64(min(at + row, end))]]
            for row in range(ROWS if with_words else 0):
                here = np.uint64(min(at + row, end))
                bases[np.uint64(row)] = np.uint64(places[word_of(words, here)]) * lanes
                # Of a document that may not have been checked for damage, so any number.
                following_word = word_of(words, np.uint64(min(at + row + ROWS, last)))
                near = np.uint64(places[min(following_word, most)]) * lanes
                for lane in range(np.uint64(0), lanes, np.uint64(LANES)):
                    prefetch(of_words, near + lane)  # the table is larger than the nearest caches
            for lane in range(np.uint64(0), lanes, np.uint64(LANES)):
                if in_place:
                    raised(asked_in_place, lane, rows_in_place, of_rows, of_words, following)
                elif AVX2_ALONE and bits < 8:
                    raised(asked, lane, (*rows, bits), of_rows, of_words, following)
                else:
                    raised(asked, lane, rows, of_rows, of_words, following)
        scores[document] = total_of(best, tables[1][document], scales, count, floor)


@njit(
    types.float32[::1](
        QUERY,
        types.UniTuple(FLOAT_2, 2),
        types.Tuple((BYTE_2, HALF_1, BYTE_2, types.int64)),
        types.UniTuple(LONG_1, 3),
        FLOAT_1,
        types.boolean,
    ),
    nogil=True,
    cache=True,
)
def maxsim_bits(query, tables, stored, where, halves, floor):
    """`counterpoint.index.kernels.maxsim_by` for one query and rows of integers.

    The same integers are added, and the same floats multiplied in the same order, so scores are
    bit-identical.

    Args:
        query: (tiles (t, ...) int8, sums of each row's integers int32, scales of the rows float32, number of
            rows). Sums and scales are padded to whole tiles.
        tables: products with the means of words, (c, rows padded to whole tiles) float32, and with the centre
            of each document, (k, the same).
        stored: of all n rows of the set: the packed codes, (n, bytes) uint8; the factors, float16 as (n,)
            uint16; the numbers of the words, uint8, each in 0, 2 or 4 bytes, the lowest first; and b, the
            bits per component. A code c of b bits means the integer 2c + 1 − 2^b. Codes of 8 bits are the
            signed integers themselves.
        where: for each word, its row of the first table; for each of k documents, where its rows begin and
            where they end.
        halves: `HALVES`.
        floor: raise a negative best similarity to 0.

    Returns:
        (k,) float32.
    """
    bits, size = stored[3], stored[0].shape[1]
    if VNNI and bits == 1 and size >= LONG:
        return by_look_ups(query, tables, stored, where, halves, floor)
    scores = np.zeros(len(where[1]), np.float32)
    _find_scores(query, tables, stored, where, (_room_for(query, stored), halves, scores), floor)
    return scores
