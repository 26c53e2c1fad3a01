"""Encoding many texts: batches filled by token count, results in the order of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import torch
from torch import nn

from counterpoint.encode.tokens import Kind, Tokens
from counterpoint.errors import ConfigError
from counterpoint.types import Ragged, Side
from counterpoint.vectors import Vectors

if TYPE_CHECKING:
    from counterpoint.encode.dual import DualEncoder
    from counterpoint.encode.encoder import Encoder

__all__ = [
    "EncodeOptions",
    "Precision",
    "bf16_gains",
    "encode",
    "encode_layers",
    "in_batches",
    "token_batches",
]

Precision = Literal["auto", "fp32", "bf16"]
Made = TypeVar("Made")


@dataclass(frozen=True)
class EncodeOptions:
    """How to encode; none of it changes which vectors come out (bf16 rounds them).

    Attributes:
        budget: positions a batch holds at most, padding included; one longer text makes a batch of its own.
            Where None, 4096 on a CPU, which larger batches only slow down, and 65536 elsewhere.
        precision: "bf16" runs the backbone under autocast, "auto" does where `bf16_gains` says it is faster.
        device: where to compute; the first GPU where there is one, else the CPU. The model moves there.
        progress: called with the number of texts done since its last call.
    """

    budget: int | None = None
    precision: Precision = "auto"
    device: str | torch.device | None = None
    progress: Callable[[int], object] | None = None

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


def bf16_gains(device: torch.device) -> bool:
    """Whether bfloat16 is faster here: on GPUs that compute in it, and on CPUs with AMX or AVX-512 BF16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    names = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")  # absent from some torch releases
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)


def encode(
    model: DualEncoder,
    texts: Sequence[str],
    side: Side,
    options: EncodeOptions,
    sets: Mapping[str, int] | None = None,
) -> dict[str, Ragged]:
    """Vector sets of texts by name, in their order; order and batching do not change a vector.

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
    make = encoder.backbone.hidden_states
    for batch, tokens, states in in_batches(model, encoder, texts, side, options, make):
        real = tokens.kinds != Kind.PADDING
        yield batch, [Vectors(layer, real, tokens.ids).ragged() for layer in states]


def in_batches(
    model: nn.Module,
    encoder: Encoder,
    texts: Sequence[str],
    side: Side,
    options: EncodeOptions,
    make: Callable[[Tokens], Made],
) -> Iterator[tuple[list[int], Tokens, Made]]:
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
    reduced = options.precision == "bf16" or (options.precision == "auto" and bf16_gains(device))
    rows = encoder.rows(texts, side)
    budget = options.budget or (4096 if device.type == "cpu" else 65536)
    training = model.training
    model.to(device).eval()
    try:
        for batch in token_batches([len(row) for row in rows], budget):
            tokens = encoder.pad([rows[index] for index in batch], side).to(device)
            with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=reduced):
                made = make(tokens)
            yield batch, tokens, made
            if options.progress is not None:
                options.progress(len(batch))
    finally:
        model.train(training)
