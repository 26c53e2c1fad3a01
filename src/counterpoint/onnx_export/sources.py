"""Find files that already hold a model's weights and tokenizer, so that an export need not copy them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import final

import numpy as np
from torch import Tensor

from counterpoint.encode import Tokenizer
from counterpoint.encode.saved import saved_model
from counterpoint.encode.sources import PACKAGE, locate, package_folder
from counterpoint.errors import CounterpointError
from counterpoint.onnx_encoder.description import Weight
from counterpoint.onnx_encoder.places import FileRef, Mapped
from counterpoint.presets import PRESETS
from counterpoint.tensors import write_tensors

__all__ = ["Sources"]

WEIGHTS = "queries.safetensors"
START = 64  # number of bytes by which a tensor is searched


@final
class Sources:
    """The files of a model's source, of installed packages, and those that an export adds.

    Args:
        source: the name by which the model was loaded.
        folder: of the export; a model without a source is saved there.
    """

    def __init__(self, source: str | None, folder: Path):
        self.folder = folder
        self.refs: dict[str, FileRef] = {}
        self._tokenizers: dict[str, str] = {}
        self._found = list(_files(source, folder))

    def tokenizer(self, tokenizer: Tokenizer) -> str:
        """Name of the file of a tokenizer; written if no file has an equal one."""
        text = tokenizer.to_text()
        if text not in self._tokenizers:
            self._tokenizers[text] = self._placed(text, tokenizer.names)
        return self._tokenizers[text]

    def _placed(self, text: str, names: Mapping[str, str | None]) -> str:
        for base, root, path in self._found:
            if path.name == "tokenizer.json":
                try:
                    same = Tokenizer.parse(path.read_bytes(), path, **names).to_text() == text
                except (CounterpointError, OSError):
                    continue
                if same:
                    return self._ref(base, root, path)
        path = self.folder / f"tokenizer{len(self._tokenizers) or ''}.json"
        path.write_text(json.dumps(json.loads(text), ensure_ascii=False), encoding="utf-8")
        return self._ref("index", self.folder, path)

    def weights(self, tensors: Mapping[str, Tensor]) -> dict[str, Weight]:
        """The place of each tensor; tensors that are in no file are written."""
        left = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in tensors.items()}
        placed: dict[str, Weight] = {}
        for base, root, path in self._found:
            if left and path.suffix == ".safetensors":
                for name, offset in _places(left, path):
                    placed[name] = Weight(self._ref(base, root, path), offset, left.pop(name).shape)
        if left:
            path = self.folder / WEIGHTS
            write_tensors({name: tensors[name] for name in left}, path)
            file = self._ref("index", self.folder, path)
            placed |= {name: Weight(file, offset, left[name].shape) for name, offset in _places(left, path)}
        return {name: placed[name] for name in tensors}

    def _ref(self, base: str, root: Path, path: Path) -> str:
        relative = path.relative_to(root).as_posix()
        name = f"{base}/{relative}"
        if name not in self.refs:
            self.refs[name] = FileRef.of(base, relative, path)
        return name


def _files(source: str | None, folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """Candidate files for weights and tokenizers: name and folder of their base, and path."""
    for package, below in ((PACKAGE, "model"), ("counterpoint", "resources")):
        if (root := package_folder(package)) is not None:
            yield from ((f"package:{package}", root, path) for path in _interesting(root / below))
    if source is not None and source not in PRESETS:
        root = Path(source).expanduser()
        root = root if root.is_dir() else locate(source)
        saved = saved_model(root)
        yield from (("model", root, path) for path in _interesting(root if saved is None else saved))
    yield from (("index", folder, path) for path in _interesting(folder))


def _interesting(folder: Path) -> list[Path]:
    found = [path for path in sorted(folder.rglob("*")) if path.suffix in (".safetensors", ".json")]
    return [path for path in found if path.suffix != ".json" or path.name == "tokenizer.json"]


def _places(wanted: Mapping[str, np.ndarray], path: Path) -> Iterator[tuple[str, int]]:
    """Yield the tensors that a safetensors file holds, bit for bit, with their offsets; each once."""
    mapped = Mapped(path)
    size = int.from_bytes(mapped.raw[:8], "little")
    header = json.loads(bytes(mapped.raw[8 : 8 + size]))
    there: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
    for name, said in header.items():
        if name != "__metadata__" and said["dtype"] == "F32":
            at = 8 + size + said["data_offsets"][0]
            length = 4 * int(np.prod(said["shape"], dtype=np.int64))
            start = bytes(mapped.raw[at : at + min(START, length)])
            there.setdefault((tuple(said["shape"]), start), []).append(at)
    for name, values in list(wanted.items()):
        for at in there.get((values.shape, values.reshape(-1)[: START // 4].tobytes()), ()):
            if np.array_equal(mapped.floats(at, values.shape).view(np.int32), values.view(np.int32)):
                yield name, at
                break
