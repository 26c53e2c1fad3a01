"""Making a module without memory for its weights, to find out whether a file holds what it declares."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from counterpoint.errors import ArtifactError

__all__ = ["dry_run"]

SPARE = 1000  # parts of a module that its file holds no weights for


@contextmanager
def dry_run(tensors: int) -> Iterator[None]:
    """What is made in this block has shapes and no values, so that settings of any size cost nothing.

    Args:
        tensors: how many tensors the weights' file holds. Settings that ask for far more are refused while
            the module is being made: a count of 10¹² layers takes for ever without any memory, too.

    Raises:
        ArtifactError: more modules or parameters than such a file can fill.
    """
    left = 10 * tensors + SPARE

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise ArtifactError(
                f"the settings declare many times more layers than the {tensors} tensors of its weights"
            )

    hooks = [
        register_module_module_registration_hook(count),
        register_module_parameter_registration_hook(count),
    ]
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sizes of 0, which then do not fit the file
            yield
    finally:
        for hook in hooks:
            hook.remove()
