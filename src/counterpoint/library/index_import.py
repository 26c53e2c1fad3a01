"""Read an exported index: the settings, model and vectors that `counterpoint index` takes from it."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from counterpoint.data.beir import plain_or_packed
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.settings import IndexSettings
from counterpoint.index.vector_shards import VectorShards
from counterpoint.library.export_description import MODEL, Description, is_export
from counterpoint.library.stored import load_as_built
from counterpoint.search import SearchSettings

if TYPE_CHECKING:
    from counterpoint.library.options import BuildOptions
    from counterpoint.model import Model
    from counterpoint.types import Document

__all__ = ["Import", "import_of"]

AGAIN = "documents are encoded again"


@final
@dataclass(frozen=True)
class Import:
    """An exported index.

    Attributes:
        folder: its folder.
        about: the contents of `export.json`.
    """

    folder: Path
    about: Description

    @property
    def model_name(self) -> str | None:
        """Name or path of the model; None for BM25 only.

        Raises:
            ConfigError: the index does not record where its model is.
        """
        if self.about.model is None:
            return None
        name = self.about.model["name"]
        if name is None:
            raise ConfigError(f"{self.folder}: does not record where its model is; name it (--model, model=)")
        return os.path.realpath(self.folder / name) if name.startswith("./") else name

    @property
    def has_model(self) -> bool:
        """Whether the model is in the folder, because the index had the only copy."""
        return self.about.model is not None and self.about.model["name"] == f"./{MODEL}"

    @cached_property
    def settings(self) -> IndexSettings:
        """The settings that the index was built with.

        Raises:
            ConfigError: they are invalid.
        """
        said = self.about.settings
        if said.get("search") is not None:
            SearchSettings.from_dict(said["search"])
        return IndexSettings.from_dict(said)

    def model(self, gate: float | None) -> Model | None:
        """The model that the index was built with, pruned at the index's gate unless a gate is given.

        Raises:
            ArtifactError: it is missing, or has changed since.
        """
        name, about = self.model_name, self.about.model
        if name is None or about is None:
            return None
        expected = str(about["fingerprint"])
        model = load_as_built(name, expected, self.settings.gate)
        if model.fingerprint() != expected:
            raise ArtifactError(
                f"exported from an index of the model {expected[:12]}, and {name!r} is "
                f"{model.fingerprint()[:12]}; name the model to encode the documents again with it "
                "(--model, model=)",
                path=self.folder,
            )
        if self.has_model:
            model.came_from(None)  # the new index gets a copy of its own
        return model if gate is None else model.prune(gate)

    def is_of(self, model: Model | None) -> bool:
        """Whether a model is the one that the index was built with; None matches an index without a model."""
        expected = None if self.about.model is None else self.about.model["fingerprint"]
        return expected == (None if model is None else model.fingerprint())

    def closed(self, model: Model) -> Model:
        """The model, pruned at the index's gate if that makes it the index's model."""
        gate = self.settings.gate
        if gate is None:
            return model
        with suppress(ConfigError):  # another model, without a gate
            other = copy.deepcopy(model).prune(gate)
            return other if self.is_of(other) else model
        return model

    def settings_for(
        self, model: Model | None, name: str | None, changes: Mapping[str, Any]
    ) -> IndexSettings:
        """Settings of the new index.

        Args:
            model: its model.
            name: name under which it stores the model.
            changes: settings that were given.
        """
        mine = self.settings
        if self.is_of(model):
            return replace(mine, model=name, **changes)
        kept = {"metadata": mine.metadata, "passage_words": mine.passage_words}
        if model is None:
            return IndexSettings(**{**kept, **changes})
        return model.index_settings(name, **{**kept, **changes})

    def vectors(
        self, model: Model | None, settings: IndexSettings, options: BuildOptions
    ) -> tuple[VectorShards | None, str]:
        """The vectors that the new index takes, or None; with a note about them.

        Args:
            model: model of the new index.
            settings: settings of the new index.
            options: the options given.

        Raises:
            ConfigError: vectors are required by an option but cannot be used.
            DataError: the vectors do not match the model, or some are missing.
        """
        sets = self.about.sets
        if options.vectors and not sets:
            raise ConfigError(f"--vectors: {self.folder} has none; export it again with --vectors")
        if options.vectors and model is None:
            raise ConfigError(
                "--vectors: an index without a model stores none; leave --vectors or --model out"
            )
        if model is None or not sets or options.vectors is False:
            return None, ""
        why = ""
        if not self.is_of(model):
            why = "the vectors of the export were made by another model"
        elif options.passage_words:
            why = "--passage-words cuts documents that have vectors in the export"
        elif settings.pool_factor != self.settings.pool_factor:
            before = self.settings.pool_factor
            why = f"--pool-factor {settings.pool_factor:g}: the vectors of the export have factor {before:g}"
        if why and options.vectors:
            raise ConfigError(f"--vectors: {why}")
        if why:
            return None, f"{why}; {AGAIN}"
        settings.layouts(model)  # refuses sets that the model does not have
        wanted = settings.sets if settings.sets is not None else tuple(model.sets)
        few = [name for name in wanted if name in sets and isinstance(CODECS[sets[name].codec], Bits)]
        told = f"the vectors of {few[0]!r} were stored in {sets[few[0]].codec}" if few else ""
        if few and options.vectors is None:
            return (
                None,
                f"{told}; {AGAIN}, since storing these again would lose precision (--vectors does it)",
            )
        for name in wanted:
            made = model.sets[name]
            found = sets.get(name)
            if found is None or (found.dim, found.pooled, found.ids, found.static) != (
                made.dim, made.pooled, made.ids, made.static,
            ):  # fmt: skip
                raise DataError(f"the vector set {name!r} does not match its model", path=self.folder)
        return VectorShards(self.folder, sets, self.about.shards, wanted, self.about.report), told

    def checked(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents and check that their number is the exported one.

        Raises:
            DataError: there are more or fewer.
        """
        count = 0
        for document in documents:
            count += 1
            yield document
        if count != self.about.passages:
            raise DataError(
                f"the corpus has {count:,} documents and passages, export.json says {self.about.passages:,}; "
                "copy or export it again, or --lenient takes what is there",
                path=self.folder,
            )


def import_of(source: object) -> Import | None:
    """The exported index in a source folder; None for any other source.

    Raises:
        DataError: the folder has an export whose description cannot be read.
    """
    if not isinstance(source, str | Path) or not is_export(Path(source)):
        return None
    if plain_or_packed(Path(source), "corpus.jsonl") is None:
        raise DataError("an exported index without corpus.jsonl; copy or export it again", path=source)
    return Import(Path(source), Description.read(Path(source)))
