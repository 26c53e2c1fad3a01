"""Vectors of a batch with their gradients taken back into the encoder, at once or chunk by chunk.

A loss needs the vectors of the whole batch, but an encoder's activations fit the memory only for a few texts.
So texts are encoded in chunks without gradients, the loss is computed on the vectors, and each chunk is
encoded once more to take its vectors' gradients back (Gao et al. 2021, "Scaling Deep Contrastive Learning
Batch Size under Memory Limited Setup"). Since a loss only sees vectors, this serves every loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from counterpoint.encode.batching import token_batches
from counterpoint.encode.tokens import Row
from counterpoint.learn.processes import Processes
from counterpoint.learn.seeds import seed_of
from counterpoint.model import Model
from counterpoint.types import Side
from counterpoint.vectors import Representation, Vectors

__all__ = ["EncodedBatch", "Encoding"]


@final
@dataclass(frozen=True)
class Encoding:
    """How batches are encoded in a stage.

    Attributes:
        model: makes the vectors.
        processes: among which texts are shared out.
        chunk: texts whose activations are held at a time; None holds those of the batch.
        autocast: a context under which the model runs.
        budget: positions encoded at a time where `chunk` is None; 2048 on a CPU and 65536 elsewhere if
            this is None, too.
    """

    model: Model
    processes: Processes
    chunk: int | None
    autocast: Callable[[], AbstractContextManager]
    budget: int | None = None

    def encode(self, texts: Sequence[str], side: Side, seed: int) -> EncodedBatch:
        """Encode one side of a batch; dropout is decided by the seed."""
        return EncodedBatch(self, texts, side, seed)

    @torch.no_grad()
    def plainly(self, texts: Sequence[str], side: Side) -> Representation:
        """Vectors without gradients and without dropout, of all texts on every process."""
        training = self.model.training
        self.model.eval()
        try:
            return EncodedBatch(self, texts, side, 0, gradients=False).vectors
        finally:
            self.model.train(training)


@dataclass
class _Chunk:
    rows: list[Row]
    places: Int[Tensor, " k"]
    seed: int
    kept: Representation | None = field(default=None)


@final
class EncodedBatch:
    """The vectors of one side of a batch; `backward` takes their gradients into the encoder.

    Attributes:
        vectors: leaves of the loss's graph, of all texts and processes.
    """

    def __init__(
        self, encoding: Encoding, texts: Sequence[str], side: Side, seed: int, *, gradients: bool = True
    ):
        self._encoding = encoding
        self._side: Side = side
        self._share = encoding.processes.share(len(texts))
        self._gradients = gradients and self._learns()
        self._chunks = self._cut([texts[int(at)] for at in self._share], seed)
        keep = self._gradients and (encoding.chunk is None or len(self._chunks) == 1)
        parts = [self._run(chunk, gradients=keep) for chunk in self._chunks]
        if keep:
            for chunk, part in zip(self._chunks, parts, strict=True):
                chunk.kept = part
        self.vectors = self._leaves(parts, len(texts))

    def backward(self) -> None:
        """Take the gradients of this process's share of the vectors through the encoder."""
        if not self._gradients:
            return
        for chunk in self._chunks:
            made = chunk.kept if chunk.kept is not None else self._run(chunk, gradients=True)
            places = self._share[chunk.places]
            values, gradients = [], []
            for name, vectors in made.items():
                whole = self.vectors[name].values.grad
                if whole is not None and vectors.values.requires_grad:
                    values.append(vectors.values)
                    gradients.append(whole[places, : vectors.values.shape[1]].to(vectors.values.dtype))
            if values:
                torch.autograd.backward(values, gradients)
            chunk.kept = None

    @property
    def _device(self) -> torch.device:
        return next(self._encoding.model.parameters()).device

    def _learns(self) -> bool:
        """Whether anything that makes this side's vectors is being trained."""
        encoder, transforms = self._encoding.model.encoder, self._encoding.model.transforms
        modules = (encoder.encoder(self._side), encoder.shared, transforms)
        return any(p.requires_grad for module in modules for p in module.parameters())

    def _cut(self, texts: Sequence[str], seed: int) -> list[_Chunk]:
        """The texts in pieces that are encoded one after the other."""
        encoding = self._encoding
        rows = encoding.model.encoder.encoder(self._side).rows(texts, self._side)
        groups = self._groups([len(row) for row in rows]) or [[]]
        return [
            _Chunk(
                [rows[at] for at in places],
                torch.tensor(places, dtype=torch.int64),
                seed_of(seed, self._side, encoding.processes.rank, number),
            )
            for number, places in enumerate(groups)
        ]

    def _groups(self, lengths: Sequence[int]) -> list[list[int]]:
        """Positions of the texts that are encoded together: of similar length, so that little is padded."""
        size = self._encoding.chunk
        if size is None:
            return token_batches(lengths, self._encoding.budget or _budget(self._device))
        order = sorted(range(len(lengths)), key=lambda at: (-lengths[at], at))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def _run(self, chunk: _Chunk, *, gradients: bool) -> Representation:
        """Encode a chunk; run again, it draws the same dropout."""
        model = self._encoding.model
        tokens = model.encoder.encoder(self._side).pad(chunk.rows, self._side).to(self._device)
        torch.manual_seed(chunk.seed)
        with torch.set_grad_enabled(gradients), self._encoding.autocast():
            return model(tokens)

    def _leaves(self, parts: Sequence[Representation], texts: int) -> Representation:
        """All chunks and processes put together in the order of the texts, cut from their graphs."""
        places = torch.cat([chunk.places for chunk in self._chunks])
        order = torch.argsort(places)
        leaves = {}
        for name in parts[0]:
            joined = Vectors.concatenate([part[name] for part in parts])
            mine = joined.take(order.to(joined.values.device))
            whole = self._encoding.processes.gather(mine, texts)
            values = whole.values.detach()
            leaves[name] = whole.with_values(values.requires_grad_(self._gradients))
        return leaves


def _budget(device: torch.device) -> int:
    """Positions encoded at a time.

    On a CPU few: more are no faster there, and more is padded. Tensors also stay below 32 MiB (12 heads on
    texts of up to 340 tokens), above which glibc gives memory back at every use where nothing keeps it.
    """
    return 2048 if device.type == "cpu" else 65536
