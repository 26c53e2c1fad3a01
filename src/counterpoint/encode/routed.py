"""`Routed`: token vectors with vocabulary keys that a router chooses (CITADEL).

Li et al. 2023, "CITADEL: conditional token interaction via dynamic lexical routing". A row is a pair of a
token and one of its keys. Its id is the key; its vector is the token's vector times the router's weight. The
paper's score is similarity times both weights where keys agree, and 0 elsewhere. This is `MaxSim(on,
exact=True, floor0=True)`, which an inverted index of ids can compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.encode.gate import BY_GATE, Gate
from counterpoint.encode.keyed import Keyed, Routes, Table
from counterpoint.encode.layers import Layer
from counterpoint.encode.router import Router
from counterpoint.encode.tokens import Tokens
from counterpoint.errors import ConfigError
from counterpoint.types import Span
from counterpoint.vectors import Vectors

__all__ = ["BY_LOAD", "BY_ROUTER", "Routed"]

BY_ROUTER = ".router"
"""Suffix of a routed set's name: one row per text, the maximum of the router's weights over the tokens."""
BY_LOAD = ".load"
"""Suffix of a routed set's name: two rows per text: tokens sent to each key, and the sum of their softmax."""


@final
class Routed(Keyed):
    """One row for every token and each of its router keys: weight · vector, with the key as id (CITADEL).

    All attended tokens except the first, [CLS], are routed. Document rows with weight 0 are dropped.

    Args:
        router: chooses and weights keys.
        keys: number of keys of a query token, and of a document token.
        threshold: drop document rows with a weight at or below this. Train with 0; the paper's released index
            keeps those above 0.9.
        projection: a layer applied to the hidden state.
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
        super().__init__(normalise=normalise, in_dim=in_dim)
        if len(keys) != 2 or min(keys) < 1:
            raise ConfigError(f"Routed: keys must be two numbers, each at least 1, found {keys}")
        self.router = router
        self.keys = keys
        self.threshold = Gate(threshold).threshold
        self.projection = projection  # after the router: the order in which both draw their weights

    @property
    def routers(self) -> Sequence[Router]:
        """The only router."""
        return [self.router]

    def route(self, hidden: Float[Tensor, "b t h"], tokens: Tokens, table: Table | None) -> Routes:
        """Compute one row per token and key, and further vectors by the suffix of their set's name.

        `BY_GATE`: the weight of every token and key, dropped ones included, with the keys as ids. In training
        mode also `BY_ROUTER` and `BY_LOAD`, which the router's losses use.
        """
        table = self.needed(table)
        count = self.keys[0 if tokens.side == "query" else 1]
        real = tokens.attention[:, 1:]
        hidden = hidden[:, 1:].masked_fill(~real[:, :, None], 0)  # padding may hold anything
        chosen = self.router(hidden, real, table, count)
        weights = chosen.weights.flatten(1).unsqueeze(-1)
        rows = self.finish(hidden).repeat_interleave(chosen.keys.shape[2], dim=1)
        there = real.repeat_interleave(chosen.keys.shape[2], dim=1)
        kept = there if tokens.side == "query" else there & (weights[..., 0] > self.threshold)
        keys = chosen.keys.flatten(1).masked_fill(~there, 0)
        made, gates = Vectors(rows * weights, kept, keys), Vectors(weights, there, keys)
        if chosen.pooled is None or chosen.shares is None:
            return made, {BY_GATE: gates}
        used = (weights.detach()[..., 0] > 0).to(weights)
        sent = torch.zeros_like(chosen.shares).scatter_add_(1, keys, used)
        load = torch.stack([sent, chosen.shares], 1)
        whole = torch.ones_like(load[..., 0], dtype=torch.bool)
        return made, {
            BY_GATE: gates,
            BY_ROUTER: Vectors(chosen.pooled.unsqueeze(1), whole[:, :1]),
            BY_LOAD: Vectors(load, whole),
        }

    def spans_of(self, gates: Vectors, tokens: Tokens, name_of: Callable[[int], str]) -> list[list[Span]]:
        """The token of each row, dropped ones included; as "token→key" where the two differ."""
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
