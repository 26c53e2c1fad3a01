"""Build an index from any source, with the options given."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, final

from counterpoint.errors import ConfigError, DataError
from counterpoint.index.disk_usage import cut_text
from counterpoint.library.index_import import Import, import_of
from counterpoint.library.keywords import BuildKeywords, with_names
from counterpoint.library.opened import OpenIndex
from counterpoint.library.options import AUTO_MODEL, DEFAULT_MODEL, BuildOptions
from counterpoint.library.reading import Reading, build_options, declared_fields, read

if TYPE_CHECKING:
    from counterpoint.index import IndexSettings, LexicalSettings
    from counterpoint.index.build import Elsewhere
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
        source: a path, `ir_datasets:ID` or `stdlib:`, as for `open_collection`; a collection; an iterable of
            strings, dicts or `Document`s; a pandas or polars frame. The folder of an exported index gives the
            same index, except for the settings given here.
        path: the folder to write.
        model: name of a preset, folder, hub id, or a model; None for BM25 only; "auto" for minilm, or for the
            model of an exported index.
        on_progress: called with the number of documents done.
        settings: fields of `BuildOptions`.

    Raises:
        ConfigError: a setting does not exist or has an invalid value, or the source is not supported.
        DataError: the source cannot be read.
        ArtifactError: the folder holds something else, or an index and `overwrite` is not set.

    Warns:
        UserWarning: files of a folder, or rows of files, were skipped because they could not be read.
        UserWarning: no document has a metadata field with a declared type.
        UserWarning: documents are longer than the model reads.
        UserWarning: vectors of an exported index are not used, or lose precision.

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
    for line in build.reading.report.lacks():
        warnings.warn(line, stacklevel=2)
    made = OpenIndex(path, build.model)
    if cut := cut_text(made.index.disk_usage()):
        warnings.warn(cut.replace("--passage-words", "passage_words"), stacklevel=2)
    return made


@final
@dataclass(frozen=True)
class Build:
    """A build with checked settings and an opened source.

    Attributes:
        reading: the opened source, with a report of its contents.
        documents: its documents, streamed.
        size: their number, if known.
        folder: the folder to write.
        model: the model that encodes them; None for BM25 only.
        settings: settings of the index.
        overwrite: replace an existing index.
        resume: continue an unfinished build.
        processes: number of encoding processes.
        ray: the Ray cluster that encodes; None for this machine.
        vectors: vectors of an exported index, used instead of encoding.
        told: a note about these vectors.
    """

    reading: Reading
    documents: Iterable[Document]
    size: int | None
    folder: Path
    model: Model | None
    settings: IndexSettings
    overwrite: bool
    resume: bool
    processes: int | None
    ray: str | None
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
                processes=self.processes or 1,
                elsewhere=self._elsewhere(),
                given=self.vectors,
                on_progress=on_progress,
            )
        except DataError as error:
            if error.path is None and not self.reading.report.passages:
                why = self.reading.report.why_nothing()
                raise DataError(f"{error}{why}", path=self.reading.origin) from error
            raise

    def _elsewhere(self) -> Elsewhere | None:
        """What encodes on the cluster, if one is named."""
        if self.ray is None:
            return None
        from counterpoint.cluster.encoding import ray_encoders

        return partial(ray_encoders, address=self.ray, processes=self.processes)


def prepare(source: Any, folder: str | Path, options: BuildOptions) -> Build:
    """Prepare a build and find all faults before a document is encoded.

    Raises:
        ConfigError, DataError: as `index`.
    """
    exported = import_of(source)
    _check(options, exported)
    reading, folder = read(source, options), Path(folder)
    model = _model(options, exported)
    settings = _settings(options, model, folder, exported)
    how = options.overwrite, options.resume, options.processes, options.ray
    build = Build(reading, reading, reading.size, folder, model, settings, *how)
    if exported is None:
        return build
    vectors, told = exported.vectors(model, settings, options)
    whole = not options.passage_words and not options.lenient
    documents = exported.checked(reading) if whole else reading
    size = None if options.passage_words else exported.about.passages
    return replace(build, documents=documents, size=size, vectors=vectors, told=told)


def model_name(source: Any, options: BuildOptions) -> str | Path | Model | None:
    """The model of the options, with "auto" resolved."""
    return _named(options, import_of(source))


def _named(options: BuildOptions, exported: Import | None) -> str | Path | Model | None:
    if options.model == "none":
        return None
    if options.model != AUTO_MODEL:
        return options.model
    return DEFAULT_MODEL if exported is None else exported.model_name


def _check(options: BuildOptions, exported: Import | None) -> None:
    given = [name for name in ("k1", "b", "analyzer") if getattr(options, name) is not None]
    if given and not _has_lexical(options, exported):
        raise ConfigError("--k1, --b and --analyzer are for BM25, which --no-lexical leaves out")
    if exported is None and options.vectors is not None:
        raise ConfigError("--vectors and --no-vectors are for an exported index, which SOURCE is not")
    if _named(options, exported) is None and options.gate is not None:
        raise ConfigError("--gate: an index with only BM25 has no gate; name a --model that has one")
    if _named(options, exported) is None and options.codec is not None:
        raise ConfigError("--codec: an index with only BM25 has no vectors; name a --model that makes some")


def _has_lexical(options: BuildOptions, exported: Import | None) -> bool:
    if options.lexical is not None:
        return options.lexical
    return exported is None or exported.settings.lexical is not None


def _model(options: BuildOptions, exported: Import | None) -> Model | None:
    """The model, pruned at the gate that was asked for; a model object of the caller is not changed."""
    if exported is not None and options.model == AUTO_MODEL:
        return exported.model(options.gate)
    named = _named(options, exported)
    if named is None:
        return None
    if isinstance(named, str | Path):
        from counterpoint.loading import load_model  # brings torch with it

        model = load_model(named)
    else:
        model = _whole(named)
        model = model if options.gate is None else copy.deepcopy(model)  # the caller's stays unchanged
    if options.gate is not None:
        return model.prune(options.gate)
    return model if exported is None else exported.closed(model)


def _whole(given: Any) -> Model:
    """A model; an encoder by itself becomes one, as it does when it is loaded from a folder."""
    from counterpoint.encode import DualEncoder
    from counterpoint.model import Model

    if isinstance(given, DualEncoder):
        return Model(given).setup().eval()
    if not hasattr(given, "index_settings"):  # whatever behaves like a model is one
        raise ConfigError(
            f"model: expected a name, a folder, a Model or a DualEncoder, found {type(given).__name__}; "
            "put an Encoder into DualEncoder(…)"
        )
    return given


def _settings(
    options: BuildOptions, model: Model | None, folder: Path, exported: Import | None
) -> IndexSettings:
    from counterpoint.index import IndexSettings
    from counterpoint.index.settings import remembered_name

    chosen = ("codec", "gate", "ann", "shards", "pool_factor")
    changes = {name: x for name in chosen if (x := getattr(options, name)) is not None}
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
    """The name under which the index stores its model; None if it gets a copy or has no model."""
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
