"""`SparseTerms`: a weight for every vocabulary term that a gate selects (SparTerm).

Bai et al. 2020, "SparTerm: Learning term-based sparse representation for fast text retrieval". A row is a
term: its id is the vocabulary entry, and its one component is the weight. The inner product of two texts over
the vocabulary is then `MaxSim(on, exact=True, floor0=True)`, which an inverted index of ids can compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from counterpoint.encode.gate import BY_GATE, Gate
from counterpoint.encode.keyed import Keyed, Routes, Table
from counterpoint.encode.router import BLOCK, Router
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.encode.tokens import Kind, Tokens
from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.types import Span
from counterpoint.vectors import Vectors

__all__ = ["SparseTerms"]


@final
class SparseTerms(Keyed):
    """One weight per term that the gate selects: the importance of the term in the text.

    Importance of a term is the maximum, or the sum, of ln(1 + ReLU(logit)) over the text's tokens. The gate
    selects the terms of the text. In the expanded form, it also selects other terms for which some token has
    a gate logit above 0 (from a separate head), up to a maximum number. The gate is hard; its gradient is
    that of a sigmoid (straight-through). Special tokens are not terms.

    Args:
        importance: weights terms; its activation is "log".
        gate: selects terms that are not in the text; None for the literal form.
        expansion: maximum number of such terms, for a query and for a document.
        pool: over a text's tokens.
        threshold: document rows with a weight at or below this are dropped.
        in_dim: components of a hidden state; filled in by the encoder.
    """

    special_ids_: tuple[int, ...] | None = None

    def __init__(
        self,
        importance: Router,
        gate: Router | None = None,
        expansion: Sequence[int] = (0, 32),
        pool: Literal["max", "sum"] = "max",
        threshold: float = 0.0,
        in_dim: int | None = None,
    ):
        super().__init__(in_dim=in_dim)
        if len(expansion) != 2 or min(expansion) < 0:
            raise ConfigError(f"SparseTerms: expansion must be two numbers of at least 0, found {expansion}")
        if pool not in ("max", "sum"):
            raise ConfigError(f"SparseTerms: pool must be 'max' or 'sum', found {pool!r}")
        if importance.activation != "log":
            raise ConfigError("SparseTerms: weights are ln(1 + ReLU(logit)), so set importance=Router('log')")
        self.importance = importance
        self.gate = gate
        self.expansion = expansion
        self.pool: Literal["max", "sum"] = pool
        self.threshold = Gate(threshold).threshold

    @property
    def dim(self) -> int:
        """One component: the weight."""
        return 1

    @property
    def routers(self) -> Sequence[Router]:
        """The importance router and, in the expanded form, the gate."""
        return [self.importance] if self.gate is None else [self.importance, self.gate]

    def bind(self, in_dim: int, tokenizer: Tokenizer) -> None:
        """Look up the special tokens, which are not terms."""
        super().bind(in_dim, tokenizer)
        self.special_ids_ = tuple(sorted(tokenizer.special_ids))

    def route(self, hidden: Float[Tensor, "b t h"], tokens: Tokens, table: Table | None) -> Routes:
        """Compute one row per term: terms of the text in order of id, then others."""
        table = self.needed(table)
        real = (tokens.kinds == Kind.TEXT) & tokens.attention
        hidden = hidden.masked_fill(~real[:, :, None], 0)  # padding may hold anything
        keys, there = self._literal(tokens.ids, real, len(table))
        opened = there.to(hidden.dtype)
        count = self.expansion[0 if tokens.side == "query" else 1]
        if self.gate is not None and count:
            more, logits = self._expanded(hidden, real, table, keys.masked_fill(~there, len(table)), count)
            keys, there = torch.cat([keys, more], 1), torch.cat([there, logits > 0], 1)
            soft = logits.sigmoid()
            opened = torch.cat([opened, (logits > 0).to(soft) + soft - soft.detach()], 1)
        weights = self._pooled(self.importance.logits_at(hidden, table, keys), real)
        weights = (weights * opened).masked_fill(~there, 0).unsqueeze(-1)
        keys = keys.masked_fill(~there, 0)
        kept = there if tokens.side == "query" else there & (weights[..., 0] > self.threshold)
        return Vectors(weights, kept, keys), {BY_GATE: Vectors(weights, there, keys)}

    def spans_of(self, gates: Vectors, tokens: Tokens, name_of: Callable[[int], str]) -> list[list[Span]]:
        """The first occurrence of each term in the text; "→term" without a place if there is none."""
        found: list[list[Span]] = [[] for _ in tokens.texts]
        keys = [] if gates.ids is None else gates.ids.tolist()
        places = [
            {key: tuple(place) for key, place, kind in reversed(row) if kind == Kind.TEXT and place[1]}
            for row in map(list, map(zip, tokens.ids.tolist(), tokens.spans.tolist(), tokens.kinds.tolist()))
        ]
        for at, row in gates.mask.nonzero().tolist():
            key = keys[at][row]
            start, end = places[at].get(key, (0, 0))
            text = tokens.texts[at][start:end] if end else f"→{name_of(key)}"
            found[at].append(Span(text, start, end))
        return found

    # -- steps -----------------------------------------------------------------------------------------

    def _special(self, device: torch.device) -> Int[Tensor, " s"]:
        if self.special_ids_ is None:
            raise NotFittedError(
                "SparseTerms: special tokens are unknown until the head is part of an encoder"
            )
        return torch.tensor(self.special_ids_, device=device)

    def _literal(
        self, ids: Int[Tensor, "b t"], real: Bool[Tensor, "b t"], vocabulary: int
    ) -> tuple[Int[Tensor, "b u"], Bool[Tensor, "b u"]]:
        """The distinct terms of each text in order of id, and a mask of the used columns."""
        terms = real & ~torch.isin(ids, self._special(ids.device))
        rising = ids.masked_fill(~terms, vocabulary).sort(1).values
        again = torch.zeros_like(terms)
        again[:, 1:] = rising[:, 1:] == rising[:, :-1]
        rising = rising.masked_fill(again, vocabulary).sort(1).values
        if self.training and rising.numel():  # otherwise no shape may depend on the other texts
            rising = rising[:, : int((rising < vocabulary).sum(1).max())]
        return rising.clamp(max=vocabulary - 1), rising < vocabulary

    def _expanded(
        self,
        hidden: Float[Tensor, "b t h"],
        real: Bool[Tensor, "b t"],
        table: Float[Tensor, "v e"],
        literal: Int[Tensor, "b u"],
        count: int,
    ) -> tuple[Int[Tensor, "b k"], Float[Tensor, "b k"]]:
        """The `count` terms outside the text with the highest gate logits, and these logits with gradients.

        All logits are computed without gradients, `BLOCK` of them at a time; the chosen ones are computed
        again.
        """
        assert self.gate is not None
        ruled_out = torch.zeros(len(hidden), len(table) + 1, dtype=torch.bool, device=hidden.device)
        ruled_out = ruled_out.scatter(1, literal, True)[:, :-1]
        ruled_out[:, self._special(hidden.device)] = True
        step = max(1, BLOCK // max(1, hidden.shape[1] * len(table)))
        with torch.no_grad():
            parts = zip(hidden.split(step), real.split(step), strict=True)
            best = torch.cat([_highest(self.gate.logits(states, table), there) for states, there in parts])
            keys = best.masked_fill(ruled_out, -torch.inf).topk(min(count, len(table)), dim=1).indices
            keys = keys.sort(1).values
        logits = _highest(self.gate.logits_at(hidden, table, keys), real)
        return keys, logits.masked_fill(ruled_out.gather(1, keys), -torch.inf)

    def _pooled(self, logits: Float[Tensor, "b t k"], real: Bool[Tensor, "b t"]) -> Float[Tensor, "b k"]:
        if self.pool == "max":
            return _highest(logits, real).relu().log1p()
        return logits.relu().log1p().masked_fill(~real[:, :, None], 0).sum(1)


def _highest(logits: Float[Tensor, "b t k"], real: Bool[Tensor, "b t"]) -> Float[Tensor, "b k"]:
    """The maximum over the tokens; −∞ if a text has none."""
    hollow = logits.masked_fill(~real[:, :, None], -torch.inf)
    return functional.pad(hollow, (0, 0, 0, 1), value=-torch.inf).amax(1)
