"""Building blocks of kernels that numba lacks: vectors of sixteen, and the processor's features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

__all__ = [
    "AVX2",
    "AVX2_ALONE",
    "BYTE",
    "FLOATS",
    "INTS",
    "LANES",
    "LONG",
    "SHORTS",
    "VBMI",
    "VNNI",
    "WORD",
    "X86",
    "fetched",
    "given",
    "instruction",
    "loaded",
    "looping",
    "number",
    "of_halves",
    "place_of",
    "prefetch",
    "repeated",
    "spread",
]

LANES = 16
BYTE, WORD, LONG = (ir.IntType(bits) for bits in (8, 32, 64))
SHORTS = ir.VectorType(ir.IntType(16), LANES)
INTS, FLOATS = (ir.VectorType(kind, LANES) for kind in (WORD, ir.FloatType()))


def _compiles_for(feature: str) -> bool:
    """Whether numba compiles for a processor with a feature, by LLVM's name.

    Its settings may name another processor; on some, and with `NUMBA_ENABLE_AVX=0`, it does without AVX.
    """
    name, features = (getattr(config, key) for key in ("CPU_NAME", "CPU_FEATURES"))
    if features is None:
        features = "" if name else get_host_cpu_features()
    return f"+{feature}" in features.split(",")


AVX2, VNNI, VBMI = (_compiles_for(name) for name in ("avx2", "avx512vnni", "avx512vbmi"))
AVX2_ALONE = AVX2 and not VNNI
X86 = llvm.get_process_triple().startswith(("x86_64", "i686", "amd64"))


def instruction(written: Callable[..., Any]) -> Any:
    """`intrinsic`, typed as Any: a type checker would see the signature of the code generator."""
    return intrinsic(written)


def looping(function: Callable[..., Any]) -> Any:
    """Compile a loop that allocates no array; the function that calls it does.

    numba then counts no references to arrays. It removes most of the counting by itself, but not from a loop
    with several branches, where counting can take a third of the time. numba does not document the option.
    """
    options: dict[str, Any] = {"nogil": True, "cache": True, "_nrt": False}
    return njit(**options)(function)


def given(kind: Any, dimensions: int) -> Any:
    """The type of a read-only array, memory-mapped or not, so that one compilation serves both."""
    return types.Array(kind, dimensions, "C", readonly=True)


def number(value: float, kind: Any = LONG) -> Any:
    """A constant; for a vector, the same number in every lane."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def place_of(code: Any, which: int | tuple[int, int], offset: Any, kind: Any) -> Any:
    """A pointer to `kind` at an item of an array argument, or of an array in a tuple argument.

    `code` are the arguments of `codegen`.
    """
    context, builder, signature, args = code
    if isinstance(which, int):
        of, value = signature.args[which], args[which]
    else:
        argument, place = which
        of, value = signature.args[argument][place], builder.extract_value(args[argument], place)
    array = context.make_array(of)(context, builder, value)
    return builder.bitcast(builder.gep(array.data, [offset]), kind.as_pointer())


def loaded(builder: Any, pointer: Any) -> Any:
    """The value at a pointer of any alignment."""
    found = builder.load(pointer)
    found.align = 1
    return found


def spread(builder: Any, value: Any, kind: Any) -> Any:
    """A value in every lane of a vector."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, value, number(0, WORD))
    return builder.shuffle_vector(first, nothing, number(0, ir.VectorType(WORD, kind.count)))


def of_halves(builder: Any, halves: Any) -> Any:
    """Sixteen finite float16 as float32, without an instruction that the processor may lack.

    Where the processor was told to flush subnormal numbers to zero, those below 2^-14 become 0.
    """
    whole = builder.shl(builder.sext(halves, INTS), number(13, INTS))
    moved = builder.and_(whole, number(~0x70000000 & 0xFFFFFFFF, INTS))  # the sign once, not four times
    # A float16 has its exponent from 15 on, a float32 from 127.
    return builder.fmul(builder.bitcast(moved, FLOATS), number(2.0**112, FLOATS))


def repeated(
    builder: Any, end: Any, before: list[Any], step: Callable[[Any, list[Any]], list[Any]], first: Any = None
) -> list[Any]:
    """A loop from `first` (0) to before `end`, at least once.

    `step` gets the number of the round and the values so far, first those of `before`, and makes the values
    of the next. Those of the last round are returned.
    """
    start, loop, done = builder.block, *(builder.append_basic_block(name) for name in ("loop", "done"))
    builder.branch(loop)
    builder.position_at_end(loop)
    here, so_far = builder.phi(LONG), [builder.phi(value.type) for value in before]
    after, following = step(here, so_far), builder.add(here, number(1))
    here.add_incoming(number(0) if first is None else first, start)
    here.add_incoming(following, builder.block)
    for value, old, new in zip(so_far, before, after, strict=True):
        value.add_incoming(old, start)
        value.add_incoming(new, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, end), loop, done)
    builder.position_at_end(done)
    return after


def fetched(builder: Any, place: Any) -> None:
    """Add the instruction that prefetches what is at a pointer, which may point anywhere."""
    pointer, small = BYTE.as_pointer(), (number(each, WORD) for each in (0, 3, 1))  # read, keep, data
    kind = ir.FunctionType(ir.VoidType(), [pointer, WORD, WORD, WORD])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
    builder.call(fetch, [builder.bitcast(place, pointer), *small])


@instruction
def prefetch(typingctx: Any, array: Any, place: Any) -> Any:
    """Prefetch an item of an array into the cache."""

    def codegen(*code: Any) -> Any:
        context, builder, signature, args = code
        fetched(builder, place_of(code, 0, args[1], context.get_value_type(signature.args[0].dtype)))
        return context.get_dummy_value()

    return types.void(array, place), codegen
