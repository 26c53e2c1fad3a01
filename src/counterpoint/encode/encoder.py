"""`Encoder`: a backbone and its heads; texts in, vector sets out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.batching import EncodeOptions, default_budget, runs_in_bf16, shaped_batches
from counterpoint.encode.choice import Choice
from counterpoint.encode.evaluation import Evaluated, Evaluation
from counterpoint.encode.gate import BY_GATE
from counterpoint.encode.heads import Head
from counterpoint.encode.keyed import Keyed
from counterpoint.encode.reading import Reading
from counterpoint.encode.rows import Row
from counterpoint.encode.text import TextInput
from counterpoint.encode.token_heads import PerToken
from counterpoint.encode.tokens import Tokens
from counterpoint.errors import ConfigError, ShapeError
from counterpoint.part import Part
from counterpoint.types import Side, Span
from counterpoint.vectors import Representation, Vectors

__all__ = ["Encoder"]


@final
class Encoder(Part, Evaluated):
    """A backbone with named heads, and the text settings of each side.

    Args:
        backbone: computes the hidden states.
        heads: vector set name to the head that makes it.
        query: how queries are tokenised; plain text if None.
        document: how documents are tokenised; plain text if None.
        own: vector set name to a backbone used instead of `backbone`, so that one model holds several
            (ColBERT-λ of HIL). All backbones read the same tokens, so their tokenizers must be equal.
        identifiers: treat identifiers of several words, such as `is_empty`, `checkIfEmpty` and `date.today`,
            as whole words. Their pieces are words too, where they end at a word-piece boundary.

    Example:
        >>> encoder = Encoder(Transformer("minilm"), {"mean": Mean(normalise=True), "words": WholeWords()})
    """

    def __init__(
        self,
        backbone: Transformer,
        heads: Mapping[str, Head],
        query: TextInput | None = None,
        document: TextInput | None = None,
        own: Mapping[str, Transformer] | None = None,
        identifiers: bool = False,
    ):
        super().__init__()
        self.backbone = backbone
        self.heads = nn.ModuleDict(heads)
        self.query = query
        self.document = document
        self.own = nn.ModuleDict(own) if own else None
        self.identifiers = identifiers
        self.evaluation = Evaluation()

    def setup(self) -> Encoder:
        """Set up the backbones, fit the heads to them and check the text settings; later calls do nothing."""
        if not self.is_set_up:
            if not self.heads:
                raise ConfigError("Encoder: needs at least one head")
            self._set_up_backbones()
            for name, head in self._heads().items():
                backbone = self.backbone_of(name)
                dim = backbone.embeddings.embedding_dim if head.static else backbone.dim
                head.bind(dim, backbone.tokenizer)
                for router in head.routers if isinstance(head, Keyed) else ():
                    router.fill(backbone.dim, backbone.embeddings)
            for side in ("query", "document"):
                self._input(side).check(self.backbone.tokenizer, self.max_positions)
            super().setup()
            for name, head in self._heads().items():
                for router in head.routers if isinstance(head, Keyed) else ():
                    router.take(self.backbone_of(name).lexical_)
        return self

    @property
    def backbones(self) -> list[Transformer]:
        """All backbones without repetition: `backbone` first, then those in `own`."""
        own = [] if self.own is None else [one for one in self.own.values() if isinstance(one, Transformer)]
        return list(dict.fromkeys([self.backbone, *own]))

    def backbone_of(self, name: str) -> Transformer:
        """The backbone that feeds the head of a vector set."""
        found = self.own[name] if self.own is not None and name in self.own else self.backbone
        assert isinstance(found, Transformer), "an encoder's backbones are transformers"
        return found

    @property
    def max_positions(self) -> int:
        """The longest sequence that every backbone accepts."""
        return min(backbone.max_positions for backbone in self.backbones)

    @property
    def sets(self) -> dict[str, int]:
        """Vector set name to number of components."""
        self.setup()
        return {name: head.dim for name, head in self._heads().items()}

    def longest(self, side: Side) -> int:
        """Number of positions of a text that are read, special tokens included; the rest is cut off."""
        return self._input(side).max_length or self.setup().max_positions

    def rows(self, texts: Sequence[str], side: Side) -> list[Row]:
        """Tokenise without padding."""
        self.setup()
        return self.reading(side).rows(texts, self.backbone.tokenizer)

    def reading(self, side: Side) -> Reading:
        """The tokenisation of one side, usable without torch."""
        return self._input(side).reading(self.setup().max_positions, self.identifiers)

    def pad(self, rows: Sequence[Row], side: Side, width: int | None = None) -> Tokens:
        """Pad rows to a batch of `width` or of the longest row, with the word maps that the heads need."""
        words = [head.word_settings for head in self._heads().values() if head.word_settings is not None]
        return Tokens.pad(rows, side, pad_id=self.backbone.tokenizer.pad_id, words=words, width=width)

    def tokens(self, texts: Sequence[str], side: Side) -> Tokens:
        """Tokenise and pad texts."""
        return self.pad(self.rows(texts, side), side)

    def forward(self, tokens: Tokens) -> Representation:
        """Compute the vector set of every head.

        Autocast applies to the backbones only; heads compute in the weights' dtype. For a routed set, the
        result also holds the router's weights and, in training mode, the values for its losses (see
        `Routed.route`).
        """
        heads = self._heads()
        fed: dict[tuple[Transformer, bool], Tensor] = {}
        for source in [(self.backbone_of(name), head.static) for name, head in heads.items()]:
            if source not in fed:
                backbone, static = source
                fed[source] = backbone.embed(tokens) if static else backbone(tokens)
        made: dict[str, Vectors] = {}
        with torch.autocast(tokens.ids.device.type, enabled=False):
            for name, head in heads.items():
                backbone = self.backbone_of(name)
                states = fed[backbone, head.static].to(next(backbone.parameters()).dtype)
                if isinstance(head, Keyed):
                    made[name], more = head.route(states, tokens, backbone.embeddings.weight)
                    made |= {name + end: vectors for end, vectors in more.items()}
                else:
                    made[name] = _checked(name, head, head(states, tokens))
        return made

    def in_batches(
        self,
        texts: Sequence[str],
        side: Side,
        options: EncodeOptions,
        make: Callable[[Tokens], Representation] | None = None,
        model: Evaluated | None = None,
    ) -> Iterator[tuple[list[int], Tokens, Representation]]:
        """Encode batch by batch without gradients; yield text positions, tokens and results of each batch.

        `make` computes the result from tokens, and `model` is held in evaluation mode until the last batch is
        taken; both are this encoder if None.
        """
        make, model = make or self, model or self
        device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        short = side == "query"
        reduced = runs_in_bf16(options, device, short=short)
        *rows, empty = self.rows([*texts, ""], side)
        budget = options.budget or default_budget(device, short=short)
        if options.on_longer is not None:
            options.on_longer(sum(row.cut is not None for row in rows))
        with model.evaluation.of(model, device):
            for batch in shaped_batches([len(row) for row in rows], budget, self.max_positions):
                found, count = [rows[index] for index in batch.texts], len(batch.texts)
                tokens = self.pad([*found, *[empty] * (batch.rows - count)], side, batch.width).to(device)
                with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=reduced):
                    made = make(tokens)
                kept = {name: vectors.first(count) for name, vectors in made.items()}
                yield batch.texts, tokens.first(count), kept
                if options.progress is not None:
                    options.progress(count)

    def table(self, name: str) -> Float[Tensor, "v d"]:
        """The vector of every vocabulary id in a static set.

        Raises:
            ConfigError: the set is not static, so its rows depend on more than their ids.
        """
        if not (head := self._head(name)).static:
            raise ConfigError(f"{name!r} has no table: its vectors depend on the text around a token")
        return head.finish(self.backbone_of(name).embeddings.weight)

    def special_ids(self, name: str) -> tuple[int, ...]:
        """Ids in a set for which idf is meaningless, because no document or every document counts them.

        These are [CLS], [SEP], and ColBERT's markers and masks, which represent no text. Ids that a side
        skips (punctuation in ColBERT's documents) have no row there and would wrongly seem to be very rare
        words.
        """
        head = self._head(name)
        if not isinstance(head, PerToken):
            return ()
        tokenizer = self.backbone.tokenizer
        found = {tokenizer.pad_id, *tokenizer.prefix, *tokenizer.suffix, *(head.skip_ids_ or ())}
        for side in ("query", "document"):
            found |= self._input(side).added_ids(tokenizer)
        return tuple(sorted(found))

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """For every text, the span of each row of the set `name`, in row order."""
        head, name_of = self._head(name), self.backbone.tokenizer.name_of
        if not isinstance(head, Keyed):
            return [head.choice.spans(row, side, name_of) for row in self.rows(texts, side)]
        found: list[list[Span]] = [[] for _ in texts]
        for places, tokens, made in self.in_batches(texts, side, EncodeOptions()):
            for place, row in zip(places, head.spans_of(made[name + BY_GATE], tokens, name_of), strict=True):
                found[place] = row
        return found

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """For every text, the ids of the rows, in the order of `spans`."""
        head = self._head(name)
        if not isinstance(head, Keyed):
            return [head.choice.ids(row, side) for row in self.rows(texts, side)]
        found: list[Int[np.ndarray, " n"]] = [np.zeros(0, np.int64) for _ in texts]
        for places, _, made in self.in_batches(texts, side, EncodeOptions()):
            packed = made[name + BY_GATE].ragged()
            for at, place in enumerate(places):
                found[place] = packed.ids_of(at)
        return found

    def choice(self, name: str) -> Choice:
        """The rule that chooses the rows of a text in a set, if the text alone decides it.

        Raises:
            ConfigError: the hidden states decide it.
        """
        return self._head(name).choice

    def _set_up_backbones(self) -> None:
        if unknown := [name for name in self.own or () if name not in self.heads]:
            raise ConfigError(
                f"Encoder: `own` has a backbone for {unknown[0]!r}, but the heads are {', '.join(self.heads)}"
            )
        for backbone in self.backbones:
            backbone.setup()
        if len({backbone.tokenizer.to_text() for backbone in self.backbones}) > 1:
            raise ConfigError(
                "Encoder: the backbones have different tokenizers, but they must read the same tokens; use "
                "backbones of one vocabulary, or encode with two models"
            )

    def _head(self, name: str) -> Head:
        self.setup()
        if name not in self.heads:
            raise ConfigError(f"no vector set {name!r}; this encoder makes {', '.join(self.heads)}")
        return self._heads()[name]

    def _input(self, side: Side) -> TextInput:
        return (self.query if side == "query" else self.document) or TextInput()

    def _heads(self) -> dict[str, Head]:
        return {name: head for name, head in self.heads.items() if isinstance(head, Head)}


def _checked(name: str, head: Head, made: object) -> Vectors:
    """What a head made of a batch, if it is what the head says that it makes."""
    if not isinstance(made, Vectors):
        wrong = f"returns a {type(made).__name__}; return Vectors(values, mask, ids)"
    elif not made.values.is_floating_point() or made.mask.dtype != torch.bool:
        kinds = f"{made.values.dtype} and a mask of {made.mask.dtype}"
        wrong = f"has values of {kinds}; they must be floats and bool"
    elif (dim := made.values.shape[2]) != head.dim:
        wrong = f"has vectors of {dim} components, not {head.dim}; call `self.finish`, or define `dim`"
    elif head.pooled and made.values.shape[1] != 1:
        wrong = f"is pooled, and has {made.values.shape[1]} rows per text; return one, or leave out `pooled`"
    elif not head.pooled and made.ids is None:
        wrong = "has several rows per text without ids; give each row its id, or set `pooled = True`"
    else:
        return made
    raise ShapeError(f"{name!r}: the head {type(head).__name__} {wrong}")
