"""The contract of codecs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
from jaxtyping import Float

from counterpoint.index.codec import Bits, Codec, Integral
from counterpoint.index.disk_usage import PURPOSES
from counterpoint.testing.rules import making, try_rules

__all__ = ["RULES", "check_codec"]


def check_codec(declare: Callable[[], Codec], draws: int = 12) -> None:
    """Check a codec with rows of 1 to 9 components.

    Args:
        declare: makes a codec.
        draws: random inputs per rule.

    Raises:
        AssertionError: naming the broken rule.
    """
    making(declare, "lambda: MyCodec()")
    try_rules(RULES, declare, draws)


def some_rows(random: Random) -> Float[np.ndarray, "n d"]:
    """Up to six rows of one length, some of them zeros."""
    rng = np.random.default_rng(random.getrandbits(32))
    rows = rng.normal(size=(random.randint(0, 6), random.randint(1, 9))) * 10 ** rng.uniform(-3, 3)
    rows[rng.random(len(rows)) < 0.2] = 0
    return rows.astype(np.float32)


def has_arrays_that_an_index_can_name(codec: Codec, random: Random) -> None:
    """An array is a file `<set>.<name>.npy` next to others; compiled kernels read those of an `Integral`."""
    layout = codec.layout(random.randint(1, 9))
    assert layout, "the layout has no arrays"
    for name in layout:
        assert name.isidentifier(), f"{name!r} is in the name of a file; name it like a Python variable"
        taken = PURPOSES.get(name)
        assert taken is None, f"the name {name!r} is taken, by a file with {taken}; choose another"
    if isinstance(codec, Integral):
        assert codec.bits in (1, 2, 4, 8), f"`bits` is {codec.bits}; kernels read 1, 2, 4 or 8"
        found = {name: np.dtype(dtype).name for name, (dtype, _) in layout.items()}
        wanted = {"values": "int8" if codec.bits == 8 else "uint8", "scales": "float16"}
        assert found == wanted, f"the arrays are {found}; those of an `Integral` are {wanted}"


def writes_what_its_layout_says(codec: Codec, random: Random) -> None:
    """`encode` gives the arrays of `layout` with one entry per row, and `decode` gives float32 rows."""
    rows = some_rows(random)
    arrays, layout = codec.encode(rows), codec.layout(rows.shape[1])
    assert arrays.keys() == layout.keys(), f"arrays {sorted(arrays)}, the layout says {sorted(layout)}"
    for name, (dtype, shape) in layout.items():
        assert arrays[name].dtype == dtype, f"{name} is of {arrays[name].dtype}, the layout says {dtype}"
        wanted = (len(rows), *shape)
        assert arrays[name].shape == wanted, f"{name} has the shape {arrays[name].shape}, not {wanted}"
    decoded = codec.decode(arrays, rows.shape[1])
    found, wanted = (f"{each.dtype} of {each.shape}" for each in (decoded, rows))
    assert found == wanted, f"`decode` gives {found}, not {wanted}"


def codes_each_row_by_itself(codec: Codec, random: Random) -> None:
    """The encoding of a row does not depend on other rows."""
    rows = some_rows(random)
    together = codec.encode(rows)
    for at in range(len(rows)):
        for name, alone in codec.encode(rows[at : at + 1]).items():
            assert alone[0].tobytes() == together[name][at].tobytes(), f"row {at} alone has other {name}"


def keeps_directions(codec: Codec, random: Random) -> None:
    """A decoded row points in the direction of the row, and zeros stay zeros."""
    rows = some_rows(random)
    decoded = codec.decode(codec.encode(rows), rows.shape[1]).astype(np.float64)
    assert np.isfinite(decoded).all(), "a decoded component is not finite"
    along = (decoded * rows).sum(axis=1)
    assert (along[rows.any(axis=1)] > 0).all(), "a decoded row points away from the row"
    assert not decoded[~rows.any(axis=1)].any(), "zeros are not decoded as zeros"


def codes_decoded_rows_as_they_were(codec: Codec, random: Random) -> None:
    """An index built from an export with vectors has the same vectors, unless the codec is one of `Bits`."""
    rows = some_rows(random)
    decoded = codec.decode(codec.encode(rows), rows.shape[1])
    again = codec.decode(codec.encode(decoded), rows.shape[1])
    kept = isinstance(codec, Bits) or np.array_equal(again, decoded)
    assert kept, "decoded rows are encoded to rows that decode otherwise"


def never_keeps_infinity(codec: Codec, random: Random) -> None:
    """A row that is too large for a codec makes an array of floats infinite, which an index refuses."""
    large = np.sign(some_rows(random)) * np.finfo(np.float32).max
    with np.errstate(over="ignore", invalid="ignore"):
        arrays = codec.encode(large)
        refused = any(each.dtype.kind == "f" and not np.isfinite(each).all() for each in arrays.values())
        finite = np.isfinite(codec.decode(arrays, large.shape[1])).all()
    fault = "a component that is too large is stored, and decoded as infinity or NaN; make it the largest"
    assert refused or finite, f"{fault} that the codec has, or make an array of floats infinite"


RULES = (
    has_arrays_that_an_index_can_name,
    writes_what_its_layout_says,
    codes_each_row_by_itself,
    keeps_directions,
    codes_decoded_rows_as_they_were,
    never_keeps_infinity,
)
