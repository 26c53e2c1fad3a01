"""`Routed`: token vectors under keys of the vocabulary that a router chooses (CITADEL).

Li et al. 2023, "CITADEL: conditional token interaction via dynamic lexical routing". A row is a pair of a
token and one of its keys: its id is the key, its vector that of the token times the router's weight. Then the
paper's score, the product of similarity and both weights where keys agree and 0 elsewhere, is
`MaxSim(on, exact=True, floor0=True)`, and an inverted index of ids serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.encode.gate import BY_GATE, Gate
from counterpoint.encode.keyed import Keyed
from counterpoint.encode.layers import Layer
from counterpoint.encode.router import Router
from counterpoint.encode.tokens import Tokens
from counterpoint.errors import ConfigError
from counterpoint.types import Span
from counterpoint.vectors import Vectors

__all__ = ["BY_LOAD", "BY_ROUTER", "Routed"]

BY_ROUTER = ".router"
"""Behind a routed set's name: one row a text, the router's whole vector, its maximum over the tokens."""
BY_LOAD = ".load"
"""Behind a routed set's name: two rows a text, by key the tokens sent to it, and the sum of their softmax."""


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
        """One row for each token and key, and other vectors of the same texts, by the end of their name.

        `BY_GATE`: the weight of every token and key, dropped ones too, with the keys as ids. In training mode
        `BY_ROUTER` and `BY_LOAD`, which losses on the router go by.
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
