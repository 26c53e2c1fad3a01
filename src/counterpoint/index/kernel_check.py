"""Compare the compiled kernels with numpy on a small example, before they are used.

numba keeps compiled code as long as the file of a kernel stays the same. So every kernel's file has a digest
of what it imports. An older version may still have kept a wrong kernel.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float

from counterpoint.index import proposing
from counterpoint.index.best import GROUP
from counterpoint.index.codec import CODECS, Integral, Rounded, rounded
from counterpoint.index.kernel_names import Kernels
from counterpoint.index.kernels import Products, documents_near, maxsim_by
from counterpoint.index.packing import pack
from counterpoint.index.postings import saturated
from counterpoint.index.rotation import rotated
from counterpoint.index.signs import TOP, sketched

__all__ = ["agrees"]

DIMS = 269, 101, 72, 8  # primes, for remainders; and two without any, one of bytes that are not unpacked
ROWS = 120  # stored ones, so many that words have more than sixteen


def agrees(kernels: Kernels) -> bool:
    """Whether the kernels give numpy's scores, bit for bit."""
    rng = np.random.default_rng(0)
    return (
        all(_scores_agree(kernels, rng, dim) for dim in DIMS)
        and all(_bounds_agree(kernels, rng, width) for width in (21, 16, 13, 5))
        and _candidates_agree(kernels, rng)
        and _postings_agree(kernels, rng)
        and _selections_agree(kernels, rng)
    )


def _scores_agree(kernels: Kernels, rng: np.random.Generator, dim: int) -> bool:
    """The same for products, MaxSim and exact matching."""
    offsets, query = np.array([0, 3, 3, ROWS]), rounded(rng.normal(size=(18, dim)).astype(np.float32))
    bases, places = rng.normal(size=(18, 5)).astype(np.float32), rng.integers(0, 5, ROWS)
    centres, owners = rng.normal(size=(18, 3)).astype(np.float32), np.repeat(np.arange(3), np.diff(offsets))
    asked = kernels.asked(query)
    tables = tuple(np.pad(each, ((0, 14), (0, 0))).T.copy() for each in (bases, centres))
    for codec in (each for each in CODECS.values() if isinstance(each, Integral)):
        arrays = codec.encode(rng.normal(size=(ROWS, dim)).astype(np.float32))
        values, factors = arrays["values"], arrays["scales"]
        inner = query.times(codec.integers(values, dim), codec.top) * factors.astype(np.float32)
        packed, halves = values.view(np.uint8), factors.view(np.uint16)
        table = packed, halves, codec.bits
        products = kernels.products(asked, table, kernels.halves)[:, :18].T
        agree = products.tobytes() == inner.tobytes()
        agree &= _products_of_words_agree(kernels, asked, table, products, places)
        for kind, floor in product((np.uint16, np.uint32, None), (False, True)):
            found = (
                inner + centres[:, owners] if kind is None else inner + bases[:, places] + centres[:, owners]
            )
            both = np.array([0, 18]), offsets
            wanted = maxsim_by(partial(_rows_of, found * query.scales[:, None]), both, floor=floor)
            words = np.zeros((ROWS, 0), np.uint8) if kind is None else _bytes_of(places.astype(kind))
            used = (np.zeros_like(tables[0]) if kind is None else tables[0]), tables[1]
            where = np.arange(5), offsets[:-1], offsets[1:]
            stored = packed, halves, words, codec.bits
            scores = kernels.maxsim(asked, used, stored, where, kernels.halves, floor)
            agree &= scores.tobytes() == wanted[0].tobytes()
        if values.dtype == np.int8:
            agree &= _scans_agree(kernels, query, inner, (values, halves))
            similarity = inner * query.scales[:, None]
            rows = (query.rows.astype(np.int8), query.scales), (values, halves)
            agree &= _matches_agree(kernels, similarity, rows, offsets)
        if not agree:
            return False
    return True


def _products_of_words_agree(
    kernels: Kernels, asked: Any, table: Any, products: Float[np.ndarray, "m n"], words: np.ndarray
) -> bool:
    """The same for products with the words of two documents, of which two have one row of the table."""
    of_word, where = np.array([0, 3, 50, 3, ROWS - 1]), (np.array([0, 40]), np.array([2, 90]))
    used = of_word[words[[0, 1, *range(40, 90)]]]
    for kind in (np.uint16, np.uint32):
        given = _bytes_of(words.astype(kind)), (of_word, *where)
        found = kernels.products_of_words(asked, table, *given, kernels.halves)[used, :18]
        if found.tobytes() != products.T[used].tobytes():
            return False
    return True


def _bytes_of(words: np.ndarray) -> np.ndarray:
    return words.view(np.uint8).reshape(len(words), -1)


def _scans_agree(
    kernels: Kernels, query: Rounded, inner: Float[np.ndarray, "m n"], stored: tuple[np.ndarray, np.ndarray]
) -> bool:
    """The same for scans of pooled vectors."""
    rows, wanted = query.rows.astype(np.int8), inner * query.scales[:, None]
    scanned = kernels.scan(rows, query.scales, *stored, kernels.halves)
    some = kernels.scan_some(rows[:1], query.scales, *stored, kernels.halves, np.array([0, 3, 3]))
    return scanned.tobytes() == wanted.tobytes() and some.tobytes() == wanted[0, [0, 3, 3]].tobytes()


def _bounds_agree(kernels: Kernels, rng: np.random.Generator, width: int) -> bool:
    """The same for rotations, and for upper bounds by rows of `width` bytes."""
    query = rounded(rng.normal(size=(18, 8 * width - 3)).astype(np.float32), TOP)
    bits, integers = rng.integers(0, 256, (40, width), np.uint8), np.zeros(8 * width, np.int8)
    integers[:-3] = query.rows[0]
    factors, numbers = rng.random(40).astype(np.float16), (query.scales[0], np.float32(0.1))
    bounds = kernels.sketched((integers, *numbers), bits, factors.view(np.uint16))
    wanted = sketched((query.rows[0], *numbers), bits, factors)
    turned = rotated(query.rows, kernels.turn)
    return bounds.tobytes() == wanted.tobytes() and turned.tobytes() == rotated(query.rows).tobytes()


def _matches_agree(
    kernels: Kernels, similarity: Float[np.ndarray, "m n"], rows: tuple[Any, Any], offsets: np.ndarray
) -> bool:
    """The same for exact matching; `rows` are the query's and the stored ones, as kernels take them."""
    asked, stored = rows[0], (*rows[1], kernels.halves)
    words, own = np.arange(18) % 5, np.arange(ROWS) * 7 % 6
    both, found = (np.array([0, 18]), offsets), np.zeros((2, 3), np.float32)
    (wanted,) = maxsim_by(partial(_rows_of, similarity), both, (words, own), floor=True)
    order, ends = np.argsort(own, kind="stable"), np.cumsum(np.bincount(own))
    firsts, documents = ends - np.bincount(own), (offsets.view(np.uint64), documents_near(offsets))
    for scores, kind in zip(found, (np.uint32, np.uint64), strict=True):
        kernels.add_postings(
            scores, asked, (order.astype(kind), firsts[words], ends[words]), stored, documents
        )
    lists, (values, factors, halves) = (firsts[words], ends[words]), stored
    again = np.zeros(3, np.float32)
    by_word = values[order], factors[order], halves
    kernels.add_sorted(
        again, asked, lists, by_word, np.repeat(np.arange(3), np.diff(offsets))[order].astype(np.uint32)
    )
    where = offsets[:-1], offsets[1:]
    scores = kernels.matched(asked, stored, (words, own.astype(np.uint32)), where, True)
    return all(each.tobytes() == wanted.tobytes() for each in (*found, again, scores))


def _candidates_agree(kernels: Kernels, rng: np.random.Generator) -> bool:
    """The same for the kernels of the centroid first stage."""
    bases, scales = rng.integers(-9, 40, (60, 32)).astype(np.float32), np.ones(32, np.float32)
    similarity, sizes = bases[:, :18], rng.integers(1, 30, 60)
    lists = [np.sort(rng.permutation(900)[:size]) for size in sizes]
    gaps = [np.diff(each, prepend=-1) - 1 for each in lists]
    packed, lengths = pack(np.concatenate(gaps), sizes)
    top, arrays = similarity.max(), (packed, sizes, np.concatenate([[0], np.cumsum(lengths)]))
    levels, probes = proposing.levels_of(similarity, top), proposing.probed(similarity, 7)
    places, firsts = rng.integers(0, 60, 900).astype(np.uint16), np.arange(0, 900, 9)
    found = kernels.probed(bases, scales, 18, 7)
    wide = np.pad(levels, ((0, 0), (0, 14)))
    return (
        found[1] == top
        and np.array_equal(found[0], probes)
        and np.array_equal(kernels.levels_of(bases, scales, top)[:, :18], levels)
        and np.array_equal(
            kernels.gathered(wide, probes, arrays, 900),
            proposing.gathered(levels, probes, lists.__getitem__, 900),
        )
        and np.array_equal(
            kernels.interactions(wide, places, firsts, firsts + 9),
            proposing.interactions(levels, places, firsts, firsts + 9),
        )
    )


def _postings_agree(kernels: Kernels, rng: np.random.Generator) -> bool:
    """The same for postings of every width, with exceptions among them."""
    count = np.array([200])
    for most in (1, 2, 3, 9, 200, 4_000):
        gaps, counts = rng.integers(0, most, 200), rng.integers(0, most, 200)
        gaps[7] = counts[9] = most + 9
        packed = np.concatenate([pack(each, count)[0] for each in (gaps, counts)])
        norms = rng.random(int(gaps.sum()) + 200)
        live, found = rng.random(len(norms)) < 0.9, (np.empty(200, np.int32), np.empty(200, np.float32))
        kept = kernels.scored(packed, 200, (norms, live), 1.3, found)
        rows, shares = saturated(packed, 200, norms, live)
        wanted = rows.astype(np.int32), (shares * 1.3).astype(np.float32)
        if any(one[:kept].tobytes() != other.tobytes() for one, other in zip(found, wanted, strict=True)):
            return False
        sums = rng.random((2, len(norms)), np.float32)
        added = sums.copy()
        added[:, rows] += wanted[1]
        for total, kind in zip(sums, (np.int32, np.int64), strict=True):
            kernels.add_scores(total, rows.astype(kind), wanted[1])
        if sums.tobytes() != added.tobytes():
            return False
    return True


def _selections_agree(kernels: Kernels, rng: np.random.Generator) -> bool:
    """The same for the highest of groups, and for the positions of high scores."""
    scores = rng.integers(-4, 5, (3, 64 * 67 + 5)).astype(np.float32)
    scores[1, 99:] = -1  # few groups are looked at
    scores[2] = -1
    for row in scores:
        wanted = np.maximum.reduceat(row, np.arange(0, len(row), GROUP))
        if kernels.highest(row).tobytes() != wanted.tobytes():
            return False
        for least in (-2, 0, 3, 9):
            at_least, above = (kernels.reaching(row, wanted, least, higher) for higher in (False, True))
            if not np.array_equal(at_least, np.flatnonzero(row >= least)):
                return False
            if not np.array_equal(above, np.flatnonzero(row > least)):
                return False
    return True


def _rows_of(similarity: Float[np.ndarray, "m n"], stored: slice) -> Products:
    return lambda asked: similarity[asked, stored]
