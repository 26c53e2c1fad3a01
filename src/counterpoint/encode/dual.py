"""`DualEncoder`: one encoder per side, or one for both, followed by gates and shared layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from counterpoint.encode.batching import EncodeOptions
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.evaluation import Evaluated, Evaluation
from counterpoint.encode.gate import BY_GATE, Gate
from counterpoint.encode.keyed import Keyed
from counterpoint.encode.layers import Layer
from counterpoint.encode.tokens import Kind, Tokens
from counterpoint.errors import ConfigError
from counterpoint.part import Part
from counterpoint.types import Ragged, Side, Span
from counterpoint.vectors import Representation, Vectors

__all__ = ["DualEncoder"]

Map = Callable[[str, Float[Tensor, "n d"]], Float[Tensor, "n d2"]]


@final
class DualEncoder(Part, Evaluated):
    """An encoder for queries and one for documents; if `document` is None, one encoder for both, saved once.

    Args:
        query: makes the vector sets of queries.
        document: makes the vector sets of documents; None to use `query` for both sides.
        shared: vector set name to a layer after the heads that both sides share, such as DAFT's projection
            of two different encoders into one space.
        gates: vector set name to the gate that weights and drops document rows, before a shared layer
            (ColBERTer).

    Example:
        >>> model = DualEncoder(Encoder(Transformer("minilm"), {"mean": Mean(normalise=True)}))
        >>> found = model.encode_document(["Paris is in France.", "Cats purr."])
        >>> found["mean"].values.shape
        (2, 384)
    """

    def __init__(
        self,
        query: Encoder,
        document: Encoder | None = None,
        shared: Mapping[str, Layer] | None = None,
        gates: Mapping[str, Gate] | None = None,
    ):
        super().__init__()
        self.query = query
        self.document = document
        self.shared = nn.ModuleDict(shared or {})
        self.gates = nn.ModuleDict(gates or {})
        self.evaluation = Evaluation()

    def setup(self) -> DualEncoder:
        """Set up the encoders, check that they match, and fit the shared layers to them."""
        with self.evaluation.lock:  # another thread may be setting up
            if not self.is_set_up:
                self._fit()
                super().setup()
        return self

    def _fit(self) -> None:
        if self.document is self.query:
            raise ConfigError("DualEncoder: to use one encoder for both sides, leave `document` out")
        ours, theirs = self.query.setup().sets, self.encoder("document").setup().sets
        for what, names in (("shared layer", self.shared), ("gate", self.gates)):
            if unknown := [name for name in names if name not in ours]:
                raise ConfigError(
                    f"DualEncoder: a {what} on {unknown[0]!r}, but the encoders make {', '.join(ours)}"
                )
        self._check_gates()
        if ours != theirs:
            raise ConfigError(f"DualEncoder: queries become {ours}, documents {theirs}; they must be equal")
        for name, layer in [*self._shared().items(), *self._gates().items()]:
            layer.fill(ours[name])

    def forward(self, tokens: Tokens) -> Representation:
        """Compute the vector sets of one side's texts, with gates and shared layers applied.

        For documents, a gated set also returns its gate weights as `NAME.gate`: one component for every row
        before pruning. Losses use them; `encode_document` leaves them out.
        """
        made = dict(self.encoder(tokens.side)(tokens))
        device = next(iter(made.values())).values.device.type
        with torch.autocast(device, enabled=False):
            if tokens.side == "document":
                for name, gate in self._gates().items():
                    made[name], made[name + BY_GATE] = gate(made[name])
            for name, layer in self._shared().items():
                made[name] = made[name].with_values(layer(made[name].values))
        return made

    def _shared(self) -> dict[str, Layer]:
        return {name: layer for name, layer in self.shared.items() if isinstance(layer, Layer)}

    def _gates(self) -> dict[str, Gate]:
        return {name: gate for name, gate in self.gates.items() if isinstance(gate, Gate)}

    def _check_gates(self) -> None:
        heads = self.encoder("document").heads
        if pooled := [name for name in self.gates if getattr(heads[name], "pooled", False)]:
            raise ConfigError(f"DualEncoder: {pooled[0]!r} has one row per text, and a gate could drop it")
        if routed := [name for name in self.gates if isinstance(heads[name], Keyed)]:
            raise ConfigError(
                f"DualEncoder: {routed[0]!r} needs no gate; its router weights and drops its rows"
            )

    def encoder(self, side: Side) -> Encoder:
        """The encoder of one side."""
        return self.query if side == "query" or self.document is None else self.document

    @property
    def sets(self) -> dict[str, int]:
        """Vector set name to number of components."""
        self.setup()
        return self.query.sets | {name: layer.out_dim for name, layer in self._shared().items()}

    def encode_query(
        self, texts: Sequence[str], options: EncodeOptions | None = None, then: Map | None = None
    ) -> dict[str, Ragged]:
        """Encode queries; return a dict from vector set name to vectors, in the order of the texts.

        Args:
            texts: the queries.
            options: batch size, precision, device and callbacks.
            then: called with a set's name and rows, to map them before they are converted to NumPy.
        """
        return self._encode(texts, "query", options, self.sets, then)

    def encode_document(
        self, texts: Sequence[str], options: EncodeOptions | None = None, then: Map | None = None
    ) -> dict[str, Ragged]:
        """Encode documents; see `encode_query`."""
        return self._encode(texts, "document", options, self.sets, then)

    def _encode(
        self,
        texts: Sequence[str],
        side: Side,
        options: EncodeOptions | None,
        sets: Mapping[str, int],
        then: Map | None = None,
    ) -> dict[str, Ragged]:
        """Encode some vector sets, given with their sizes; no text changes another's vectors."""
        then = then or (lambda name, rows: rows)
        parts: dict[str, list[Ragged]] = {name: [] for name in sets}
        done: list[int] = []
        options = options or EncodeOptions()
        for batch, _, made in self.encoder(side).in_batches(texts, side, options, self, self):
            done += batch
            for name, found in parts.items():
                found.append(made[name].ragged(then(name, made[name].rows())))
        order = np.argsort(np.array(done, dtype=np.int64))
        for name, found in parts.items():
            if not found:  # no texts
                found.append(Ragged.from_list([], dim=then(name, torch.zeros(0, sets[name])).shape[1]))
        return {name: Ragged.concatenate(found).take(order) for name, found in parts.items()}

    def encode_stream(
        self, chunks: Iterable[Sequence[str]], options: EncodeOptions | None = None
    ) -> Iterator[dict[str, Ragged]]:
        """Encode a corpus that does not fit in memory, one chunk (a few thousand documents) at a time."""
        for chunk in chunks:
            yield self.encode_document(chunk, options)

    def encode_layers(
        self, texts: Sequence[str], side: Side, options: EncodeOptions | None = None
    ) -> Iterator[tuple[list[int], list[Ragged]]]:
        """Yield per batch the positions of the texts and their hidden states at each layer of the backbone.

        Layer 0 is the input of the first layer. Every position that is not padding has a row with its
        vocabulary id. That includes [CLS], [SEP] and ColBERT's [MASK].
        """
        encoder = self.setup().encoder(side)

        def make(tokens: Tokens) -> Representation:
            states, real = encoder.backbone.hidden_states(tokens), tokens.kinds != Kind.PADDING
            return {str(number): Vectors(layer, real, tokens.ids) for number, layer in enumerate(states)}

        for batch, _, made in encoder.in_batches(texts, side, options or EncodeOptions(), make, self):
            yield batch, [vectors.ragged() for vectors in made.values()]

    def gate_weights(self, texts: Sequence[str], name: str, options: EncodeOptions | None = None) -> Ragged:
        """Weight r of a gate or router for each document row, in the order of `spans`, with the row's id.

        `encode_document` keeps the rows with r above the threshold.

        Raises:
            ConfigError: the set has no gate and no router.
        """
        self.setup()
        heads = self.encoder("document").heads
        weighed = [*self.gates, *(other for other, head in heads.items() if isinstance(head, Keyed))]
        if name not in weighed:
            raise ConfigError(f"no gate on {name!r}; there is one on {', '.join(weighed) or 'none'}")
        return self._encode(texts, "document", options, {name + BY_GATE: 1})[name + BY_GATE]

    def special_ids(self, name: str) -> tuple[int, ...]:
        """Ids in a set that represent no text, on either side."""
        self.setup()
        return tuple(sorted({*self.query.special_ids(name), *self.encoder("document").special_ids(name)}))

    def table(self, name: str, side: Side = "document") -> Float[Tensor, "v d"]:
        """The vector of every vocabulary id in a static set, after its shared layer.

        Raises:
            ConfigError: the set is not static, or it has a gate on document rows.
        """
        self.setup()
        if name in self.gates:
            raise ConfigError(f"{name!r} has no table: a gate weights and drops its rows")
        values = self.encoder(side).table(name)
        return self._shared()[name](values) if name in self.shared else values

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """For every text, the span of each row of the set `name`, in row order.

        This includes the rows that a gate drops.
        """
        self.setup()
        return self.encoder(side).spans(texts, name, side)

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """For every text, the ids of the rows, in the order of `spans`, including rows that a gate drops."""
        self.setup()
        return self.encoder(side).row_ids(texts, name, side)
