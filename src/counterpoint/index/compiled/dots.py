"""Inner products of one row of small integers with sixteen rows of a query at a time.

`dots(tile, row, sums)` sets the sixteen `sums`. A tile holds the query's integers so that one instruction
multiplies four components of the row with the same four of all sixteen (AVX-512 VNNI). Without it plain loops
do the same, which the compiler turns into what the processor has. Integers are exact, so both give the same
sums.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import config
from numba.extending import intrinsic

from counterpoint.index.rounded import Rounded

__all__ = ["LANES", "VNNI", "asked_of", "dots", "tiles_of"]

LANES = 16  # rows of a query that are multiplied at a time
STEP = 16  # components; four instructions that do not wait for each other
WORD = ir.IntType(32)
VECTOR = ir.VectorType(WORD, LANES)


def _has_vnni() -> bool:
    """Whether the processor that numba compiles for has AVX-512 VNNI."""
    name, features = (getattr(config, key) for key in ("CPU_NAME", "CPU_FEATURES"))
    if name or features is not None:  # asked to compile for another one
        return "+avx512vnni" in (features or "")
    return bool(llvm.get_host_cpu_features().get("avx512vnni"))


VNNI = _has_vnni()


def tiles_of(rows: np.ndarray) -> np.ndarray:
    """The integers of a query, (m, components), as flat tiles, in the order that `dots` wants.

    For VNNI a tile is (components / 4, LANES, 4), else (LANES, components). Rows and components are filled up
    with zeros.
    """
    lanes, width = -(-len(rows) // LANES) * LANES, -(-rows.shape[1] // STEP) * STEP
    whole = np.zeros((lanes, width), np.int8)
    whole[: len(rows), : rows.shape[1]] = rows
    tiles = whole.reshape(lanes // LANES, LANES, width // 4, 4)
    ordered = tiles.transpose(0, 2, 1, 3) if VNNI else tiles
    return np.ascontiguousarray(ordered).reshape(lanes // LANES, width * LANES)


def asked_of(query: Rounded) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """A query's rows as kernels take them: tiles, sums of each row's integers, scales, and how many rows."""
    integers, count = query.rows.astype(np.int8), len(query.rows)
    missing = -count % LANES
    sums = np.pad(integers.sum(axis=1, dtype=np.int32), (0, missing))
    return tiles_of(integers), sums, np.pad(query.scales, (0, missing)), count


@intrinsic
def _vnni(typingctx: Any, tile: Any, row: Any, sums: Any) -> Any:
    """`vpdpbusd` over all components: unsigned row times signed tile."""

    def data(context: Any, builder: Any, kind: Any, value: Any, pointer: Any) -> Any:
        return builder.bitcast(context.make_array(kind)(context, builder, value).data, pointer)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        multiply = builder.module.declare_intrinsic(
            "llvm.x86.avx512.vpdpbusd.512", fnty=ir.FunctionType(VECTOR, [VECTOR] * 3)
        )
        tiles = data(context, builder, signature.args[0], args[0], VECTOR.as_pointer())
        words = data(context, builder, signature.args[1], args[1], WORD.as_pointer())
        out = data(context, builder, signature.args[2], args[2], VECTOR.as_pointer())
        row = context.make_array(signature.args[1])(context, builder, args[1])
        count = builder.udiv(row.nitems, ir.Constant(row.nitems.type, 4))
        start, loop, done = builder.block, *(builder.append_basic_block(name) for name in ("loop", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        at = builder.phi(count.type)
        before = [builder.phi(VECTOR) for _ in range(STEP // 4)]
        after = []
        for i, total in enumerate(before):
            place = builder.add(at, ir.Constant(count.type, i))
            word, tile_ = builder.load(builder.gep(words, [place])), builder.load(builder.gep(tiles, [place]))
            word.align = tile_.align = 1
            first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), word, ir.Constant(WORD, 0))
            spread = ir.Constant(VECTOR, [0] * LANES)
            all_lanes = builder.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), spread)
            after.append(builder.call(multiply, [total, all_lanes, tile_]))
        following = builder.add(at, ir.Constant(count.type, STEP // 4))
        at.add_incoming(ir.Constant(count.type, 0), start)
        at.add_incoming(following, loop)
        for old, new in zip(before, after, strict=True):
            old.add_incoming(ir.Constant(VECTOR, [0] * LANES), start)
            old.add_incoming(new, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, count), loop, done)
        builder.position_at_end(done)
        total = builder.add(builder.add(after[0], after[1]), builder.add(after[2], after[3]))
        builder.store(total, out).align = 1
        return context.get_dummy_value()

    return types.void(tile, row, sums), codegen


@njit(nogil=True, cache=True)
def _plain(tile, row, sums):
    """The same by loops."""
    width = len(row)
    for lane in range(LANES):
        mine = tile[lane * width : (lane + 1) * width]
        total = np.int32(0)
        for i in range(width):
            total += np.int32(row[i]) * np.int32(mine[i])
        sums[lane] = total


dots: Any = _vnni if VNNI else _plain
