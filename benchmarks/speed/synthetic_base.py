"""Encode the real documents that synthetic ones are mixed from, by the default model and by ColBERTer."""

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
from synthetic import BASE
from tqdm import tqdm

from counterpoint.data import open_collection
from counterpoint.files import write_atomically
from counterpoint.loading import load_model
from counterpoint.model import Model

MODELS = ("minilm", "colberter")


def write_base(data: str, folder: Path, documents: int) -> None:
    """Write word vectors, words and pooled vectors of a collection's first documents into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [document.full_text for document in islice(open_collection(data).documents(), documents)]
    arrays, models = {}, {}
    for name in MODELS:
        model = load_model(name)
        arrays |= {f"{name}.{part}": array for part, array in encoded(model, texts).items()}
        settings = model.index_settings(name)
        models[name] = {
            "sets": {part: asdict(of) for part, of in model.sets.items()},
            "codec": settings.codec,
            "search": settings.search,
            "analyzer": model.analyzer,
        }

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **arrays)

    write_atomically(folder / BASE, write)
    about = {"name": "synthetic", "data": data, "models": models}
    write_atomically(folder / "about.json", lambda path: path.write_text(json.dumps(about)))


def encoded(model: Model, texts: list[str]) -> dict[str, np.ndarray]:
    """Vectors and words of the texts that have both."""
    with tqdm(total=len(texts), unit=" documents", disable=None) as bar:
        made, _ = model.encode_counted(texts, bar.update)
    kept = np.flatnonzero(np.diff(made["words"].offsets) > 0)
    rows, pooled = made["words"].take(kept), made["mean"].take(kept).values
    if rows.ids is None:
        raise ValueError("word vectors without ids")
    words = words_of(model, [texts[i] for i in kept])
    return {
        "values": rows.values.astype(np.float16),
        "offsets": rows.offsets,
        "ids": rows.ids,
        "words": np.array([words[i] for i in rows.ids.tolist()]),
        "pooled": pooled.astype(np.float16),
    }


def words_of(model: Model, texts: list[str]) -> dict[int, str]:
    """The word that each id stands for; a hash of several stands for the first."""
    ids = model.row_ids(texts, "words", "document")
    spans = model.spans(texts, "words", "document")
    found: dict[int, str] = {}
    for some, places in zip(ids, spans, strict=True):
        for i, place in zip(some.tolist(), places, strict=True):
            found.setdefault(i, place.text.lower())
    return found
