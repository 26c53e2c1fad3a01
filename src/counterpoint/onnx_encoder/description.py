"""`Description`: all data for encoding a query, apart from the graph.

It describes a query encoder without torch: tokenisation of each side, rows of each set, tables of embeddings,
and the place of every weight.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from counterpoint.encode.choice import Choice, EachToken, EachWord, WholeText
from counterpoint.encode.reading import Reading
from counterpoint.encode.words import WordSettings
from counterpoint.errors import ArtifactError
from counterpoint.headers import Header
from counterpoint.index import VectorSet
from counterpoint.onnx_encoder.network import Network
from counterpoint.onnx_encoder.places import FileRef
from counterpoint.types import Side

__all__ = ["GRAPH", "NAME", "Description", "Embeddings", "TextSide", "Weight"]

FORMAT = 1
HEADER = Header("query encoder", (FORMAT,), "build the index again")
NAME = "queries.json"
GRAPH = "queries.onnx"


@final
@dataclass(frozen=True)
class Weight:
    """Place of a float32 tensor in a file of the description."""

    file: str
    offset: int
    shape: tuple[int, ...]


@final
@dataclass(frozen=True)
class Embeddings:
    """Names of the embedding tables that a backbone looks up for its tokens.

    Attributes:
        words: (vocabulary, components).
        positions: (positions, components); None if only static sets read these words.
        types: (segments, components).
    """

    words: str
    positions: str | None = None
    types: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of all existing tables."""
        return [name for name in (self.words, self.positions, self.types) if name is not None]


@final
@dataclass(frozen=True)
class TextSide:
    """How one side's texts become rows.

    Attributes:
        reading: settings of tokenisation.
        tokenizer: file of the tokenizer.
        pad: its padding token.
        mask: its mask token.
        choices: vector set name to the rule that chooses its rows.
    """

    reading: Reading
    tokenizer: str
    pad: str | None
    mask: str | None
    choices: Mapping[str, Choice]


@final
@dataclass(frozen=True)
class Description:
    """Content of an export.

    Attributes:
        fingerprint: of the model whose queries it encodes.
        files: referenced files.
        weights: of the graph and of embeddings, by name.
        embeddings: by the name of the graph's input.
        sides: how texts of each side are read.
        sets: the model's vector sets.
        texts: number of texts compared at export.
        difference: the largest difference between its vectors and the model's, relative to the longest vector
            of a set.
        bits: of its matrices by default, 8 or 32. Exports of earlier versions have 32.
        network: the graph's nodes; None in exports of earlier versions.
    """

    fingerprint: str
    files: Mapping[str, FileRef]
    weights: Mapping[str, Weight]
    embeddings: Mapping[str, Embeddings]
    sides: Mapping[Side, TextSide]
    sets: Mapping[str, VectorSet]
    texts: int = 0
    difference: float = 0.0
    bits: int = 32
    network: Network | None = None

    @property
    def is_of_folder(self) -> bool:
        """Whether it refers to files in a model's folder."""
        return any(ref.base == "model" for ref in self.files.values())

    def write(self, folder: Path) -> None:
        """Write `queries.json`."""
        network = None if self.network is None else self.network.to_dict()
        body = {"format": FORMAT, **asdict(replace(self, network=None)), "network": network}
        body["sides"] = {name: _side_to_dict(side) for name, side in self.sides.items()}
        (folder / NAME).write_text(json.dumps(body), encoding="utf-8")

    @staticmethod
    def parse(text: str, path: Path) -> Description:
        """Read what `write` wrote.

        Raises:
            ArtifactError: it is not a description, or of another version.
        """
        try:
            body = json.loads(text)
            HEADER.check(body, path)
            return Description(
                fingerprint=body["fingerprint"],
                files={name: FileRef(**said) for name, said in body["files"].items()},
                weights={
                    name: Weight(said["file"], said["offset"], tuple(said["shape"]))
                    for name, said in body["weights"].items()
                },
                embeddings={name: Embeddings(**said) for name, said in body["embeddings"].items()},
                sides={name: _side_from_dict(said) for name, said in body["sides"].items()},
                sets={
                    name: VectorSet(**{**said, "special": tuple(said["special"])})
                    for name, said in body["sets"].items()
                },
                texts=body["texts"],
                difference=body["difference"],
                bits=body.get("bits", 32),
                network=None if body.get("network") is None else Network.parse(body["network"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ArtifactError(f"cannot be read: {error}; build the index again", path=path) from error


CHOICES: Mapping[str, type[Choice]] = MappingProxyType(
    {"text": WholeText, "words": EachWord, "tokens": EachToken}
)


def _side_to_dict(side: TextSide) -> dict[str, Any]:
    names = {kind: name for name, kind in CHOICES.items()}
    said = asdict(side)
    for name, choice in side.choices.items():
        said["choices"][name] = {"rows": names[type(choice)], **said["choices"][name]}
    return said


def _side_from_dict(said: Mapping[str, Any]) -> TextSide:
    choices = {name: _choice_from_dict(dict(choice)) for name, choice in said["choices"].items()}
    return TextSide(Reading(**said["reading"]), said["tokenizer"], said["pad"], said["mask"], choices)


def _choice_from_dict(said: dict[str, Any]) -> Choice:
    kind = CHOICES[said.pop("rows")]
    if "words" in said:
        return EachWord(WordSettings(**said["words"]))
    return kind(**{name: tuple(value) for name, value in said.items()})
