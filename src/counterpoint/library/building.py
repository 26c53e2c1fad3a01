"""Building an index as it is asked for, from whatever a user names."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, final

from counterpoint.errors import ConfigError, DataError
from counterpoint.index.accounts import cut_text
from counterpoint.library.index_import import Import, import_of
from counterpoint.library.keywords import BuildKeywords, with_names
from counterpoint.library.opened import OpenIndex
from counterpoint.library.options import AUTO_MODEL, DEFAULT_MODEL, BuildOptions
from counterpoint.library.reading import Reading, build_options, declared_fields, read

if TYPE_CHECKING:
    from counterpoint.index import IndexSettings, LexicalSettings
    from counterpoint.index.vector_shards import VectorShards
    from counterpoint.model import Model
    from counterpoint.types import Document

__all__ = ["Build", "index", "model_name", "prepare"]


@with_names(BuildKeywords)
def index(
    source: Any,
    path: str | Path,
    model: str | Path | Model | None = AUTO_MODEL,
    *,
    on_progress: Callable[[int], None] = lambda done: None,
    **settings: Unpack[BuildKeywords],
) -> OpenIndex:
    """Build an index and open it.

    Args:
        source: a path, `ir_datasets:ID` or `stdlib:` as `open_collection` takes them; a collection; an
            iterable of strings, dicts or `Document`s; a pandas or polars frame. The folder of an exported
            index gives the same index, but for what is given here.
        path: the folder to write.
        model: name of a preset, folder, hub id, or a model; None for BM25 alone; "auto" for minilm, or for
            the model of an exported index.
        on_progress: called with the number of documents done.
        settings: fields of `BuildOptions`.

    Raises:
        ConfigError: a setting that does not exist or cannot be, or a source of another kind.
        DataError: the source cannot be read.
        ArtifactError: the folder holds something else, or an index and `overwrite` is not given.

    Warns:
        UserWarning: files of a folder, or rows of them, were skipped since they could not be read.
        UserWarning: documents are longer than what the model reads of them.
        UserWarning: an exported index has vectors that are not used, or lose something.

    Example:
        >>> from tempfile import mkdtemp
        >>> notes = index(["A whale is a mammal.", "Trains leave at nine."], mkdtemp() + "/notes", model=None)
        >>> [hit.text for hit in notes.search("whale", workflow="lexical")]
        ['A whale is a mammal.']
    """
    build = prepare(source, path, build_options({"model": model, **settings}))
    if build.told:
        warnings.warn(build.told, stacklevel=2)
    build.run(on_progress)
    if lost := build.reading.report.lost():
        warnings.warn(lost, stacklevel=2)
    made = OpenIndex(path, build.model)
    if cut := cut_text(made.info()):
        warnings.warn(cut.replace("--passage-words", "passage_words"), stacklevel=2)
    return made


@final
@dataclass(frozen=True)
class Build:
    """A build whose settings were checked and whose source was opened.

    Attributes:
        reading: what was opened, and the report of what it holds.
        documents: of it, streamed.
        size: their number where it is known.
        folder: to be written.
        model: that encodes them; None for BM25 alone.
        settings: what is kept.
        overwrite: whether an index that is there is replaced.
        resume: whether an unfinished build is gone on with.
        processes: how many encode.
        vectors: those of an exported index, in place of encoding.
        told: of these, what there is to tell.
    """

    reading: Reading
    documents: Iterable[Document]
    size: int | None
    folder: Path
    model: Model | None
    settings: IndexSettings
    overwrite: bool
    resume: bool
    processes: int
    vectors: VectorShards | None = None
    told: str = ""

    def run(self, on_progress: Callable[[int], None]) -> None:
        """Read, encode and write."""
        from counterpoint.index import build_index

        try:
            build_index(
                self.documents,
                self.model,
                self.folder,
                self.settings,
                overwrite=self.overwrite,
                resume=self.resume,
                processes=self.processes,
                given=self.vectors,
                on_progress=on_progress,
            )
        except DataError as error:
            if error.path is None and not self.reading.report.passages:
                why = self.reading.report.why_nothing()
                raise DataError(f"{error}{why}", path=self.reading.origin) from error
            raise


def prepare(source: Any, folder: str | Path, options: BuildOptions) -> Build:
    """Everything that can be wrong is found here, before a document is encoded.

    Raises:
        ConfigError, DataError: as `index`.
    """
    exported = import_of(source)
    _check(options, exported)
    reading, folder = read(source, options), Path(folder)
    model = _model(options, exported)
    settings = _settings(options, model, folder, exported)
    how = options.overwrite, options.resume, options.processes
    build = Build(reading, reading, reading.size, folder, model, settings, *how)
    if exported is None:
        return build
    vectors, told = exported.vectors(model, settings, options)
    whole = not options.passage_words and not options.lenient
    documents = exported.checked(reading) if whole else reading
    size = None if options.passage_words else exported.about.passages
    return replace(build, documents=documents, size=size, vectors=vectors, told=told)


def model_name(source: Any, options: BuildOptions) -> str | Path | Model | None:
    """The model that is meant: "auto" as what it stands for."""
    exported = import_of(source)
    return _named(options, exported)


def _named(options: BuildOptions, exported: Import | None) -> str | Path | Model | None:
    if options.model == "none":
        return None
    if options.model != AUTO_MODEL:
        return options.model
    return DEFAULT_MODEL if exported is None else exported.model_name


def _check(options: BuildOptions, exported: Import | None) -> None:
    given = [name for name in ("k1", "b", "analyzer") if getattr(options, name) is not None]
    if given and not _has_lexical(options, exported):
        raise ConfigError("--k1, --b and --analyzer are BM25's, and --no-lexical leaves it out")
    if exported is None and options.vectors is not None:
        raise ConfigError("--vectors and --no-vectors are for an exported index, and SOURCE is none")
    if _named(options, exported) is None and options.gate is not None:
        raise ConfigError("--gate: BM25 alone has no gate; name a --model that has one")
    if _named(options, exported) is None and options.codec is not None:
        raise ConfigError("--codec: BM25 alone has no vectors to store; name a --model that makes some")


def _has_lexical(options: BuildOptions, exported: Import | None) -> bool:
    if options.lexical is not None:
        return options.lexical
    return exported is None or exported.settings.lexical is not None


def _model(options: BuildOptions, exported: Import | None) -> Model | None:
    """The model, its gate closed as asked; one that is given is not changed by that."""
    if exported is not None and options.model == AUTO_MODEL:
        return exported.model(options.gate)
    named = _named(options, exported)
    if named is None:
        return None
    if isinstance(named, str | Path):
        from counterpoint.loading import load_model  # brings torch with it

        model = load_model(named)
    else:
        model = named if options.gate is None else copy.deepcopy(named)  # the caller's own stays as it is
    if options.gate is not None:
        return model.close_gates(options.gate)
    return model if exported is None else exported.closed(model)


def _settings(
    options: BuildOptions, model: Model | None, folder: Path, exported: Import | None
) -> IndexSettings:
    from counterpoint.index import IndexSettings
    from counterpoint.index.settings import remembered_name

    changes = {name: x for name in ("codec", "gate", "ann") if (x := getattr(options, name)) is not None}
    changes["lexical"] = _lexical(options, model, exported)
    if exported is None or options.metadata is not None:
        changes["metadata"] = declared_fields(options)
    if exported is None or options.passage_words is not None:
        changes["passage_words"] = options.passage_words
    name = _kept_name(options, exported)
    name = None if name is None else remembered_name(name, folder)
    if exported is not None:
        return exported.settings_for(model, name, changes)
    return IndexSettings(**changes) if model is None else model.index_settings(name, **changes)


def _kept_name(options: BuildOptions, exported: Import | None) -> str | Path | None:
    """What the index is to call its model; None where it gets a copy, or has none."""
    if exported is not None and options.model == AUTO_MODEL:
        return None if exported.has_model else exported.model_name
    named = _named(options, exported)
    return named if isinstance(named, str | Path) else None


def _lexical(options: BuildOptions, model: Model | None, exported: Import | None) -> LexicalSettings | None:
    from counterpoint.index import LexicalSettings

    if not _has_lexical(options, exported):
        return None
    before = None if exported is None else exported.settings.lexical
    if before is None:
        before = LexicalSettings() if model is None else LexicalSettings(analyzer=model.analyzer)
    given = {name: getattr(options, name) for name in ("k1", "b", "analyzer", "identifiers")}
    return replace(before, **{name: value for name, value in given.items() if value is not None})
