"""Data-parallel training: each process encodes a share of the texts, and all processes see all vectors.

Every process makes the same batch and computes the same loss over all vectors. It then backpropagates the
gradient of its own share through its encoder. Summed over processes, this is the gradient of the whole batch
on one process, for any loss. Labels are never gathered, so they cannot be mixed up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, final

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import pad

from counterpoint.vectors import Vectors

if TYPE_CHECKING:
    from accelerate import Accelerator

__all__ = ["Processes"]

T = TypeVar("T")


@final
@dataclass(frozen=True)
class Processes:
    """The processes of a run. A run that was started normally has one."""

    accelerator: Accelerator

    @property
    def count(self) -> int:
        """Number of processes."""
        return self.accelerator.num_processes

    @property
    def rank(self) -> int:
        """Rank of this process, from 0."""
        return self.accelerator.process_index

    def share(self, texts: int) -> Int[Tensor, " k"]:
        """Positions of the texts that this process encodes: every `count`-th, starting at its rank."""
        return torch.arange(self.rank, texts, self.count)

    def gather(self, mine: Vectors, texts: int) -> Vectors:
        """Gather the vectors of all texts, in their order, from each process's share. Without gradients."""
        if self.count == 1:
            return mine
        found = [self._piece(mine, at, texts) for at in range(self.count)]
        positions = [torch.arange(rank, texts, self.count) for rank in range(self.count)]
        order = torch.argsort(torch.cat(positions))
        return Vectors.concatenate(found).take(order.to(mine.values.device))

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients over processes. A missing gradient counts as 0."""
        if self.count == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            torch.distributed.all_reduce(parameter.grad)

    def first_says(self, value: T) -> T:
        """Broadcast the first process's value."""
        if self.count == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def first_tensor(self, value: Tensor) -> Tensor:
        """Broadcast the first process's tensor. All processes pass one of the same shape."""
        if self.count == 1:
            return value
        value = value.contiguous().clone()
        torch.distributed.broadcast(value, src=0)
        return value

    def _piece(self, mine: Vectors, source: int, texts: int) -> Vectors:
        rows = len(range(source, texts, self.count))
        device, dim = mine.values.device, mine.values.shape[2]
        widest = torch.tensor([mine.mask.shape[1]], device=device)
        torch.distributed.broadcast(widest, src=source)
        width = int(widest)
        if source == self.rank:
            missing = width - mine.mask.shape[1]
            values = pad(mine.values.detach(), (0, 0, 0, missing)).contiguous()
            mask = mine.mask.to(torch.uint8).contiguous()
            ids = mine.ids.contiguous() if mine.ids is not None else None
        else:
            values = torch.empty(rows, width, dim, device=device, dtype=mine.values.dtype)
            mask = torch.empty(rows, width, device=device, dtype=torch.uint8)
            ids = torch.empty(rows, width, device=device, dtype=torch.int64) if mine.ids is not None else None
        for tensor in (values, mask, ids):
            if tensor is not None:
                torch.distributed.broadcast(tensor, src=source)
        return Vectors(values, mask.bool(), ids)
