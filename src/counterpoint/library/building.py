"""Building an index as it is asked for, from whatever a user names."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, final

from counterpoint.errors import ConfigError, DataError
from counterpoint.index.accounts import cut_text
from counterpoint.library.keywords import BuildKeywords, with_names
from counterpoint.library.opened import OpenIndex
from counterpoint.library.options import DEFAULT_MODEL, BuildOptions
from counterpoint.library.reading import Reading, build_options, declared_fields, read

if TYPE_CHECKING:
    from counterpoint.index import IndexSettings
    from counterpoint.model import Model
    from counterpoint.types import Document

__all__ = ["Build", "index", "prepare"]


@with_names(BuildKeywords)
def index(
    source: Any,
    path: str | Path,
    model: str | Path | Model | None = DEFAULT_MODEL,
    *,
    on_progress: Callable[[int], None] = lambda done: None,
    **settings: Unpack[BuildKeywords],
) -> OpenIndex:
    """Build an index and open it.

    Args:
        source: a path, `ir_datasets:ID` or `stdlib:` as `open_collection` takes them; a collection; an
            iterable of strings, dicts or `Document`s; a pandas or polars frame.
        path: the folder to write.
        model: name of a preset, folder, hub id, or a model; None for BM25 alone.
        on_progress: called with the number of documents done.
        settings: fields of `BuildOptions`.

    Raises:
        ConfigError: a setting that does not exist or cannot be, or a source of another kind.
        DataError: the source cannot be read.
        ArtifactError: the folder holds something else, or an index and `overwrite` is not given.

    Warns:
        UserWarning: files of a folder, or rows of them, were skipped since they could not be read.
        UserWarning: documents are longer than what the model reads of them.

    Example:
        >>> from tempfile import mkdtemp
        >>> notes = index(["A whale is a mammal.", "Trains leave at nine."], mkdtemp() + "/notes", model=None)
        >>> [hit.text for hit in notes.search("whale", workflow="lexical")]
        ['A whale is a mammal.']
    """
    build = prepare(source, path, build_options({"model": model, **settings}))
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
    _check(options)
    reading = read(source, options)
    model = _model(options)
    settings = _settings(options, model, Path(folder))
    how = options.overwrite, options.resume, options.processes
    return Build(reading, reading, reading.size, Path(folder), model, settings, *how)


def _check(options: BuildOptions) -> None:
    given = [name for name in ("k1", "b", "analyzer") if getattr(options, name) is not None]
    if given and not options.lexical:
        raise ConfigError("--k1, --b and --analyzer are BM25's, and --no-lexical leaves it out")
    if options.model in (None, "none") and options.gate is not None:
        raise ConfigError("--gate: BM25 alone has no gate; name a --model that has one")
    if options.model in (None, "none") and options.codec is not None:
        raise ConfigError("--codec: BM25 alone has no vectors to store; name a --model that makes some")


def _model(options: BuildOptions) -> Model | None:
    """The model, its gate closed as asked; one that is given is not changed by that."""
    if options.model is None or options.model == "none":
        return None
    if isinstance(options.model, str | Path):
        from counterpoint.model import load_model  # brings torch with it

        model = load_model(options.model)
    else:
        model = cast("Model", options.model)
        model = model if options.gate is None else copy.deepcopy(model)  # the caller's own stays as it is
    return model if options.gate is None else model.close_gates(options.gate)


def _settings(options: BuildOptions, model: Model | None, folder: Path) -> IndexSettings:
    from counterpoint.index import IndexSettings, LexicalSettings
    from counterpoint.index.settings import remembered_name

    given = {name: getattr(options, name) for name in ("k1", "b", "analyzer", "identifiers")}
    bm25 = LexicalSettings(**{name: value for name, value in given.items() if value is not None})
    words, declared = options.passage_words, declared_fields(options)
    if model is None:
        kept = bm25 if options.lexical else None
        return IndexSettings(lexical=kept, ann=options.ann, metadata=declared, passage_words=words)
    chosen = {name: value for name in ("codec", "gate") if (value := getattr(options, name)) is not None}
    kept = replace(bm25, analyzer=options.analyzer or model.analyzer) if options.lexical else None
    name = remembered_name(options.model, folder) if isinstance(options.model, str | Path) else None
    chosen |= {"metadata": declared, "passage_words": words}
    return model.index_settings(name, lexical=kept, ann=options.ann, **chosen)
