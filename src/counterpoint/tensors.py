"""Read, write and check tensors in safetensors files."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from counterpoint.errors import ArtifactError

__all__ = ["check_finite", "read_tensors", "write_tensors"]

ALIGNMENT = 64  # bytes, of torch's allocations on a CPU


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read all tensors of a safetensors file.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return {name: _aligned(file.get_tensor(name)) for name in file.keys()}
    except FileNotFoundError as error:
        raise ArtifactError("this file is missing; the model folder is incomplete", path=path) from error
    except (SafetensorError, OSError) as error:
        raise ArtifactError(f"cannot be read as safetensors ({error}); copy it again", path=path) from error


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Copy the tensor to an aligned address, as torch allocates it, if needed.

    safetensors uses any address, and matrix products round differently at some of them. A model's results
    would then depend on where its weights were read to.
    """
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()


def write_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a safetensors file; tensors that share memory are written separately.

    Raises:
        OSError: the file cannot be written (safetensors' own error for this has no error number).
    """
    apart = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    places = Counter(tensor.untyped_storage().data_ptr() for tensor in apart.values())
    for name, tensor in apart.items():
        if places[tensor.untyped_storage().data_ptr()] > 1:
            apart[name] = tensor.clone()
    try:
        save_file(apart, path)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error


def check_finite(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Refuse weights that are NaN or infinite.

    Raises:
        ArtifactError: a weight is NaN or infinite; names the first one.
    """
    for name, tensor in tensors.items():
        # A sum is finite only if all terms are, and forty times as fast as checking each one.
        values = tensor.float() if tensor.dtype.itemsize == 1 else tensor  # float8 has no arithmetic
        if values.is_floating_point() and not math.isfinite(values.sum().item()):
            count = int((~values.isfinite()).sum())
            if count:
                raise ArtifactError(
                    f"weight {name!r} has {count:,} values of {tensor.numel():,} that are NaN or infinite. "
                    "Training diverged, or the file is damaged; use an earlier checkpoint or copy it again",
                    path=path,
                )
