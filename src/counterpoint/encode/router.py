"""`Router`: a masked-language-model head that sends tokens to vocabulary keys (CITADEL)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from counterpoint.errors import ArtifactError, ConfigError, NotFittedError
from counterpoint.part import Part

__all__ = ["BLOCK", "Router"]

BLOCK = 2**25
"""Maximum number of logits in memory: 128 MiB of float32."""


class Choice(NamedTuple):
    """The keys that a router chose for the tokens of some texts."""

    keys: Int[Tensor, "b t k"]
    weights: Float[Tensor, "b t k"]
    pooled: Float[Tensor, "b v"] | None
    shares: Float[Tensor, "b v"] | None


@final
class Router(Part):
    """Weights of a token over the vocabulary, from a masked-language-model head.

    logits = E · LayerNorm(GELU(W h + b)) + c. E is the backbone's word-embedding table, not stored twice.

    Args:
        activation: "log": weights are ln(1 + ReLU(logits)), as in CITADEL. "softmax": weights are the softmax
            of the logits over the vocabulary, as in CITADEL-HIL.
        start: "checkpoint": W, b, c and the layer norm come from the backbone's checkpoint, which must have a
            masked-language-model head. "new": W is the identity, b is 0, c is `bias`. This works because a
            last hidden state still resembles its token's embedding.
        bias: initial c if `start` is "new". At −5, most logits begin below 0, as in masked-language models.
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
        """Set the sizes from the backbone, or check that they are the declared ones."""
        sizes = {"in_dim": in_dim, "out_dim": table.embedding_dim, "vocabulary": table.num_embeddings}
        for name, found in sizes.items():
            if getattr(self, name) is None:
                setattr(self, name, found)
            if getattr(self, name) != found:
                raise ConfigError(f"Router: {name} is {getattr(self, name)}, but the backbone has {found}")

    def _allocate(self) -> None:
        if self.in_dim is None or self.out_dim is None or self.vocabulary is None:
            raise NotFittedError("Router: its sizes are unknown until it is part of an encoder")
        self.dense_ = nn.Linear(self.in_dim, self.out_dim)
        self.norm_ = nn.LayerNorm(self.out_dim, eps=1e-12)
        self.bias_ = nn.Parameter(torch.full((self.vocabulary,), self.bias))
        nn.init.eye_(self.dense_.weight)
        nn.init.zeros_(self.dense_.bias)

    @torch.no_grad()
    def take(self, weights: Mapping[str, Tensor] | None) -> None:
        """Copy a masked-language-model head, with the names that `lexical_head` gives its weights.

        Args:
            weights: None if the backbone was not read from a checkpoint, but weights will be filled in from a
                saved model. Empty if the checkpoint has no such head.

        Raises:
            ArtifactError: `start` needs a head and there is none, or it does not fit.
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
        """Compute one number per vocabulary entry."""
        return functional.linear(self._fed(hidden), table, self.bias_)

    def logits_at(
        self, hidden: Float[Tensor, "b t h"], table: Float[Tensor, "v e"], keys: Int[Tensor, "b k"]
    ) -> Float[Tensor, "b t k"]:
        """Compute one number per token and each of its text's keys."""
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
        """Choose the `count` highest keys of every token, in order of id, with their weights.

        Texts are processed in groups, so that at most `block` logits (or those of one text) are in memory.
        With several groups, autograd computes each again in the backward pass. In training mode, the result
        has two more vectors per text: the maximum of ln(1 + ReLU(logits)) and the sum of the softmax, over
        the tokens.
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
        columns = zip(*parts, strict=True)  # two of them hold None unless in training mode
        return Choice._make(None if column[0] is None else torch.cat(column) for column in columns)

    def _choose(self, hidden: Tensor, real: Tensor, table: Tensor, count: int) -> Choice:
        logits, hollow = self.logits(hidden, table), ~real[:, :, None]
        highest, keys = logits.topk(min(count, len(table)), dim=-1)
        # In order of id: rounding may swap two keys of almost equal weight, which would swap their rows.
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
