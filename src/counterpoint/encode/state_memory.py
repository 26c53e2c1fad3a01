"""`StateMemory`: cache of a frozen backbone's hidden states, so that each text is computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.files import write_atomically, writing
from counterpoint.tensors import read_tensors, write_tensors

__all__ = ["StateMemory"]

Compute = Callable[[Int[Tensor, "b t"], Bool[Tensor, "b t"]], Float[Tensor, "b t h"]]


@final
class StateMemory:
    """Cache of hidden states in host memory as float16, keyed by token ids and precision.

    Each text is computed alone, without padding, and always rounded, even if there is no room to keep it. So
    the result depends on the text alone, never on earlier texts: a resumed run with an empty cache reaches
    the same losses. Texts that do not fit are computed every time.

    A folder keeps the states after the process ends: `save` writes them there, and the next cache of the same
    backbone reads them. Several processes may save at the same time, each to its own file.

    Args:
        gibibytes: maximum size of the cache; 180 positions of 384 components take 135 KiB.
        folder: for the states of this backbone only, created if needed; None to keep nothing on disk.

    Raises:
        ConfigError: the size is not positive.
        ArtifactError: a file of the folder cannot be read.
    """

    def __init__(self, gibibytes: float, folder: Path | None = None):
        if not gibibytes > 0:
            raise ConfigError(f"StateMemory: the size must be above 0 GiB, found {gibibytes:g} GiB")
        self.room = int(gibibytes * 2**30)
        self.folder = folder
        self._kept: dict[bytes, Tensor] = {}
        for path in sorted(folder.glob("*.safetensors")) if folder is not None else ():
            self._read(path)
        self._old = len(self._kept)

    def __len__(self) -> int:
        """Number of texts kept."""
        return len(self._kept)

    @torch.inference_mode(False)  # tensors made in inference mode could not be used in training later
    @torch.no_grad()
    def states(
        self,
        compute: Compute,
        ids: Int[Tensor, "b t"],
        attention: Bool[Tensor, "b t"],
        lengths: Int[Tensor, " b"],
    ) -> Float[Tensor, "b t h"]:
        """Hidden states of each text, by the backbone `compute`; zeros beyond the text's length."""
        texts = zip(ids, attention, lengths.tolist(), strict=True)
        rows = [self._row(compute, one[:length], seen[:length]) for one, seen, length in texts]
        padded = pad_sequence(rows, batch_first=True)
        missing = ids.shape[1] - padded.shape[1]
        return torch.nn.functional.pad(padded, (0, 0, 0, missing)).to(ids.device, torch.float32)

    def _row(self, compute: Compute, ids: Int[Tensor, " t"], attention: Bool[Tensor, " t"]) -> Tensor:
        asked = torch.stack([ids, attention.long()]).cpu().numpy().tobytes()
        device = ids.device.type
        precise = str(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else "as it is"
        key = hashlib.sha256(asked + precise.encode()).digest()
        if key not in self._kept:
            found = compute(ids[None], attention[None])[0].cpu()
            half = found.half()
            found = half if torch.isfinite(half).all() else found  # it would overflow
            if not self._keep(key, found):
                return found
        return self._kept[key]

    def _keep(self, key: bytes, states: Tensor) -> bool:
        size = states.numel() * states.element_size()
        if size > self.room:
            return False
        self.room -= size
        self._kept[key] = states
        return True

    # -- on disk ---------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the states that the folder does not hold yet, except those that float16 cannot represent.

        Raises:
            ArtifactError: it cannot be written.
        """
        new = {key: s for key, s in list(self._kept.items())[self._old :] if s.dtype == torch.float16}
        if self.folder is None or not new:
            return
        keys = b"".join(new)
        tensors = {
            "keys": torch.from_numpy(np.frombuffer(keys, np.uint8).reshape(len(new), -1).copy()),
            "lengths": torch.tensor([len(states) for states in new.values()]),
            "states": torch.cat(list(new.values())),
        }
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{hashlib.sha256(keys).hexdigest()[:16]}.safetensors"
        write_atomically(path, lambda temporary: write_tensors(tensors, temporary))
        self._old = len(self._kept)

    def _read(self, path: Path) -> None:
        held = read_tensors(path)
        if held.keys() != {"keys", "lengths", "states"} or int(held["lengths"].sum()) != len(held["states"]):
            raise ArtifactError("holds no hidden states; delete it", path=path)
        parts = held["states"].split(held["lengths"].tolist())
        for key, states in zip(held["keys"].numpy(), parts, strict=True):
            if key.tobytes() not in self._kept:
                self._keep(key.tobytes(), states)
