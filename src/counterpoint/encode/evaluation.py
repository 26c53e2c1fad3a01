"""`Evaluation`: keep a module on its device and in evaluation mode while any thread encodes with it."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import final

import torch
from torch import nn

__all__ = ["Evaluated", "Evaluation"]


@final
class Evaluation:
    """Counts the users of a module; the last one restores its mode.

    Attributes:
        lock: for work that must happen once, in whichever thread comes first.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._inside = 0
        self._training = False

    def __reduce__(self) -> tuple[type[Evaluation], tuple[()]]:
        return Evaluation, ()  # a copy of the module is another module, and a lock cannot be copied

    @contextmanager
    def of(self, module: nn.Module, device: torch.device) -> Iterator[None]:
        """Move the module to the device, and hold it in evaluation mode until the last user has left."""
        with self.lock:
            module.to(device)  # two threads that move the same weights to a GPU crash
            if not self._inside:
                self._training = module.training
                module.eval()
            self._inside += 1
        try:
            yield
        finally:
            with self.lock:
                self._inside -= 1
                if not self._inside:
                    module.train(self._training)


class Evaluated(nn.Module, ABC):
    """A module with which several threads may encode."""

    evaluation: Evaluation
