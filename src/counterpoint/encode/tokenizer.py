"""`Tokenizer`: a fast tokenizer reduced to what encoding needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tokenizers

from counterpoint.encode.words import repair
from counterpoint.errors import ArtifactError, ConfigError, CounterpointError

__all__ = ["Tokenizer"]

UNKNOWN = "\U00010480"  # a letter that hardly any vocabulary has; normalisers keep it


class Tokenizer:
    """Word-pieces of texts with their character offsets, without special tokens, padding or truncation.

    Attributes:
        prefix: ids that open a sequence ([CLS]).
        suffix: ids that close it ([SEP]).
        pad_id: id that fills a batch.
        mask_id: None if the vocabulary has no mask token.
        names: the padding and the mask token, as `pad` and `mask`.
    """

    def __init__(self, backend: tokenizers.Tokenizer, *, pad: str | None, mask: str | None):
        self._backend = backend
        self.names: dict[str, str | None] = {"pad": pad, "mask": mask}
        backend.no_truncation()
        backend.no_padding()
        self.prefix, self.suffix = _template(backend)
        backend.encode(
            UNKNOWN
        )  # if the token for it is missing, better fail now than in the middle of a build
        self.pad_id = 0 if pad is None else self.id_of(pad)
        self.mask_id = None if mask is None else self.find(mask)

    @staticmethod
    def from_pretrained(folder: Path) -> Tokenizer:
        """Read any tokenizer that transformers can convert to a fast one.

        Raises:
            ArtifactError: there is none, or it has no fast form and therefore no character offsets.
        """
        from transformers import AutoTokenizer

        with _reading(folder):
            found: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if not found.is_fast:
            raise ArtifactError(
                f"{type(found).__name__} has no fast form, so it gives no character offsets to map words "
                "with; convert it to a tokenizer.json with the `tokenizers` library",
                path=folder,
            )
        # Copied as text, because transformers keeps setting truncation on its own object.
        with _reading(folder):
            backend = tokenizers.Tokenizer.from_str(found.backend_tokenizer.to_str())
            return Tokenizer(backend, pad=found.pad_token, mask=found.mask_token)

    @staticmethod
    def load(folder: Path) -> Tokenizer:
        """Read the files that `save` wrote.

        Raises:
            ArtifactError: a file is missing or damaged.
        """
        try:
            names = json.loads((folder / "special_tokens_map.json").read_text(encoding="utf-8"))
            pad, mask = names["pad_token"], names["mask_token"]
            text = (folder / "tokenizer.json").read_text(encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ArtifactError(f"the tokenizer cannot be read: {error}", path=folder) from error
        if not all(isinstance(name, str | None) for name in (pad, mask)):
            raise ArtifactError(
                f"expected the names of tokens, found {pad!r} and {mask!r}",
                path=folder / "special_tokens_map.json",
            )
        with _reading(folder / "tokenizer.json"):
            return Tokenizer(tokenizers.Tokenizer.from_str(text), pad=pad, mask=mask)

    @staticmethod
    def parse(text: bytes, path: Path, *, pad: str | None, mask: str | None) -> Tokenizer:
        """Read the content of `tokenizer.json`, with the names of the padding and mask tokens.

        Raises:
            ArtifactError: it is damaged.
        """
        with _reading(path):
            return Tokenizer(tokenizers.Tokenizer.from_buffer(text), pad=pad, mask=mask)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and the names of the special tokens."""
        (folder / "tokenizer.json").write_text(self.to_text(), encoding="utf-8")
        names = {f"{kind}_token": name for kind, name in self.names.items()}
        (folder / "special_tokens_map.json").write_text(json.dumps(names, indent=2), encoding="utf-8")

    def to_text(self) -> str:
        """The whole tokenizer as JSON; equal for tokenizers with the same behaviour."""
        return self._backend.to_str(pretty=True)

    def encode(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        """Tokenise texts to ids and character offsets."""
        return self._backend.encode_batch([repair(text) for text in texts], add_special_tokens=False)

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tokenizers.Encoding]:
        """Tokenise pairs of texts to one sequence each, with special tokens and segment ids."""
        return self._backend.encode_batch([(repair(first), repair(second)) for first, second in pairs])

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that represent no word: [CLS], [SEP], [MASK], [UNK], padding and similar."""
        added = self._backend.get_added_tokens_decoder()
        known = {number for number, token in added.items() if token.special}
        masks = () if self.mask_id is None else (self.mask_id,)
        return frozenset({*known, self.pad_id, *self.prefix, *self.suffix, *masks})

    def find(self, token: str) -> int | None:
        """Vocabulary id of a token, or None."""
        return self._backend.token_to_id(token)

    def id_of(self, token: str) -> int:
        """Vocabulary id of a token that must exist."""
        if (found := self.find(token)) is None:
            raise ConfigError(
                f"the token {token!r} is not one entry of the vocabulary; choose one that is "
                "(BERT's vocabulary keeps '[unused0]' to '[unused993]' free for this)"
            )
        return found

    def name_of(self, number: int) -> str:
        """The vocabulary entry with this id."""
        return self._backend.id_to_token(number) or f"#{number}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self  # a tokenizer never changes

    @property
    def end(self) -> int:
        """The largest id plus 1. More than the number of entries if the vocabulary has gaps."""
        return max(self._backend.get_vocab().values(), default=-1) + 1


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any error of the libraries into one that names the path; their panics are no `Exception`s."""
    try:
        yield
    except (CounterpointError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ArtifactError(f"the tokenizer cannot be read: {error}", path=path) from error


def _template(backend: tokenizers.Tokenizer) -> tuple[list[int], list[int]]:
    """The special tokens before and after a sequence, found by encoding a word with and without them."""
    bare, whole = backend.encode("a", add_special_tokens=False).ids, backend.encode("a").ids
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[:start], whole[start + len(bare) :]
    raise ArtifactError("this tokenizer rewrites a sequence when it adds special tokens; not supported")
