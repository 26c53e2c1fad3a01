"""Make a module without memory for its weights, to check whether a file matches its settings."""

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

SPARE = 1000  # allowance for modules without weights in the file


@contextmanager
def dry_run(tensors: int) -> Iterator[None]:
    """Make modules in this block with shapes but without values, so that settings of any size cost nothing.

    Args:
        tensors: number of tensors in the weights file. Settings that ask for far more are refused while the
            module is made: 10¹² layers would take forever even without memory.

    Raises:
        ArtifactError: there are more modules or parameters than the file can fill.
    """
    left = 10 * tensors + SPARE

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise ArtifactError(
                f"the settings declare far more layers than the weights file has tensors ({tensors})"
            )

    hooks = [
        register_module_module_registration_hook(count),
        register_module_parameter_registration_hook(count),
    ]
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes of 0, which do not match the file anyway
            yield
    finally:
        for hook in hooks:
            hook.remove()
