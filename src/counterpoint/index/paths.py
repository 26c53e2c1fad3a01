"""Choose how vectors are multiplied: with numpy or with compiled kernels. Both give the same scores.

Compiled kernels are many times as fast and take .7 seconds to load, too much for a single query from the
shell. So a store starts with numpy, and switches before it has spent more than that. The first compilation
takes nine seconds; the build of a large index triggers it (`compile_all`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from counterpoint.index import proposing
from counterpoint.index.codec import CODECS, Integral, rounded
from counterpoint.index.kernels import Products, documents_near, maxsim_by
from counterpoint.index.packing import pack
from counterpoint.index.postings import saturated
from counterpoint.index.rotation import rotated
from counterpoint.index.signs import sketched

__all__ = ["Kernels", "Meter", "compile_all", "described", "multiplying"]

WORTH = 7 * 10**8  # nanoseconds that loading takes
UNPACK, MULTIPLY = 2, 0.1  # nanoseconds of numpy for a stored component, and for each product with it
DIM = 101  # of the example; prime, to test the kernels' remainders


class Kernels(NamedTuple):
    """The compiled kernels, see `counterpoint.index.compiled`."""

    asked: Callable[..., Any]
    maxsim: Callable[..., Any]
    products: Callable[..., Any]
    scan: Callable[..., Any]
    scan_some: Callable[..., Any]
    turn: Callable[..., Any]
    sketched: Callable[..., Any]
    probed: Callable[..., Any]
    levels_of: Callable[..., Any]
    gathered: Callable[..., Any]
    interactions: Callable[..., Any]
    add_postings: Callable[..., Any]
    add_sorted: Callable[..., Any]
    matched: Callable[..., Any]
    saturated: Callable[..., Any]
    halves: Float[np.ndarray, " 65536"]


def multiplying(components: int, rows: int) -> float:
    """Nanoseconds that numpy takes to unpack stored components, and to multiply each with `rows` others."""
    return components * (UNPACK + MULTIPLY * rows)


@final
class Meter:
    """Counts the work of one store."""

    def __init__(self) -> None:
        self._done = 0.0

    def kernels(self, nanoseconds: float) -> Kernels | None:
        """The compiled kernels; None while numpy is faster overall.

        Args:
            nanoseconds: what numpy would take now.
        """
        self._done += nanoseconds
        if self._done < WORTH and "counterpoint.index.compiled.maxsim" not in sys.modules:
            return None
        return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> Kernels | None:
    try:
        from counterpoint.index.compiled.dots import asked_of
        from counterpoint.index.compiled.inverted import add_postings, add_sorted, matched
        from counterpoint.index.compiled.maxsim import HALVES, maxsim_bits, products_of
        from counterpoint.index.compiled.postings import saturated as of_postings
        from counterpoint.index.compiled.proposing import gathered, interactions, levels_of, probed
        from counterpoint.index.compiled.scan import scan_int8, scan_some
        from counterpoint.index.compiled.sketched import sketched_rows
        from counterpoint.index.compiled.turn import turn
    except ImportError:  # numba does not support every version of Python yet
        return None
    except RuntimeError as error:  # numba can write its cache nowhere
        logging.getLogger(__name__).warning(
            "the compiled kernels are not used: %s; set NUMBA_CACHE_DIR to a folder that can be written",
            error,
        )
        return None
    lists = probed, levels_of, gathered, interactions
    pooled = scan_int8, scan_some, turn, sketched_rows
    by_id = add_postings, add_sorted, matched, of_postings
    found = Kernels(asked_of, maxsim_bits, products_of, *pooled, *lists, *by_id, HALVES)
    if _agrees(found):
        return found
    logging.getLogger(__name__).warning(
        "the compiled kernels give other scores than numpy and are not used; delete numba's cache "
        "(%s) or reinstall counterpoint",
        Path(__file__).parent / "compiled" / "__pycache__",
    )
    return None


def _agrees(kernels: Kernels) -> bool:
    """Whether the kernels give numpy's scores, bit for bit, on a small example.

    numba's cache identifies a source file by its date and size, which an installer may leave unchanged.
    """
    rng = np.random.default_rng(0)
    offsets, query = np.array([0, 3, 3, 40]), rounded(rng.normal(size=(18, DIM)).astype(np.float32))
    bases, places = rng.normal(size=(18, 5)).astype(np.float32), rng.integers(0, 5, 40)
    centres, owners = rng.normal(size=(18, 3)).astype(np.float32), np.repeat(np.arange(3), np.diff(offsets))
    for codec in (each for each in CODECS.values() if isinstance(each, Integral)):
        arrays = codec.encode(rng.normal(size=(40, DIM)).astype(np.float32))
        values, factors = arrays["values"], arrays["scales"]
        inner = query.times(codec.integers(values, DIM), codec.top) * factors.astype(np.float32)
        found = (inner + bases[:, places] + centres[:, owners]) * query.scales[:, None]
        wanted = maxsim_by(partial(_rows_of, found), (np.array([0, 18]), offsets))
        asked, packed, halves = kernels.asked(query), values.view(np.uint8), factors.view(np.uint16)
        products = kernels.products(asked, packed, halves, codec.bits, kernels.halves)[:, :18].T
        agree = products.tobytes() == inner.tobytes()
        tables = tuple(np.pad(each, ((0, 14), (0, 0))).T.copy() for each in (bases, centres))
        words = places.astype(np.uint16).view(np.uint8).reshape(40, 2)
        where = np.arange(5), offsets[:-1], offsets[1:]
        stored = packed, halves, words, codec.bits
        scores = kernels.maxsim(asked, tables, stored, where, kernels.halves, False)
        agree &= scores.tobytes() == wanted[0].tobytes()
        if values.dtype == np.int8:
            rows = query.rows.astype(np.int8)
            scanned = kernels.scan(rows, query.scales, values, halves, kernels.halves)
            agree &= scanned.tobytes() == (inner * query.scales[:, None]).tobytes()
            some = kernels.scan_some(rows[:1], query.scales, values, halves, kernels.halves, offsets[:3])
            agree &= some.tobytes() == scanned[0, offsets[:3]].tobytes()
            agree &= _matches_agree(kernels, scanned, ((rows, query.scales), (values, halves)), offsets)
        if not agree:
            return False
    bits, integers = rng.integers(0, 256, (9, 13), np.uint8), np.zeros(104, np.int8)
    integers[:DIM] = query.rows[0]
    factors, numbers = rng.random(9).astype(np.float16), (query.scales[0], np.float32(0.1))
    bounds = kernels.sketched((integers, *numbers), bits, factors.view(np.uint16))
    if bounds.tobytes() != sketched((query.rows[0], *numbers), bits, factors).tobytes():
        return False
    turned = rotated(query.rows, kernels.turn)
    if turned.tobytes() != rotated(query.rows).tobytes():
        return False
    return _candidates_agree(kernels, rng) and _postings_agree(kernels, rng)


def _matches_agree(
    kernels: Kernels, similarity: Float[np.ndarray, "m n"], rows: tuple[Any, Any], offsets: np.ndarray
) -> bool:
    """The same for exact matching; `rows` are the query's and the stored ones, as kernels take them."""
    asked, stored = rows[0], (*rows[1], kernels.halves)
    words, own = np.arange(18) % 5, np.arange(40) * 7 % 6
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
        live, found = rng.random(len(norms)) < 0.9, (np.empty(200, np.int64), np.empty(200))
        kept = kernels.saturated(packed, 200, (norms, live), found)
        wanted = saturated(packed, 200, norms, live)
        if any(one[:kept].tobytes() != other.tobytes() for one, other in zip(found, wanted, strict=True)):
            return False
    return True


def _rows_of(similarity: Float[np.ndarray, "m n"], stored: slice) -> Products:
    return lambda asked: similarity[asked, stored]


def compile_all() -> None:
    """Compile and cache the kernels, if numba is installed."""
    _loaded()


def described() -> dict[str, str]:
    """The kernels that compute integer scores on this machine, for `info --hardware`."""
    if _loaded() is None:
        return {"kernel": "numpy"}
    from counterpoint.index.compiled.machine import VNNI

    return {"kernel": "compiled, AVX-512 VNNI" if VNNI else "compiled, portable"}
