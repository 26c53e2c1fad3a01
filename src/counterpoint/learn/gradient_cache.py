"""Encode a batch and backpropagate into the model, at once or in chunks (gradient cache).

A loss needs the vectors of the whole batch, but memory holds an encoder's activations for a few texts only.
So texts are encoded in chunks without gradients, and the loss is computed on the vectors. Each chunk is then
encoded again to backpropagate its vectors' gradients (Gao et al. 2021, "Scaling Deep Contrastive Learning
Batch Size under Memory Limited Setup"). This works for every loss, because a loss sees only vectors. Pairs
for a cross-encoder are encoded in the same way: the score is a vector of one component.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from counterpoint.encode import InteractiveEncoder
from counterpoint.encode.batching import token_batches
from counterpoint.learn.processes import Processes
from counterpoint.learn.seeds import seed_of
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.types import Side
from counterpoint.vectors import Representation, Vectors

__all__ = ["Alter", "EncodedBatch", "Encoding", "PairEncoding", "TextEncoding"]

Input = TypeVar("Input")
Kind = TypeVar("Kind", bound=str)
Pair = tuple[str, str]
Alter = Callable[[int, Any], Any]
"""Maps an input's position in the batch and its tokenised row to the row to encode instead."""


@dataclass(frozen=True)
class Encoding(ABC, Generic[Input, Kind]):
    """How the batches of a stage are encoded. Abstract: subclasses define the model's input.

    Attributes:
        model: makes the vectors.
        processes: the processes that share the inputs.
        chunk: number of inputs whose activations are held at a time. None for the whole batch.
        autocast: a context in which the model runs.
        budget: token positions encoded at a time if `chunk` is None. None for 2048 on a CPU and 65536
            elsewhere.
    """

    model: Part
    processes: Processes
    chunk: int | None
    autocast: Callable[[], AbstractContextManager]
    budget: int | None = None

    @abstractmethod
    def learns(self, kind: Kind) -> bool:
        """Whether any module that makes these vectors is being trained."""

    @abstractmethod
    def rows(self, inputs: Sequence[Input], kind: Kind) -> Sequence[Sized]:
        """Tokenise the inputs. The length of a row is its encoding cost."""

    @abstractmethod
    def run(self, rows: Sequence[Any], kind: Kind) -> Representation:
        """Pad and encode the result of `rows`."""

    def encode(
        self, inputs: Sequence[Input], kind: Kind, seed: int, alter: Alter | None = None
    ) -> EncodedBatch[Input, Kind]:
        """Encode inputs of a batch. The seed determines dropout."""
        return EncodedBatch(self, inputs, kind, seed, alter)

    @torch.no_grad()
    def plainly(self, inputs: Sequence[Input], kind: Kind) -> Representation:
        """Encode all inputs without gradients and dropout. Every process gets all vectors."""
        training = self.model.training
        self.model.eval()
        try:
            return EncodedBatch(self, inputs, kind, 0, gradients=False).vectors
        finally:
            self.model.train(training)

    @property
    def device(self) -> torch.device:
        """The model's device."""
        return next(self.model.parameters()).device


@final
@dataclass(frozen=True)
class TextEncoding(Encoding[str, Side]):
    """Encodes texts of one side into vector sets."""

    model: Model

    def learns(self, kind: Side) -> bool:
        """Whether the side's encoder or a shared module learns."""
        encoder = self.model.encoder
        modules = (encoder.encoder(kind), encoder.gates, encoder.shared, self.model.transforms)
        return any(p.requires_grad for module in modules for p in module.parameters())

    def rows(self, inputs: Sequence[str], kind: Side) -> Sequence[Sized]:
        """One row per text."""
        return self.model.encoder.encoder(kind).rows(inputs, kind)

    def run(self, rows: Sequence[Any], kind: Side) -> Representation:
        """The model's vector sets, after its transforms."""
        return self.model(self.model.encoder.encoder(kind).pad(rows, kind).to(self.device))


@final
@dataclass(frozen=True)
class PairEncoding(Encoding[Pair, Literal["pair"]]):
    """Encodes pairs of texts into scores: one vector of one component per pair, in the set `score`."""

    model: InteractiveEncoder

    def learns(self, kind: Literal["pair"]) -> bool:
        """Whether any parameter of the cross-encoder learns."""
        return any(p.requires_grad for p in self.model.parameters())

    def rows(self, inputs: Sequence[Pair], kind: Literal["pair"]) -> Sequence[Sized]:
        """One row per pair."""
        return self.model.rows([query for query, _ in inputs], [document for _, document in inputs])

    def run(self, rows: Sequence[Any], kind: Literal["pair"]) -> Representation:
        """The scores as vectors."""
        scores = self.model(self.model.pad(rows).to(self.device))
        return {"score": Vectors(scores[:, None, None], torch.ones_like(scores, dtype=torch.bool)[:, None])}


@dataclass
class _Chunk:
    rows: list[Sized]
    places: Int[Tensor, " k"]
    seed: int
    kept: Representation | None = None


@final
class EncodedBatch(Generic[Input, Kind]):
    """The vectors of a batch's inputs of one kind. `backward` passes their gradients into the model.

    Attributes:
        vectors: leaves of the loss's graph, for all inputs of all processes.
    """

    def __init__(
        self,
        encoding: Encoding[Input, Kind],
        inputs: Sequence[Input],
        kind: Kind,
        seed: int,
        alter: Alter | None = None,
        *,
        gradients: bool = True,
    ):
        self._encoding = encoding
        self._kind: Kind = kind
        self._share = encoding.processes.share(len(inputs))
        self._gradients = gradients and encoding.learns(kind)
        self._chunks = self._cut(inputs, seed, alter)
        keep = self._gradients and (encoding.chunk is None or len(self._chunks) == 1)
        parts = [self._run(chunk, gradients=keep) for chunk in self._chunks]
        if keep:
            for chunk, part in zip(self._chunks, parts, strict=True):
                chunk.kept = part
        self.vectors = self._leaves(parts, len(inputs))

    def backward(self) -> None:
        """Backpropagate the gradients of this process's share of the vectors."""
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

    def _cut(self, inputs: Sequence[Input], seed: int, alter: Alter | None) -> list[_Chunk]:
        share = self._share.tolist()
        rows = self._encoding.rows([inputs[at] for at in share], self._kind)
        if alter is not None:
            rows = [alter(at, row) for at, row in zip(share, rows, strict=True)]
        groups = self._groups([len(row) for row in rows]) or [[]]
        return [
            _Chunk(
                [rows[at] for at in places],
                torch.tensor(places, dtype=torch.int64),
                seed_of(seed, self._kind, self._encoding.processes.rank, number),
            )
            for number, places in enumerate(groups)
        ]

    def _groups(self, lengths: Sequence[int]) -> list[list[int]]:
        """Positions of the inputs to encode together, of similar length to reduce padding."""
        size = self._encoding.chunk
        if size is None:
            return token_batches(lengths, self._encoding.budget or _budget(self._encoding.device))
        order = sorted(range(len(lengths)), key=lambda at: (-lengths[at], at))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def _run(self, chunk: _Chunk, *, gradients: bool) -> Representation:
        """Encode a chunk. A second run has the same dropout."""
        torch.manual_seed(chunk.seed)
        with torch.set_grad_enabled(gradients), self._encoding.autocast():
            return self._encoding.run(chunk.rows, self._kind)

    def _leaves(self, parts: Sequence[Representation], inputs: int) -> Representation:
        """Join all chunks and processes in the order of the inputs, detached from their graphs."""
        places = torch.cat([chunk.places for chunk in self._chunks])
        order = torch.argsort(places)
        leaves = {}
        for name in parts[0]:
            joined = Vectors.concatenate([part[name] for part in parts])
            mine = joined.take(order.to(joined.values.device))
            whole = self._encoding.processes.gather(mine, inputs)
            values = whole.values.detach()
            leaves[name] = whole.with_values(values.requires_grad_(self._gradients))
        return leaves


def _budget(device: torch.device) -> int:
    """Token positions to encode at a time.

    Few on a CPU: more are not faster there and add padding. Tensors also stay below 32 MiB (12 heads on texts
    of up to 340 tokens). Above that, glibc returns memory to the system after every use unless told
    otherwise.
    """
    return 2048 if device.type == "cpu" else 65536
