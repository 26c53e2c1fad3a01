"""`InteractiveEncoder`: a cross-encoder, which reads query and document together and gives one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Encoding
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.batching import EncodeOptions, default_budget, runs_in_bf16, shaped_batches
from counterpoint.encode.evaluation import Evaluation
from counterpoint.encode.layers import Layer
from counterpoint.errors import ConfigError, DataError, ShapeError
from counterpoint.part import Part

if TYPE_CHECKING:
    from counterpoint.search import Run

__all__ = ["InteractiveEncoder", "PairRow", "Pairs"]


@dataclass(frozen=True)
class PairRow:
    """One tokenised pair before padding.

    Attributes:
        ids: vocabulary ids.
        segments: segment ids, as the tokenizer numbers them.
        texts: 0 for a token of the query, 1 for one of the document, -1 for special tokens.
        cut: whether the pair was longer.
    """

    ids: Int[np.ndarray, " t"]
    segments: Int[np.ndarray, " t"]
    texts: Int[np.ndarray, " t"]
    cut: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def masked(self, at: Int[np.ndarray, " n"], mask_id: int) -> PairRow:
        """Copy the row with mask tokens at some positions."""
        ids = self.ids.copy()
        ids[at] = mask_id
        return replace(self, ids=ids)

    def without(self, at: Int[np.ndarray, " n"]) -> PairRow:
        """Copy the row without some positions."""
        left = (np.delete(array, at) for array in (self.ids, self.segments, self.texts))
        return PairRow(*left, cut=self.cut)


@dataclass(frozen=True)
class Pairs:
    """A batch of tokenised pairs, padded on the right.

    Attributes:
        ids: vocabulary ids.
        segments: 0 for the query, 1 for the document, if the tokenizer gives segment ids.
        attention: True where there is no padding.
    """

    ids: Int[Tensor, "b t"]
    segments: Int[Tensor, "b t"]
    attention: Bool[Tensor, "b t"]

    def to(self, device: torch.device | str) -> Pairs:
        """Copy the pairs to another device."""
        return Pairs(self.ids.to(device), self.segments.to(device), self.attention.to(device))


@final
class InteractiveEncoder(Part):
    """Cross-encoder: [CLS] query [SEP] document [SEP] through a transformer, then a layer on [CLS].

    monoBERT (Nogueira and Cho 2019). The score is the layer's output without a sigmoid. The order is the
    same, and score margins stay meaningful for a student.

    A pair that is too long loses the end of its document. If the query alone fills the sequence, the longer
    of the two is cut first, down to half each.

    Args:
        backbone: computes the hidden states.
        head: maps the hidden state of [CLS] to one component; use `Linear(1)` for a new one.
        max_length: maximum number of positions, special tokens included; the backbone's limit if None.
        segments: pass segment ids to a backbone that has segment embeddings.

    Example:
        >>> judge = InteractiveEncoder(Transformer("minilm"), Linear(1))
        >>> judge.scores(["capital of France"], ["Paris is the capital of France."]).shape
        torch.Size([1])
    """

    def __init__(
        self, backbone: Transformer, head: Layer, max_length: int | None = None, segments: bool = True
    ):
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.max_length = max_length
        self.segments = segments
        self.evaluation = Evaluation()

    def setup(self) -> InteractiveEncoder:
        """Set up the backbone, fit the head to it and check the length; later calls do nothing."""
        if not self.is_set_up:
            self.backbone.setup()
            self.head.fill(self.backbone.dim)
            super().setup()
            self._check()
        return self

    @property
    def longest(self) -> int:
        """Maximum number of word-pieces read of a pair, including special ones."""
        return self.max_length or self.backbone.max_positions

    def pairs(self, queries: Sequence[str], documents: Sequence[str]) -> Pairs:
        """Tokenise and pad pairs: the first query with the first document, and so on.

        Raises:
            ShapeError: the numbers of queries and documents differ.
        """
        return self.pad(self.rows(queries, documents))

    def rows(self, queries: Sequence[str], documents: Sequence[str]) -> list[PairRow]:
        """Tokenise each pair and cut it to `max_length`.

        Raises:
            ShapeError: the numbers of queries and documents differ.
        """
        if len(queries) != len(documents):
            raise ShapeError(
                f"{len(queries)} queries and {len(documents)} documents; give one of each per pair"
            )
        self.setup()
        texts = list(zip(queries, documents, strict=True))
        return [_cut(encoding, self.longest) for encoding in self.backbone.tokenizer.encode_pairs(texts)]

    def pad(self, rows: Sequence[PairRow], width: int | None = None) -> Pairs:
        """Pad rows on the right, to `width` or to the longest row, and stack them."""
        if not rows:
            nothing = torch.zeros(0, 0, dtype=torch.int64)
            return Pairs(nothing, nothing, nothing.bool())
        ids = pad_sequence([torch.from_numpy(row.ids) for row in rows], True, self.backbone.tokenizer.pad_id)
        segments = pad_sequence([torch.from_numpy(row.segments) for row in rows], True, 0)
        if width is not None:
            missing = (0, width - ids.shape[1])
            ids = functional.pad(ids, missing, value=self.backbone.tokenizer.pad_id)
            segments = functional.pad(segments, missing)
        lengths = torch.tensor([len(row) for row in rows])
        return Pairs(ids, segments, torch.arange(ids.shape[1]) < lengths[:, None])

    def forward(self, pairs: Pairs) -> Float[Tensor, " b"]:
        """Compute one score per pair, with gradients; autocast applies to the backbone only."""
        several = getattr(self.backbone.model_.config, "type_vocab_size", 0) > 1  # one embedding has no use
        segments = {"token_type_ids": pairs.segments} if self.segments and several else {}
        hidden = self.backbone.model_(input_ids=pairs.ids, attention_mask=pairs.attention.long(), **segments)
        first = hidden.last_hidden_state[:, 0]
        with torch.autocast(first.device.type, enabled=False):
            return self.head(first.to(next(self.head.parameters()).dtype))[:, 0]

    def scores(
        self, queries: Sequence[str], documents: Sequence[str], options: EncodeOptions | None = None
    ) -> Float[Tensor, " b"]:
        """Score the first query with the first document, and so on: float32 on the CPU, without gradients.

        Pairs are batched by length; a pair's score does not depend on the other pairs.

        Raises:
            ShapeError: the numbers of queries and documents differ.
        """
        options = options or EncodeOptions()
        device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        reduced = runs_in_bf16(options, device)
        rows, (empty,) = self.rows(queries, documents), self.rows([""], [""])
        budget = options.budget or default_budget(device)
        if options.on_longer is not None:
            options.on_longer(sum(row.cut for row in rows))
        scores = torch.zeros(len(rows))
        with self.evaluation.of(self, device):
            for batch in shaped_batches([len(row) for row in rows], budget, self.backbone.max_positions):
                count = len(batch.texts)
                filled = [*(rows[at] for at in batch.texts), *[empty] * (batch.rows - count)]
                pairs = self.pad(filled, batch.width).to(device)
                with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=reduced):
                    found = self(pairs)
                scores[batch.texts] = found[:count].float().cpu()
                if options.progress is not None:
                    options.progress(count)
        return scores

    def rerank(
        self,
        run: Run,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        k: int = 100,
        options: EncodeOptions | None = None,
    ) -> Run:
        """Rerank the best `k` documents of every query of a run; the result holds only these.

        Args:
            run: a first-stage run.
            queries: id to text.
            documents: id to text.
            k: number of documents per query.
            options: how to compute; `progress` receives the number of pairs, and `on_longer`, at the end, how
                many of them were truncated.

        Raises:
            ConfigError: `k` is below 1.
            DataError: a query or a document of the run has no text.
        """
        if k < 1:
            raise ConfigError(f"k must be at least 1, found {k}")
        ranked = {query: [document for document, _ in run[query][:k]] for query in run}
        missing = [f"query {query!r}" for query in ranked if query not in queries]
        unknown = dict.fromkeys(d for found in ranked.values() for d in found if d not in documents)
        missing += [f"document {d!r}" for d in unknown]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise DataError(f"no text is known for {', '.join(missing[:3])}{more}, which the run ranks")
        options, longer, results = options or EncodeOptions(), list[int](), {}
        for query, found in ranked.items():
            texts = [documents[document] for document in found]
            asked = [queries[query]] * len(found)
            scores = self.scores(asked, texts, replace(options, on_longer=longer.append))
            results[query] = dict(zip(found, scores.tolist(), strict=True))
        if options.on_longer is not None:
            options.on_longer(sum(longer))
        provenance = {"tag": "counterpoint-interactive", "reranked": k, "first": dict(run.provenance)}
        return type(run)(results, provenance=provenance)  # not imported: search depends on this module

    def _check(self) -> None:
        tokenizer, limit, faults = self.backbone.tokenizer, self.backbone.max_positions, []
        least = len(tokenizer.encode_pairs([("", "")])[0].ids) + 2
        if self.head.out_dim != 1:
            faults.append(f"the head gives {self.head.out_dim} components, but a score has one")
        if self.max_length is not None and not least <= self.max_length <= limit:
            faults.append(
                f"max_length is {self.max_length}; special tokens and a token of each text need {least}, "
                f"the backbone takes at most {limit} positions"
            )
        if not tokenizer.prefix:
            faults.append("the tokenizer adds no first token such as [CLS] for the head to read")
        if faults:
            raise ConfigError(*[f"InteractiveEncoder: {fault}" for fault in faults])


def _cut(encoding: Encoding, longest: int) -> PairRow:
    """Cut a pair to at most `longest` positions; special tokens always stay."""
    ids, segments = np.array(encoding.ids, dtype=np.int64), np.array(encoding.type_ids, dtype=np.int64)
    of_text = np.array([-1 if text is None else text for text in encoding.sequence_ids])
    if len(ids) <= longest:
        return PairRow(ids, segments, of_text)
    query, document = np.flatnonzero(of_text == 0), np.flatnonzero(of_text == 1)
    room = longest - int((of_text < 0).sum())
    kept = room - len(query) if len(query) < room else min(len(document), room // 2)
    of_text[document[kept:]] = -2
    of_text[query[room - kept :]] = -2
    left = of_text > -2
    return PairRow(ids[left], segments[left], of_text[left], cut=True)
