"""`Encoder` (a backbone and its heads) and `DualEncoder` (one for each side): texts in, vector sets out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.batching import EncodeOptions, encode, encode_layers, in_batches
from counterpoint.encode.gate import BY_GATE, Gate
from counterpoint.encode.heads import Head
from counterpoint.encode.keyed import Keyed
from counterpoint.encode.layers import Layer
from counterpoint.encode.text import TextInput
from counterpoint.encode.token_heads import PerToken
from counterpoint.encode.tokens import Row, Tokens
from counterpoint.errors import ConfigError
from counterpoint.part import Part
from counterpoint.types import Ragged, Side, Span
from counterpoint.vectors import Representation, Vectors

__all__ = ["DualEncoder", "Encoder"]


@final
class Encoder(Part):
    """A backbone with named heads, and how texts of each side are put before it.

    Args:
        backbone: makes the hidden states.
        heads: each makes one vector set, under its name.
        query: how queries are tokenised; as plain text where None.
        document: how documents are.

    Example:
        >>> encoder = Encoder(Transformer("minilm"), {"mean": Mean(normalise=True), "words": WholeWords()})
    """

    def __init__(
        self,
        backbone: Transformer,
        heads: Mapping[str, Head],
        query: TextInput | None = None,
        document: TextInput | None = None,
    ):
        super().__init__()
        self.backbone = backbone
        self.heads = nn.ModuleDict(heads)
        self.query = query
        self.document = document

    def setup(self) -> Encoder:
        """Set up the backbone, fit the heads to it, check the texts' settings; a second call does nothing."""
        if not self.is_set_up:
            if not self.heads:
                raise ConfigError("Encoder: needs at least one head")
            self.backbone.setup()
            for head in self._heads().values():
                fed = self.backbone.embeddings.embedding_dim if head.static else self.backbone.dim
                head.bind(fed, self.backbone.tokenizer)
                for router in head.routers if isinstance(head, Keyed) else ():
                    router.fill(self.backbone.dim, self.backbone.embeddings)
            for side in ("query", "document"):
                self._input(side).check(self.backbone.tokenizer, self.backbone.max_positions)
            super().setup()
            for head in self._heads().values():
                for router in head.routers if isinstance(head, Keyed) else ():
                    router.take(self.backbone.lexical_)
        return self

    @property
    def sets(self) -> dict[str, int]:
        """Name and number of components of every vector set."""
        self.setup()
        return {name: head.dim for name, head in self._heads().items()}

    def rows(self, texts: Sequence[str], side: Side) -> list[Row]:
        """Tokenise without padding."""
        self.setup()
        return self._input(side).rows(texts, self.backbone.tokenizer, self.backbone.max_positions)

    def pad(self, rows: Sequence[Row], side: Side) -> Tokens:
        """Pad rows to a batch, with the word maps that the heads need."""
        words = [head.word_settings for head in self._heads().values() if head.word_settings is not None]
        return Tokens.pad(rows, side, pad_id=self.backbone.tokenizer.pad_id, words=words)

    def tokens(self, texts: Sequence[str], side: Side) -> Tokens:
        """Tokenise and pad."""
        return self.pad(self.rows(texts, side), side)

    def forward(self, tokens: Tokens) -> Representation:
        """Every head's vector set; autocast ends with the backbone, heads use the weights' dtype.

        A routed set has its router's weights beside it, and more in training mode (see `Routed.route`).
        """
        heads = self._heads()
        fed = {
            static: self.backbone.embed(tokens) if static else self.backbone(tokens)
            for static in {head.static for head in heads.values()}
        }
        made: dict[str, Vectors] = {}
        with torch.autocast(tokens.ids.device.type, enabled=False):
            dtype = next(self.backbone.parameters()).dtype
            for name, head in heads.items():
                states = fed[head.static].to(dtype)
                if isinstance(head, Keyed):
                    made[name], beside = head.route(states, tokens, self.backbone.embeddings.weight)
                    made |= {name + end: vectors for end, vectors in beside.items()}
                else:
                    made[name] = head(states, tokens)
        return made

    def table(self, name: str) -> Float[Tensor, "v d"]:
        """The vector of every vocabulary id in a static set.

        Raises:
            ConfigError: the set's rows are not decided by their ids alone.
        """
        head = self._head(name)
        if not head.static:
            raise ConfigError(f"{name!r} has no table: its vectors depend on the text around a token")
        return head.finish(self.backbone.embeddings.weight)

    def special_ids(self, name: str) -> tuple[int, ...]:
        """Ids of a set's rows that stand for nothing in a text: [CLS], [SEP], ColBERT's markers and masks."""
        if not isinstance(self._head(name), PerToken):
            return ()
        tokenizer = self.backbone.tokenizer
        found = {tokenizer.pad_id, *tokenizer.prefix, *tokenizer.suffix}
        for side in ("query", "document"):
            found |= self._input(side).added_ids(tokenizer)
        return tuple(sorted(found))

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """For every text, the piece of it that each row of the set `name` stands for, row by row."""
        head, name_of = self._head(name), self.backbone.tokenizer.name_of
        if not isinstance(head, Keyed):
            return head.spans(self.tokens(texts, side), name_of)
        found: list[list[Span]] = [[] for _ in texts]
        for places, tokens, made in in_batches(self, self, texts, side, EncodeOptions(), self):
            spans = head.spans_of(made[name + BY_GATE], tokens, name_of)
            for place, row in zip(places, spans, strict=True):
                found[place] = row
        return found

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """For every text, the ids of the rows that `spans` tells of."""
        head = self._head(name)
        if not isinstance(head, Keyed):
            return head.row_ids(self.tokens(texts, side))
        found: list[Int[np.ndarray, " n"]] = [np.zeros(0, np.int64) for _ in texts]
        for places, _, made in in_batches(self, self, texts, side, EncodeOptions(), self):
            packed = made[name + BY_GATE].ragged()
            for at, place in enumerate(places):
                found[place] = packed.ids_of(at)
        return found

    def _head(self, name: str) -> Head:
        self.setup()
        if name not in self.heads:
            raise ConfigError(f"no vector set {name!r}; this encoder makes {', '.join(self.heads)}")
        return self._heads()[name]

    def _input(self, side: Side) -> TextInput:
        return (self.query if side == "query" else self.document) or TextInput()

    def _heads(self) -> dict[str, Head]:
        return {name: head for name, head in self.heads.items() if isinstance(head, Head)}


@final
class DualEncoder(Part):
    """An encoder for queries and one for documents; one for both, and saved once, where `document` is None.

    Args:
        query: makes the queries' vector sets.
        document: makes the documents'; None for one encoder on both sides.
        shared: by vector set, a layer behind both encoders' heads that is the same on both sides, such as
            DAFT's projection of two different encoders into one space.
        gates: by vector set, what weighs and drops rows of documents, before a shared layer (ColBERTer).

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

    def setup(self) -> DualEncoder:
        """Set up the encoders, check that they fit, and fit the shared layers to them."""
        if not self.is_set_up:
            if self.document is self.query:
                raise ConfigError("DualEncoder: to use one encoder for both sides, leave `document` out")
            ours, theirs = self.query.setup().sets, self.encoder("document").setup().sets
            for what, names in (("shared layer", self.shared), ("gate", self.gates)):
                unknown = [name for name in names if name not in ours]
                if unknown:
                    raise ConfigError(
                        f"DualEncoder: a {what} on {unknown[0]!r}, the encoders make {', '.join(ours)}"
                    )
            self._check_gates()
            if ours != theirs:
                raise ConfigError(
                    f"DualEncoder: queries become {ours}, documents {theirs}; they must be equal"
                )
            for name, layer in [*self._shared().items(), *self._gates().items()]:
                layer.fill(ours[name])
            super().setup()
        return self

    def forward(self, tokens: Tokens) -> Representation:
        """The vector sets of one side's texts, gates and shared layers applied.

        For documents, a gated set has its gate's weights beside it, under its name and `.gate`: one component
        for every row that there was. They are for losses; `encode_document` leaves them out.
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
        pooled = [name for name in self.gates if getattr(heads[name], "pooled", False)]
        if pooled:
            raise ConfigError(f"DualEncoder: {pooled[0]!r} has one row a text; a gate could leave none")
        routed = [name for name in self.gates if isinstance(heads[name], Keyed)]
        if routed:
            raise ConfigError(
                f"DualEncoder: {routed[0]!r} needs no gate; its router weighs and drops its rows"
            )

    def encoder(self, side: Side) -> Encoder:
        """The encoder of one side."""
        return self.query if side == "query" or self.document is None else self.document

    @property
    def sets(self) -> dict[str, int]:
        """Name and number of components of every vector set."""
        self.setup()
        layers = self._shared()
        return {
            name: layers[name].out_dim if name in layers else dim for name, dim in self.query.sets.items()
        }

    def encode_query(self, texts: Sequence[str], options: EncodeOptions | None = None) -> dict[str, Ragged]:
        """Vector sets of queries, by name, in the order of the texts."""
        self.setup()
        return encode(self, texts, "query", options or EncodeOptions())

    def encode_document(
        self, texts: Sequence[str], options: EncodeOptions | None = None
    ) -> dict[str, Ragged]:
        """Vector sets of documents, by name, in the order of the texts."""
        self.setup()
        return encode(self, texts, "document", options or EncodeOptions())

    def encode_stream(
        self, chunks: Iterable[Sequence[str]], options: EncodeOptions | None = None
    ) -> Iterator[dict[str, Ragged]]:
        """Vector sets of a corpus that memory cannot hold, chunk (a few thousand documents) by chunk."""
        for chunk in chunks:
            yield self.encode_document(chunk, options)

    def encode_layers(
        self, texts: Sequence[str], side: Side, options: EncodeOptions | None = None
    ) -> Iterator[tuple[list[int], list[Ragged]]]:
        """Hidden states by batch: positions of the texts, and their states for each layer of the backbone.

        Layer 0 is what goes into the first one. There is a row for every position that is not padding, [CLS],
        [SEP] and ColBERT's [MASK] included, with its vocabulary id.
        """
        yield from encode_layers(self, texts, side, options or EncodeOptions())

    def gate_weights(self, texts: Sequence[str], name: str, options: EncodeOptions | None = None) -> Ragged:
        """What a gate or a router makes of each row of documents that `spans` tells of: r, and the row's id.

        Rows with r above the threshold are those that `encode_document` keeps.

        Raises:
            ConfigError: the set has no gate and no router.
        """
        self.setup()
        heads = self.encoder("document").heads
        weighed = [*self.gates, *(other for other, head in heads.items() if isinstance(head, Keyed))]
        if name not in weighed:
            raise ConfigError(f"no gate on {name!r}; there is one on {', '.join(weighed) or 'none'}")
        gate = name + BY_GATE
        return encode(self, texts, "document", options or EncodeOptions(), {gate: 1})[gate]

    def special_ids(self, name: str) -> tuple[int, ...]:
        """Ids of a set's rows that stand for nothing in a text, on either side."""
        self.setup()
        return tuple(sorted({*self.query.special_ids(name), *self.encoder("document").special_ids(name)}))

    def table(self, name: str, side: Side = "document") -> Float[Tensor, "v d"]:
        """The vector of every vocabulary id in a static set, behind its shared layer.

        Raises:
            ConfigError: the set is not static, or a gate weighs and drops its documents' rows.
        """
        self.setup()
        if name in self.gates:
            raise ConfigError(f"{name!r} has no table: a gate weighs and drops its rows")
        values = self.encoder(side).table(name)
        return self._shared()[name](values) if name in self.shared else values

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """For every text, the piece of it that each row of the set `name` stands for, row by row.

        Rows that a gate drops are among them.
        """
        self.setup()
        return self.encoder(side).spans(texts, name, side)

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """For every text, the ids of the rows that `spans` tells of: those that a gate drops, too."""
        self.setup()
        return self.encoder(side).row_ids(texts, name, side)
