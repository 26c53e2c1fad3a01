"""Encoding many texts: options, and batches filled by token count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from counterpoint.errors import ConfigError

__all__ = [
    "EncodeOptions",
    "Precision",
    "ShapedBatch",
    "bf16_gains",
    "default_budget",
    "runs_in_bf16",
    "shaped_batches",
    "token_batches",
]

Precision = Literal["auto", "fp32", "bf16"]
STEP = 32
"""Texts that share batches are padded to a multiple of so many positions."""


@dataclass(frozen=True)
class EncodeOptions:
    """How to encode. Budget, precision and device decide how vectors are rounded.

    Attributes:
        budget: positions a batch holds at most, padding included; one longer text makes a batch of its own.
            Where None, 1024 on a CPU and 8192 elsewhere; queries are encoded one by one on a CPU, and in
            batches of 1024 positions elsewhere.
        precision: "bf16" runs the backbone under autocast, "auto" does where it is faster: where
            `bf16_gains` says so, but for queries on a CPU.
        device: where to compute; the first GPU where there is one, else the CPU. The model moves there.
        progress: called with the number of texts done since its last call.
        on_longer: called once, before anything is computed, with the number of texts that are longer than
            what is read of them.
    """

    budget: int | None = None
    precision: Precision = "auto"
    device: str | torch.device | None = None
    progress: Callable[[int], object] | None = None
    on_longer: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        faults = []
        if self.budget is not None and self.budget < 1:
            faults.append(f"budget must be at least 1, found {self.budget}")
        if self.precision not in ("auto", "fp32", "bf16"):
            faults.append(f"precision must be 'auto', 'fp32' or 'bf16', found {self.precision!r}")
        if faults:
            raise ConfigError(*faults)


def token_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Put texts of similar length together so that each padded batch holds at most `budget` positions.

    The longest come first, so that a batch too big for the memory fails at once and not after hours.

    >>> token_batches([3, 9, 4, 1], budget=9)
    [[1], [2, 0], [3]]
    """
    batches: list[list[int]] = []
    widest = 0
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batches and (len(batches[-1]) + 1) * widest <= budget:
            batches[-1].append(index)
        else:
            batches.append([index])
            widest = lengths[index]
    return batches


@dataclass(frozen=True)
class ShapedBatch:
    """Texts of one batch by their positions, and its shape, which may have room for more.

    Attributes:
        texts: at most `rows`.
        rows: of the padded batch; those without a text hold an empty one.
        width: positions of every row.
    """

    texts: list[int]
    rows: int
    width: int


def shaped_batches(lengths: Sequence[int], budget: int, limit: int) -> list[ShapedBatch]:
    """Batches whose shape follows from the length of any text in them, whatever the other texts are.

    Matrix products choose their kernels by shape, and kernels round differently. So a text that always meets
    the same shape always has the same vectors. The longest come first, as in `token_batches`.

    Args:
        lengths: of the texts, in positions.
        budget: positions a batch holds at most; texts of which it holds one are not padded.
        limit: positions that the model takes.

    >>> shaped_batches([3, 40, 70, 40], budget=128, limit=512)
    ... # doctest: +NORMALIZE_WHITESPACE
    [ShapedBatch(texts=[2], rows=1, width=70), ShapedBatch(texts=[1, 3], rows=2, width=64),
     ShapedBatch(texts=[0], rows=4, width=32)]
    """
    shapes: dict[tuple[int, int], list[int]] = {}
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        length = lengths[index]
        width = max(length, min(limit, STEP * max(1, -(-length // STEP))))
        rows = budget // width
        shapes.setdefault((rows, width) if rows > 1 else (1, length), []).append(index)
    return [
        ShapedBatch(texts[start : start + rows], rows, width)
        for (rows, width), texts in shapes.items()
        for start in range(0, len(texts), rows)
    ]


def default_budget(device: torch.device, *, short: bool = False) -> int:
    """Positions a batch: enough to keep the device busy, few enough that unfilled rows cost little.

    `short` texts (queries) often come alone, so that their batches are small: of one text on a CPU.
    """
    if device.type == "cpu":
        return 1 if short else 1024
    return 1024 if short else 8192


def bf16_gains(device: torch.device) -> bool:
    """Whether bfloat16 is faster here: on GPUs that compute in it, and on CPUs with AMX or AVX-512 BF16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    names = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")  # absent from some torch releases
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)


def runs_in_bf16(options: EncodeOptions, device: torch.device, *, short: bool = False) -> bool:
    """Whether to run the backbone in bfloat16; by "auto", `short` texts (queries) are not on a CPU.

    A query is alone in its batch there, and rounding the weights for it takes longer than it saves.
    """
    if options.precision == "auto":
        return bf16_gains(device) and not (short and device.type == "cpu")
    return options.precision == "bf16"
