"""Encoding many texts: batches filled by token count, results in the order of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from counterpoint.encode.tokens import Kind, Tokens
from counterpoint.errors import ConfigError
from counterpoint.types import Ragged, Side
from counterpoint.vectors import Representation, Vectors

if TYPE_CHECKING:
    from counterpoint.encode.dual import DualEncoder
    from counterpoint.encode.encoder import Encoder

__all__ = [
    "EncodeOptions",
    "Precision",
    "ShapedBatch",
    "bf16_gains",
    "default_budget",
    "encode",
    "encode_layers",
    "in_batches",
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


def encode(
    model: DualEncoder,
    texts: Sequence[str],
    side: Side,
    options: EncodeOptions,
    sets: Mapping[str, int] | None = None,
) -> dict[str, Ragged]:
    """Vector sets of texts by name, in their order; the other texts do not change a text's vectors.

    `sets` are those wanted of what the model makes, with their numbers of components; all of its own if None.
    """
    sets = model.sets if sets is None else sets
    parts: dict[str, list[Ragged]] = {name: [] for name in sets}
    done: list[int] = []
    for batch, _, made in in_batches(model, model.encoder(side), texts, side, options, model):
        done += batch
        for name in parts:
            parts[name].append(made[name].ragged())
    order = np.argsort(np.array(done, dtype=np.int64))
    return {
        name: Ragged.concatenate(found).take(order) if found else Ragged.from_list([], dim=sets[name])
        for name, found in parts.items()
    }


def encode_layers(
    model: DualEncoder, texts: Sequence[str], side: Side, options: EncodeOptions
) -> Iterator[tuple[list[int], list[Ragged]]]:
    """Hidden states batch by batch: positions of the texts, and for each layer their states.

    Of every position that is not padding, special ones included, with its vocabulary id.
    """
    encoder = model.setup().encoder(side)

    def make(tokens: Tokens) -> Representation:
        states, real = encoder.backbone.hidden_states(tokens), tokens.kinds != Kind.PADDING
        return {str(number): Vectors(layer, real, tokens.ids) for number, layer in enumerate(states)}

    for batch, _, made in in_batches(model, encoder, texts, side, options, make):
        yield batch, [vectors.ragged() for vectors in made.values()]


def in_batches(
    model: DualEncoder | Encoder,
    encoder: Encoder,
    texts: Sequence[str],
    side: Side,
    options: EncodeOptions,
    make: Callable[[Tokens], Representation],
) -> Iterator[tuple[list[int], Tokens, Representation]]:
    """Positions of the texts of each batch, its tokens, and what is made of them without gradients.

    Args:
        model: in evaluation mode until the last batch is taken.
        encoder: tokenises.
        texts: to be encoded.
        side: which they are.
        options: how.
        make: from tokens.
    """
    device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    short = side == "query"
    reduced = runs_in_bf16(options, device, short=short)
    *rows, empty = encoder.rows([*texts, ""], side)
    budget = options.budget or default_budget(device, short=short)
    limit = encoder.max_positions
    if options.on_longer is not None:
        options.on_longer(sum(row.cut is not None for row in rows))
    model.to(device)
    with model.evaluation.of(model):
        for batch in shaped_batches([len(row) for row in rows], budget, limit):
            found, count = [rows[index] for index in batch.texts], len(batch.texts)
            filled = [*found, *[empty] * (batch.rows - count)]
            tokens = encoder.pad(filled, side, batch.width).to(device)
            with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=reduced):
                made = make(tokens)
            kept = {name: vectors.first(count) for name, vectors in made.items()}
            yield batch.texts, tokens.first(count), kept
            if options.progress is not None:
                options.progress(count)
