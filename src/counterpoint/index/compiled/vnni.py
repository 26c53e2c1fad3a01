"""AVX-512 VNNI: an instruction for products of small integers. It multiplies 64 pairs of bytes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from counterpoint.index.compiled.machine import INTS, LONG, WORD, number

__all__ = ["added_up", "multiplied", "summed"]


def multiplied(builder: Any, total: Any, levels: Any, asked: Any) -> Any:
    """Sixteen sums; to each, four products of an unsigned and a signed byte are added."""
    kind = ir.FunctionType(INTS, [INTS] * 3)
    instruction = builder.module.declare_intrinsic("llvm.x86.avx512.vpdpbusd.512", fnty=kind)
    return builder.call(instruction, [total, levels, asked])


def summed(builder: Any, rounds: Any, step: Callable[[Any, Any], Any]) -> Any:
    """A loop: sixteen sums after `rounds` steps; each step gets its number and the sums so far."""
    start, loop, done = builder.block, *(builder.append_basic_block(name) for name in ("loop", "done"))
    builder.cbranch(builder.icmp_unsigned(">", rounds, number(0)), loop, done)
    builder.position_at_end(loop)
    here, before = builder.phi(LONG), builder.phi(INTS)
    after, following = step(here, before), builder.add(here, number(1))
    for value, at_first, then in ((here, number(0), following), (before, number(0, INTS), after)):
        value.add_incoming(at_first, start)
        value.add_incoming(then, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, rounds), loop, done)
    builder.position_at_end(done)
    found = builder.phi(INTS)
    found.add_incoming(number(0, INTS), start)
    found.add_incoming(after, loop)
    return found


def added_up(builder: Any, total: Any) -> Any:
    """The sum of sixteen sums."""
    kind = ir.FunctionType(WORD, [INTS])
    return builder.call(builder.module.declare_intrinsic("llvm.vector.reduce.add.v16i32", fnty=kind), [total])
