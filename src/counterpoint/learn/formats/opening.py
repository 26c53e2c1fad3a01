"""Open training data by a name or path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from counterpoint.data import ReadPolicy
from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.formats.corpus import Place
from counterpoint.learn.formats.ids import (
    read_collection,
    read_distillation,
    read_distillation_folder,
    read_id_triples,
    read_n_way,
)
from counterpoint.learn.formats.rows import rows, shards
from counterpoint.learn.formats.texts import QUERY_COLUMNS, read_dpr, read_text_triples, read_triplets

__all__ = ["open_training_data"]

KINDS = (
    "a collection with judgements, triples (.tsv), n-way lists (.jsonl), DPR's .json, triplets or a "
    "distillation set (.jsonl, .parquet, or a folder of them)"
)


def open_training_data(
    source: str | Path,
    *,
    split: str | None = None,
    documents: Place | None = None,
    queries: Place | None = None,
    relevant_from: int | None = None,
    policy: ReadPolicy | None = None,
) -> TrainingSet:
    """Read training data. The source's kind and its first record decide the format.

    Args:
        source: a collection with judgements, `.tsv` triples, `.jsonl` or `.parquet` records, DPR's `.json`,
            or a folder of records. All but `.parquet` may be compressed (`.gz`).
        split: the judgements of a collection, or the files of a folder. `train` by default.
        documents: for data that contain ids, where the texts are (see `read_corpus`). Triples are read as ids
            if this is given, and as texts otherwise.
        queries: where the queries' texts are, if they are elsewhere.
        relevant_from: the lowest grade of a collection's positives, 1 by default (see `read_collection`).
        policy: how to handle bad input. By default an error.

    Raises:
        DataError: nothing is there, the layout is unknown, or an error of the format's reader.
        ConfigError: an argument that this kind of data does not use, or a missing one that it needs.
        MissingExtraError: the data are Parquet, and pyarrow is not installed.
    """
    path = Path(source)
    is_folder = path.is_dir() or (isinstance(source, str) and source.startswith("ir_datasets:"))
    if not is_folder and not path.is_file():
        raise DataError(f"there is no such file or folder; training data are {KINDS}", path=path)
    if is_folder:
        _unused(source, "a folder or collection", documents=documents, queries=queries)
        return _open_folder(source, split or "train", relevant_from, policy)
    _unused(source, "a single file", split=split, relevant_from=relevant_from)
    name = path.name.removesuffix(".gz")
    if documents is not None:
        return _open_ids(path, documents, queries, policy)
    _unused(source, "a file without documents=", queries=queries)
    if name.endswith(".tsv"):
        return read_text_triples(path, policy)
    if name.endswith((".json", ".jsonl", ".parquet")):
        return _open_texts(path, policy)
    raise DataError(f"unsupported file type {path.suffix!r}; training data are {KINDS}", path=path)


def _open_folder(
    source: str | Path, split: str, relevant_from: int | None, policy: ReadPolicy | None
) -> TrainingSet:
    path = Path(source)
    if not path.is_dir() or any(path.glob("corpus.jsonl*")):
        return read_collection(source, split, relevant_from=relevant_from or 1, policy=policy)
    _unused(source, "a folder of records", relevant_from=relevant_from)
    files = shards(path, split)
    if not files:
        raise DataError(
            f"no corpus.jsonl here, and no files of a split {split!r}; training data are {KINDS}", path=path
        )
    if shards(path, "documents"):
        return read_distillation_folder(path, split, policy)
    return read_triplets(files, policy)


def _open_ids(path: Path, documents: Place, queries: Place | None, policy: ReadPolicy | None) -> TrainingSet:
    if path.name.removesuffix(".gz").endswith(".tsv"):
        return read_id_triples(path, documents, queries, policy)
    first = next(rows(path, policy), None)
    if first is not None and isinstance(first.value, list):
        return read_n_way(path, documents, queries, policy)
    if first is not None and isinstance(first.value, Mapping) and "document_ids" in first.value:
        return read_distillation([path], documents, queries, policy)
    raise DataError(
        "contains no ids: neither lists nor records with document_ids; omit documents=", path=path
    )


def _open_texts(path: Path, policy: ReadPolicy | None) -> TrainingSet:
    first = next(rows(path, policy), None)
    value = None if first is None else first.value
    if isinstance(value, list) or (isinstance(value, Mapping) and "document_ids" in value):
        raise ConfigError(f"{path}: contains ids; say where the texts are with documents=")
    if isinstance(value, Mapping) and "positive_ctxs" in value:
        return read_dpr(path, policy)
    if isinstance(value, Mapping) and any(column in value for column in QUERY_COLUMNS):
        return read_triplets([path], policy)
    found = "nothing" if value is None else ", ".join(value) if isinstance(value, Mapping) else repr(value)
    raise DataError(f"unknown layout: the first record has {found[:80]}", path=path, line=1)


def _unused(source: str | Path, what: str, **given: object) -> None:
    """Refuse arguments that would be ignored."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"{source}: {name}= has no meaning for {what}; omit it")
