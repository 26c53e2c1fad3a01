"""`Evaluation`: a module stays in evaluation mode while any thread encodes by it."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import final

from torch import nn

__all__ = ["Evaluated", "Evaluation"]


@final
class Evaluation:
    """Counts who encodes by a module, so that the last to leave puts its mode back, and no one before.

    Attributes:
        lock: for what must happen once, whichever thread comes first.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._inside = 0
        self._training = False

    def __reduce__(self) -> tuple[type[Evaluation], tuple[()]]:
        return Evaluation, ()  # a copy of the module is another module, and a lock cannot be copied

    @contextmanager
    def of(self, module: nn.Module) -> Iterator[None]:
        """Evaluation mode, until everybody has left."""
        with self.lock:
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
    """A module by which several threads may encode."""

    evaluation: Evaluation
