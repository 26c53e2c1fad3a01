"""Making what `engine.py` measures: token vectors, terms and queries of a collection.

Documents are encoded 1,000 at a time. A file that is there is not made again: a stopped run goes on.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from tokens_model import tokens_model
from tqdm import tqdm
from vector_files import CHUNK

from counterpoint.data import Collection, open_collection
from counterpoint.errors import DataError
from counterpoint.files import write_atomically
from counterpoint.index.lexical import LexicalSettings
from counterpoint.model import Model
from counterpoint.types import Document, Ragged

DIM = 128  # components that the PCA keeps, fitted to the tokens of the first file


def prepare(data: str, folder: Path, split: str, documents: int, queries: int) -> None:
    """Write the vector files of a collection's first documents, and of some queries of a split.

    Queries whose relevant documents are all among those documents come first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    collection = open_collection(data)
    qrels, texts = collection.qrels(split), collection.queries(split)  # an unknown split is told at once
    model = tokens_model()
    ids = encode_documents(collection, model, folder, documents)
    write_terms(collection, folder / "terms.jsonl", len(ids))
    known = set(ids)
    inside = [name for name in texts if name in qrels and known.issuperset(qrels[name])]
    chosen = (inside + [name for name in texts if name not in set(inside)])[:queries]
    if not chosen:
        raise DataError(f"{data}: the split {split!r} has no queries")
    write_queries({name: texts[name] for name in chosen}, model, folder)
    about = {
        "name": collection.name,
        "data": str(Path(data).resolve()) if Path(data).exists() else data,
        "dim": DIM,
        "qrels": {name: dict(qrels.get(name, {})) for name in chosen},
    }
    write_atomically(folder / "about.json", lambda path: path.write_text(json.dumps(about)))
    print(
        f"{folder}: {len(ids):,} documents, {len(chosen)} queries, {len(inside)} of the split are judged here"
    )


def documents_of(collection: Collection) -> Iterator[Document]:
    """Documents with a text; those without have no vector that a system could index."""
    return (document for document in collection.documents() if document.full_text.strip())


def encode_documents(collection: Collection, model: Model, folder: Path, count: int) -> list[str]:
    """Write files until there are as many documents (0 for all), and give the ids of those that there are."""
    stream, ids = documents_of(collection), []
    with tqdm(total=count or collection.size, unit=" documents", disable=None) as bar:
        while batch := list(islice(stream, CHUNK)):
            if count and len(ids) >= count:
                break
            path = folder / f"docs-{len(ids) // CHUNK:04d}.npz"
            if not path.exists():
                vectors = model.encode_document([document.full_text for document in batch])["tokens"]
                reduced = projected(vectors, folder)
                save(path, reduced, ids=np.array([document.id for document in batch]))
            ids += [document.id for document in batch]
            bar.update(len(batch))
    return ids


def projected(vectors: Ragged, folder: Path) -> Ragged:
    """The first components of a PCA without a mean, brought to unit length."""
    path = folder / "pca.npy"
    if not path.exists():
        values = vectors.values.astype(np.float64)
        _, directions = np.linalg.eigh(values.T @ values / len(values))
        kept = directions[:, ::-1][:, :DIM].astype(np.float32)
        write_array(path, kept)
    values = vectors.values @ np.load(path)
    return Ragged(values / np.linalg.norm(values, axis=1, keepdims=True), vectors.offsets)


def write_array(path: Path, array: np.ndarray) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.save(file, array)

    write_atomically(path, write)


def save(path: Path, vectors: Ragged, **more: np.ndarray) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            values = vectors.values.astype(np.float16)
            np.savez(file, values=values, offsets=vectors.offsets, **more)

    write_atomically(path, write)


def write_terms(collection: Collection, path: Path, count: int) -> None:
    """BM25's terms of each document, as our analysis makes them."""
    analyzer = LexicalSettings().analyzed()

    def write(temporary: Path) -> None:
        with temporary.open("w") as file:
            for document in islice(documents_of(collection), count):
                file.write(json.dumps(analyzer.terms(document.full_text)) + "\n")

    write_atomically(path, write)


def write_queries(texts: dict[str, str], model: Model, folder: Path) -> None:
    analyzer = LexicalSettings().analyzed()
    asked = [{"id": name, "text": text, "terms": analyzer.terms(text)} for name, text in texts.items()]
    save(folder / "queries.npz", projected(model.encode_query(list(texts.values()))["tokens"], folder))
    write_atomically(folder / "queries.json", lambda path: path.write_text(json.dumps(asked)))
