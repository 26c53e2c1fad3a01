"""`Routed`: token vectors under keys of the vocabulary that a router chooses (CITADEL).

Li et al. 2023, "CITADEL: conditional token interaction via dynamic lexical routing". A row is a pair of a
token and one of its keys: its id is the key, its vector that of the token times the router's weight. Then the
paper's score, the product of similarity and both weights where keys agree and 0 elsewhere, is
`MaxSim(on, exact=True, floor0=True)`, and an inverted index of ids serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from counterpoint.encode.gate import BY_GATE, Gate
from counterpoint.encode.keyed import Keyed
from counterpoint.encode.layers import Layer
from counterpoint.encode.tokens import Tokens
from counterpoint.errors import ArtifactError, ConfigError, NotFittedError
from counterpoint.part import Part
from counterpoint.types import Span
from counterpoint.vectors import Vectors

__all__ = ["BY_LOAD", "BY_ROUTER", "Routed", "Router"]

BY_ROUTER = ".router"
"""Behind a routed set's name: one row a text, the router's whole vector, its maximum over the tokens."""
BY_LOAD = ".load"
"""Behind a routed set's name: two rows a text, by key the tokens sent to it, and the sum of their softmax."""

BLOCK = 2**25
"""Logits held at a time: 128 MiB of float32."""


class Choice(NamedTuple):
    """What a router chose for the tokens of some texts."""

    keys: Int[Tensor, "b t k"]
    weights: Float[Tensor, "b t k"]
    pooled: Float[Tensor, "b v"] | None
    shares: Float[Tensor, "b v"] | None


@final
class Router(Part):
    """Weights of a token over the vocabulary: the head of a masked-language model.

    logits = E · LayerNorm(GELU(W h + b)) + c, with E the backbone's own table, which is not stored twice.

    Args:
        activation: "log": weights are ln(1 + ReLU(logits)), CITADEL's. "softmax": they are the softmax of the
            logits over the vocabulary, CITADEL-HIL's.
        start: "checkpoint": W, b, c and the layer norm are those of the backbone's checkpoint, which must
            have a masked-language-model head. "new": W is the identity, b is 0, c is `bias`. A last hidden
            state still resembles its token's embedding.
        bias: what c is at first, where `start` is "new". At −5 most logits begin below 0, as those of
            masked-language models are.
        in_dim: components of a hidden state; filled in by the encoder, as are the next two.
        out_dim: components of a word embedding.
        vocabulary: number of word embeddings.
    """

    def __init__(
        self,
        activation: Literal["log", "softmax"] = "log",
        start: Literal["checkpoint", "new"] = "checkpoint",
        bias: float = -5.0,
        in_dim: int | None = None,
        out_dim: int | None = None,
        vocabulary: int | None = None,
    ):
        super().__init__()
        if activation not in ("log", "softmax"):
            raise ConfigError(f"Router: activation must be 'log' or 'softmax', found {activation!r}")
        if start not in ("checkpoint", "new"):
            raise ConfigError(f"Router: start must be 'checkpoint' or 'new', found {start!r}")
        self.activation: Literal["log", "softmax"] = activation
        self.start: Literal["checkpoint", "new"] = start
        self.bias = bias
        self.in_dim = in_dim
        self.out_dim = out_dim
        self.vocabulary = vocabulary

    def fill(self, in_dim: int, table: nn.Embedding) -> None:
        """Take over the sizes of the backbone, or check that they are those declared."""
        sizes = {"in_dim": in_dim, "out_dim": table.embedding_dim, "vocabulary": table.num_embeddings}
        for name, found in sizes.items():
            if getattr(self, name) is None:
                setattr(self, name, found)
            if getattr(self, name) != found:
                raise ConfigError(f"Router: {name} is {getattr(self, name)}, the backbone's is {found}")

    def _allocate(self) -> None:
        if self.in_dim is None or self.out_dim is None or self.vocabulary is None:
            raise NotFittedError("Router: its sizes are not known before it is part of an encoder")
        self.dense_ = nn.Linear(self.in_dim, self.out_dim)
        self.norm_ = nn.LayerNorm(self.out_dim, eps=1e-12)
        self.bias_ = nn.Parameter(torch.full((self.vocabulary,), self.bias))
        nn.init.eye_(self.dense_.weight)
        nn.init.zeros_(self.dense_.bias)

    @torch.no_grad()
    def take(self, weights: Mapping[str, Tensor] | None) -> None:
        """Begin with a masked-language-model head, as `lexical_head` names its weights.

        Args:
            weights: None where the backbone was not read from a checkpoint but will be filled from a saved
                model, as this will; empty where the checkpoint has no such head.

        Raises:
            ArtifactError: there is none, and `start` asks for it, or it does not fit.
        """
        if self.start == "new" or weights is None:
            return
        if not weights:
            raise ArtifactError(
                "Router: the backbone's checkpoint has no masked-language-model head (tied to its word "
                "embeddings, with GELU) to start from; declare Router(start='new') to train one from scratch"
            )
        for name, own in self.named_parameters():
            if own.shape != weights[name].shape:
                shapes = f"{tuple(weights[name].shape)}, expected {tuple(own.shape)}"
                raise ArtifactError(f"Router: the checkpoint's {name} has shape {shapes}")
            own.copy_(weights[name])

    def logits(self, hidden: Float[Tensor, "*b h"], table: Float[Tensor, "v e"]) -> Float[Tensor, "*b v"]:
        """One number for every vocabulary entry."""
        return functional.linear(self._fed(hidden), table, self.bias_)

    def logits_at(
        self, hidden: Float[Tensor, "b t h"], table: Float[Tensor, "v e"], keys: Int[Tensor, "b k"]
    ) -> Float[Tensor, "b t k"]:
        """One number for every token and each of its text's keys."""
        return self._fed(hidden) @ table[keys].mT + self.bias_[keys].unsqueeze(1)

    def _fed(self, hidden: Float[Tensor, "*b h"]) -> Float[Tensor, "*b e"]:
        return self.norm_(functional.gelu(self.dense_(hidden)))

    def forward(
        self,
        hidden: Float[Tensor, "b t h"],
        real: Bool[Tensor, "b t"],
        table: Float[Tensor, "v e"],
        count: int,
        block: int = BLOCK,
    ) -> Choice:
        """The `count` highest keys of every token, rising, with their weights.

        Texts are taken so many at a time that `block` logits are held (or those of one text, if more); under
        autograd, a block that is not the only one is computed again on the way back. In training mode, there
        are by text the maximum of ln(1 + ReLU(logits)) over the tokens, and the sum of the softmax over them.
        """
        step = max(1, block // max(1, hidden.shape[1] * len(table)))
        again = torch.is_grad_enabled() and step < len(hidden)

        def choose(states: Tensor, there: Tensor) -> Choice:
            if again:
                return checkpoint(self._choose, states, there, table, count, use_reentrant=False)
            return self._choose(states, there, table, count)

        parts = [choose(*some) for some in zip(hidden.split(step), real.split(step), strict=True)]
        if len(parts) == 1:
            return parts[0]
        pooled, shares = (
            torch.cat([part for part in column if part is not None]) if self.training else None
            for column in ([part.pooled for part in parts], [part.shares for part in parts])
        )
        keys, weights = (torch.cat(column) for column in list(zip(*parts, strict=True))[:2])
        return Choice(keys, weights, pooled, shares)

    def _choose(self, hidden: Tensor, real: Tensor, table: Tensor, count: int) -> Choice:
        logits, hollow = self.logits(hidden, table), ~real[:, :, None]
        highest, keys = logits.topk(min(count, len(table)), dim=-1)
        # By number: rounding may swap two keys of nearly one weight, and would swap their rows.
        keys, order = keys.sort(dim=-1)
        highest = highest.gather(-1, order)
        if self.activation == "log":
            weights = highest.relu().log1p()
        else:
            weights = (highest - logits.logsumexp(-1, keepdim=True)).exp()
        weights = weights.masked_fill(hollow, 0)
        if not self.training:
            return Choice(keys, weights, None, None)
        shares = logits.softmax(-1).masked_fill(hollow, 0).sum(1)
        if not hidden.shape[1]:
            return Choice(keys, weights, shares, shares)  # zeros: no token to take a maximum over
        best = logits.masked_fill(hollow, -torch.inf).max(1).values
        return Choice(keys, weights, best.relu().log1p(), shares)


@final
class Routed(Keyed):
    """A row for every token and key that a router sends it to: weight · vector, its id the key (CITADEL).

    Attended tokens but the first, [CLS], are routed. Documents' rows of weight 0 are dropped.

    Args:
        router: chooses and weighs keys.
        keys: how many a token of a query has, and one of a document.
        threshold: rows of documents with a weight at or below this are dropped. Train with 0; the paper's
            released index keeps those above 0.9.
        projection: a layer behind the hidden state.
        normalise: scale to unit length, before the weight (CITADEL-HIL).
        in_dim: components of a hidden state; filled in by the encoder.
    """

    def __init__(
        self,
        router: Router,
        keys: Sequence[int] = (1, 5),
        threshold: float = 0.0,
        projection: Layer | None = None,
        normalise: bool = False,
        in_dim: int | None = None,
    ):
        super().__init__()
        if len(keys) != 2 or min(keys) < 1:
            raise ConfigError(f"Routed: keys are two numbers, each at least 1, found {keys}")
        self.router = router
        self.keys = keys
        self.threshold = Gate(threshold).threshold
        self.projection = projection
        self.normalise = normalise
        self.in_dim = in_dim

    @property
    def routers(self) -> Sequence[Router]:
        """The one."""
        return [self.router]

    def route(
        self, hidden: Float[Tensor, "b t h"], tokens: Tokens, table: Float[Tensor, "v e"] | None
    ) -> tuple[Vectors, dict[str, Vectors]]:
        """One row a token and key, and what stands beside them under the ends of names.

        `BY_GATE`: the weight of every token and key, dropped ones too, with the keys as ids. In training mode
        `BY_ROUTER` and `BY_LOAD`, which losses on the router go by.
        """
        table = self.needed(table)
        count = self.keys[0 if tokens.side == "query" else 1]
        real = tokens.attention[:, 1:]
        hidden = hidden[:, 1:].masked_fill(~real[:, :, None], 0)  # what stands at padding may be anything
        chosen = self.router(hidden, real, table, count)
        weights = chosen.weights.flatten(1).unsqueeze(-1)
        rows = self.finish(hidden).repeat_interleave(chosen.keys.shape[2], dim=1)
        there = real.repeat_interleave(chosen.keys.shape[2], dim=1)
        kept = there if tokens.side == "query" else there & (weights[..., 0] > self.threshold)
        keys = chosen.keys.flatten(1).masked_fill(~there, 0)
        made, gates = Vectors(rows * weights, kept, keys), Vectors(weights, there, keys)
        if chosen.pooled is None or chosen.shares is None:
            return made, {BY_GATE: gates}
        sent = torch.zeros_like(chosen.shares).scatter_add_(
            1, keys, (weights.detach()[..., 0] > 0).to(weights)
        )
        load = torch.stack([sent, chosen.shares], 1)
        whole = torch.ones_like(load[..., 0], dtype=torch.bool)
        return made, {
            BY_GATE: gates,
            BY_ROUTER: Vectors(chosen.pooled.unsqueeze(1), whole[:, :1]),
            BY_LOAD: Vectors(load, whole),
        }

    def spans_of(self, gates: Vectors, tokens: Tokens, name_of: Callable[[int], str]) -> list[list[Span]]:
        """The token of each row, dropped ones too; with text "token→key" where they are not the same.

        Args:
            gates: what `route` made of the tokens, under `BY_GATE`.
            tokens: the texts.
            name_of: a vocabulary entry by its id.
        """
        places, ids = tokens.spans.tolist(), tokens.ids.tolist()
        keys = [] if gates.ids is None else gates.ids.tolist()
        each = gates.mask.shape[1] // max(1, tokens.ids.shape[1] - 1)
        found: list[list[Span]] = [[] for _ in tokens.texts]
        for at, row in gates.mask.nonzero().tolist():
            position, key = 1 + row // each, keys[at][row]
            start, end = places[at][position]
            own = ids[at][position]
            text = tokens.texts[at][start:end] if end > start else name_of(own)
            found[at].append(Span(text if key == own else f"{text}→{name_of(key)}", start, end))
        return found
