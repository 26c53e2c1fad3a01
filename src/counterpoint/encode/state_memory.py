"""`StateMemory`: a frozen backbone's hidden states, kept so that a text passes the backbone once."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from counterpoint.errors import ConfigError

__all__ = ["StateMemory"]

Compute = Callable[[Int[Tensor, "b t"], Bool[Tensor, "b t"]], Float[Tensor, "b t h"]]


@final
class StateMemory:
    """Hidden states by the ids that they were made of, in half precision and in the host's memory.

    A text is computed by itself, without padding, and rounded whether there is room to keep it or not. So
    what comes out depends on the text alone, never on what was asked before: a run that was taken up again,
    with its memory empty, still goes on to the same losses. What does not fit is computed every time.

    Args:
        gibibytes: how much to keep; 180 positions of 384 components take 135 KiB.

    Raises:
        ConfigError: that is not a positive number.
    """

    def __init__(self, gibibytes: float):
        if not gibibytes > 0:
            raise ConfigError(f"StateMemory: there must be room for something, found {gibibytes:g} GiB")
        self.room = int(gibibytes * 2**30)
        self._kept: dict[bytes, Tensor] = {}

    def __len__(self) -> int:
        """Number of texts kept."""
        return len(self._kept)

    @torch.no_grad()
    def states(
        self,
        compute: Compute,
        ids: Int[Tensor, "b t"],
        attention: Bool[Tensor, "b t"],
        lengths: Int[Tensor, " b"],
    ) -> Float[Tensor, "b t h"]:
        """What `compute` makes of each text; zeros where a text is padded.

        Args:
            compute: the backbone.
            ids: vocabulary ids.
            attention: where the backbone may look.
            lengths: of the texts, without padding.
        """
        rows = [
            self._row(compute, one[:length], seen[:length])
            for one, seen, length in zip(ids, attention, lengths.tolist(), strict=True)
        ]
        padded = pad_sequence(rows, batch_first=True)
        missing = ids.shape[1] - padded.shape[1]
        return torch.nn.functional.pad(padded, (0, 0, 0, missing)).to(ids.device, torch.float32)

    def _row(self, compute: Compute, ids: Int[Tensor, " t"], attention: Bool[Tensor, " t"]) -> Tensor:
        key = torch.stack([ids, attention.long()]).cpu().numpy().tobytes()
        if key not in self._kept:
            found = _rounded(compute(ids[None], attention[None])[0].cpu())
            size = found.numel() * found.element_size()
            if size > self.room:
                return found
            self.room -= size
            self._kept[key] = found
        return self._kept[key]


def _rounded(states: Float[Tensor, "t h"]) -> Tensor:
    """In half precision, or as they are where that cannot hold them."""
    half = states.half()
    return half if torch.isfinite(half).all() else states
