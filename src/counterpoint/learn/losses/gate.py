"""The L1 term that teaches a gate to close: ColBERTer's contextualised stop words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

from jaxtyping import Float
from torch import Tensor

from counterpoint.encode.gate import BY_GATE
from counterpoint.errors import ConfigError
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.loss import Loss, SetTraits
from counterpoint.learn.losses.entries import own_entries, wide
from counterpoint.learn.step import Step

__all__ = ["GateSparsity"]


@final
class GateSparsity(Loss):
    """The gate's openness: mean r of the positives' rows plus mean r of the negatives' rows.

    ColBERTer, equation 20, ‖r⁺‖₁ + ‖r⁻‖₁ for the passages of a pair. The paper does not say how it averages.
    Here the mean is over a passage's rows, then over passages, so that the weight α_CS does not depend on
    lengths or on the batch. A passage without rows counts as 0.

    Args:
        on: the gated vector set.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has no gate."""
        if self.on in sets and not sets[self.on].gated:
            yield (
                f"{self.label} closes the gate of {self.on!r}, and the model has none there; give it "
                f"DualEncoder(..., gates={{{self.on!r}: Gate()}})"
            )

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over positives, plus the mean over negatives if there are any.

        Raises:
            ConfigError: documents have no gate on the set.
        """
        gates = step.d.get(self.on + BY_GATE)
        if gates is None:
            raise ConfigError(
                f"{self.label}: documents have no gate on {self.on!r}; give the model "
                f"DualEncoder(..., gates={{{self.on!r}: Gate()}})"
            )
        open_ = wide(gates.values[..., 0]).masked_fill(~gates.mask, 0)
        passages = open_.sum(1) / gates.mask.sum(1).clamp(min=1)
        own, there = own_entries(passages.expand(len(step.targets.own), -1), step.targets.own)
        loss = own[:, 0].mean()
        negatives = there[:, 1:]
        return loss + own[:, 1:][negatives].mean() if negatives.any() else loss
