import numpy as np
import pytest
from numba import njit, types

from counterpoint.index.compiled import machine, products
from counterpoint.index.compiled.machine import (
    FLOATS,
    INTS,
    LANES,
    VNNI,
    X86,
    instruction,
    loaded,
    number,
    place_of,
)

WAYS = {
    "any processor": lambda *code: products.by_pairs(*code, products.pairs),
    "x86": lambda *code: products.by_pairs(*code, products.pairs_x86),
    "VNNI": products.by_vnni,
}


def compiled(way):
    """A function that adds products of bytes to sums, by one of the ways."""

    @instruction
    def added(typingctx, sums, levels, asked):
        def codegen(*code):
            context, builder, *_ = code
            places = [place_of(code, which, number(0), INTS) for which in range(3)]
            found = way(builder, *(loaded(builder, place) for place in places))
            builder.store(found, places[0]).align = 1
            return context.get_dummy_value()

        return types.void(sums, levels, asked), codegen

    @njit
    def call(sums, levels, asked):
        added(sums, levels, asked)

    return call


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_multiply_gives_the_same_sums(name):
    """Also of the largest products, whose pairs need 17 bits, and of sums that are nearly too large."""
    if name != "any processor" and not (VNNI if name == "VNNI" else X86):
        pytest.skip(f"numba does not compile for {name} here")
    rng, call = np.random.default_rng(0), compiled(WAYS[name])
    for levels, asked in [(None, None), (255, -128), (255, 127), (0, -128), (None, None)]:
        levels = rng.integers(0, 256, 64) if levels is None else np.full(64, levels)
        asked = rng.integers(-128, 128, 64) if asked is None else np.full(64, asked)
        start = rng.integers(-(2**31) + 2**20, 2**31 - 2**20, LANES)
        sums = start.astype(np.int32)
        call(sums, levels.astype(np.uint8), asked.astype(np.int8))
        np.testing.assert_array_equal(sums, start + (levels * asked).reshape(LANES, 4).sum(axis=1))


def test_finite_float16_become_float32_exactly():
    @instruction
    def widened(typingctx, halves, at, found):
        def codegen(*code):
            context, builder, _, args = code
            shorts = loaded(builder, place_of(code, 0, args[1], machine.SHORTS))
            builder.store(machine.of_halves(builder, shorts), place_of(code, 2, args[1], FLOATS)).align = 1
            return context.get_dummy_value()

        return types.void(halves, at, found), codegen

    @njit
    def call(halves, found):
        for at in range(0, len(halves), LANES):
            widened(halves, at, found)

    every = np.arange(2**16, dtype=np.uint16)
    halves = every[np.isfinite(every.view(np.float16))]
    found = np.empty(len(halves), np.float32)
    call(halves, found)
    assert found.tobytes() == halves.view(np.float16).astype(np.float32).tobytes()
