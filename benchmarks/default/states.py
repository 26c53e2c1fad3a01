"""What the default model makes of the training collections, encoded once and kept in a folder.

Training small parts over a frozen backbone needs no backbone: each text's pooled vector and the vectors of
its words before the map are the same in every step. Of a large collection only some documents are encoded:
those judged for the drawn queries, then those that BM25 finds for them in all documents, rank by rank.
"""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import torch

from counterpoint.data import Collection, open_collection
from counterpoint.index import Index, IndexSettings, LexicalSettings, build_index
from counterpoint.model import Model
from counterpoint.search import Searcher
from counterpoint.types import Document, Ragged
from counterpoint.vectors import Vectors

Sets = Mapping[str, Ragged]

CHOOSING = ("train", "dev", "test")
SPLITS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("conala", "nl2bash", "perspectrum", "mqp"), CHOOSING),
    **dict.fromkeys(("squad11-dev", "nq-qed", "medquad", "scifact"), ("train",)),
    **dict.fromkeys(("acl-title-abstract", "arxiv-title-abstract"), ("train",)),
}
"""The training collections and the splits that queries are drawn from."""
QUERIES = 400  # drawn of each collection
DOCUMENTS, SHORT = 1_500, 4_000  # encoded of each; more where a text is short
SHORT_TEXTS = ("conala", "nl2bash", "perspectrum", "mqp")
DEPTH = 100  # documents that BM25 finds for a query, of which the first are encoded


@final
@dataclass(frozen=True)
class Drawn:
    """Some queries of a collection and some of its documents.

    Attributes:
        documents: with ids; judged and found ones.
        queries: texts by id.
        qrels: grades of the queries, of documents that were not encoded as well.
    """

    documents: list[Document]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]


@final
class Cached:
    """A model that reads a collection's vectors from its cache, so that an index of them takes seconds.

    Args:
        model: the model whose map of the words is applied.
        texts: the texts of both sides, in the order of the states.
        states: the vector sets of both sides, those of words before the map.
    """

    def __init__(self, model: Model, texts: Mapping[str, list[str]], states: Mapping[str, Sets]):
        self.model, self.sets = model, model.sets
        self._places = {side: {text: at for at, text in enumerate(some)} for side, some in texts.items()}
        self._states = states

    def fingerprint(self) -> str:
        """That of the model."""
        return self.model.fingerprint()

    def encode_query(self, texts: Sequence[str]) -> dict[str, Ragged]:
        """The vectors of queries that are in the cache."""
        return self._of("query", texts)

    def encode_document(self, texts: Sequence[str]) -> dict[str, Ragged]:
        """The vectors of documents that are in the cache."""
        return self._of("document", texts)

    def _of(self, side: str, texts: Sequence[str]) -> dict[str, Ragged]:
        at = np.array([self._places[side][text] for text in texts], np.int64)
        found = {name: packed.take(at) for name, packed in self._states[side].items()}
        return {**found, "words": mapped(self.model, found["words"])}


@final
class Asking:
    """A model whose queries' vectors are changed; documents and fingerprint are its own."""

    def __init__(self, model: Any, change: Callable[[dict[str, Ragged]], dict[str, Ragged]]):
        self._model, self._change, self.sets = model, change, model.sets

    def fingerprint(self) -> str:
        """That of the model, whose indexes stay valid."""
        return self._model.fingerprint()

    def encode_query(self, texts: Sequence[str]) -> dict[str, Ragged]:
        """The model's vectors, changed."""
        return self._change(dict(self._model.encode_query(texts)))


def mapped(model: Model, words: Ragged) -> Ragged:
    """Word vectors after the model's map, at unit length."""
    rows = Vectors(
        torch.from_numpy(words.values.astype(np.float32))[None],
        torch.ones(1, len(words.values), dtype=torch.bool),
    )
    with torch.inference_mode():
        for step in model.steps("words"):
            rows = step(rows)
    return replace(words, values=rows.values[0].numpy())


# -- drawing and encoding --------------------------------------------------------------------------------


def cached(name: str, data: Path, work: Path, model: Model) -> tuple[Drawn, Cached]:
    """A collection's drawn texts and their vectors; encoded if they are not in the folder yet."""
    folder = work / name
    drawn = _drawn(name, data, folder)
    texts = {
        "document": [document.full_text for document in drawn.documents],
        "query": list(drawn.queries.values()),
    }
    encode = {"document": model.encoder.encode_document, "query": model.encoder.encode_query}
    states = {side: _kept(folder / f"{side}.npz", texts[side], encode[side]) for side in texts}
    return drawn, Cached(model, texts, states)


def index_of(drawn: Drawn, model: Cached, folder: Path, **changes: Any) -> Path:
    """An index of the drawn documents with the default's settings, built if it is not there."""
    if not (folder / "manifest.json").is_file():
        settings = model.model.index_settings("minilm", **changes)
        build_index(drawn.documents, cast(Any, model), folder, settings)
    return folder


def _drawn(name: str, data: Path, folder: Path) -> Drawn:
    record = folder / "drawn.json"
    if not record.is_file():
        collection = open_collection(data / name)
        queries, qrels = _queries(collection, SPLITS[name])
        limit = SHORT if name in SHORT_TEXTS else DOCUMENTS
        ids = _chosen(collection, queries, qrels, folder, limit)
        _write(record, json.dumps({"ids": ids, "queries": queries, "qrels": qrels}).encode())
    found = json.loads(record.read_bytes())
    wanted = set(found["ids"])
    documents = [each for each in open_collection(data / name).documents() if each.id in wanted]
    return Drawn(documents, found["queries"], found["qrels"])


def _queries(
    collection: Collection, splits: Iterable[str]
) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    texts, grades = {}, {}
    for split in splits:
        texts |= collection.queries(split)
        grades |= collection.qrels(split)
    names = random.Random(1).sample(sorted(grades), min(QUERIES, len(grades)))
    return {each: texts[each] for each in names}, {each: dict(grades[each]) for each in names}


def _chosen(
    collection: Collection,
    queries: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    folder: Path,
    limit: int,
) -> list[str]:
    """Ids of the documents to encode: judged ones, then by their rank in BM25, then any."""
    every = {document.id for document in collection.documents()}
    chosen = dict.fromkeys(id for grades in qrels.values() for id in grades if id in every)
    if len(every) > limit:
        index = folder / "bm25"
        settings = IndexSettings(lexical=LexicalSettings(analyzer="english-long"))
        if not (index / "manifest.json").is_file():
            build_index(collection.documents(), None, index, settings)
        with Index(index) as opened:
            run = Searcher(opened).run(queries, DEPTH, workflow="lexical")
        for rank in range(DEPTH):
            for query in run:
                if rank < len(run[query]) and len(chosen) < limit:
                    chosen.setdefault(run[query][rank][0])
    rest = sorted(every - chosen.keys())
    more = random.Random(1).sample(rest, max(0, min(len(rest), limit - len(chosen))))
    return [*chosen, *more]


def _kept(path: Path, texts: list[str], encode: Callable[[list[str]], Sets]) -> dict[str, Ragged]:
    """The states of some texts as float16, from a file if they are there."""
    if not path.is_file():
        arrays: dict[str, Any] = {}
        for name, packed in encode(texts).items():
            arrays[f"{name}.values"] = packed.values.astype(np.float16)
            arrays[f"{name}.offsets"] = packed.offsets
            if packed.ids is not None:
                arrays[f"{name}.ids"] = packed.ids
        made = path.with_suffix(".partial.npz")
        np.savez(made, **arrays)
        made.rename(path)
    with np.load(path) as arrays:
        found = dict(arrays)
    names = dict.fromkeys(key.partition(".")[0] for key in found)
    return {
        name: Ragged(
            found[f"{name}.values"].astype(np.float32) if name == "mean" else found[f"{name}.values"],
            found[f"{name}.offsets"],
            found.get(f"{name}.ids"),
        )
        for name in names
    }


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".partial")
    made.write_bytes(content)
    made.rename(path)
