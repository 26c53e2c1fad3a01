"""Encode many texts: options, and batches filled by token count."""

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
"""Texts in shared batches are padded to a multiple of this many positions."""


@dataclass(frozen=True)
class EncodeOptions:
    """How to encode. Budget, precision and device affect the rounding of vectors.

    Attributes:
        budget: maximum number of positions in a batch, padding included; a longer text is a batch of its own.
            If None: 1024 on a CPU and 8192 elsewhere. Queries are then encoded one by one on a CPU, and in
            batches of 1024 positions elsewhere.
        precision: "bf16" runs the backbone under autocast. "auto" does so where it is faster: where
            `bf16_gains` is true, except for queries on a CPU.
        device: where to compute; the first GPU if there is one, else the CPU. The model moves there.
        progress: called with the number of texts done since its last call.
        on_longer: called once before encoding, with the number of texts that will be truncated.
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
    """Group texts of similar length so that each padded batch holds at most `budget` positions.

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
    """The texts of one batch, by position, and the batch's shape, which may have unused rows.

    Attributes:
        texts: at most `rows`.
        rows: rows of the padded batch; unused ones hold an empty text.
        width: positions of every row.
    """

    texts: list[int]
    rows: int
    width: int


def shaped_batches(lengths: Sequence[int], budget: int, limit: int) -> list[ShapedBatch]:
    """Make batches whose shape depends on each text's own length, never on the other texts.

    Matrix products choose their kernels by shape, and kernels round differently. A text that always gets the
    same shape therefore always gets the same vectors. The longest come first, as in `token_batches`.

    Args:
        lengths: of the texts, in positions.
        budget: maximum number of positions in a batch; a text that fills a batch alone is not padded.
        limit: maximum number of positions that the model accepts.

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
    """Positions per batch: enough to keep the device busy, few enough that unused rows cost little.

    `short` texts (queries) often come alone, so their batches are small: one text on a CPU.
    """
    if device.type == "cpu":
        return 1 if short else 1024
    return 1024 if short else 8192


def bf16_gains(device: torch.device) -> bool:
    """Whether bfloat16 is faster here: on GPUs that support it, and on CPUs with AMX or AVX-512 BF16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    names = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")  # absent from some torch releases
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)


def runs_in_bf16(options: EncodeOptions, device: torch.device, *, short: bool = False) -> bool:
    """Whether to run the backbone in bfloat16. "auto" does not for `short` texts (queries) on a CPU.

    A query is alone in its batch there, and rounding the weights for it takes longer than it saves.
    """
    if options.precision == "auto":
        return bf16_gains(device) and not (short and device.type == "cpu")
    return options.precision == "bf16"
