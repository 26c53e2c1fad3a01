"""Token vectors of collections, encoded once and kept in files, for `isotropy.py`."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from counterpoint.data import open_collection
from counterpoint.encode import DualEncoder, EncodeOptions, Encoder, TextInput, TokenVectors, Transformer
from counterpoint.learn import DevelopmentSet, first_stage

QUERY, DOCUMENT = 32, 180  # positions
CHUNK = 512  # documents encoded at a time


@dataclass
class Texts:
    """Hidden states of many texts in half precision, one text's below the other's."""

    values: np.ndarray
    offsets: np.ndarray

    def of(self, place):
        return self.values[self.offsets[place] : self.offsets[place + 1]]

    def take(self, places):
        rows = [self.of(int(at)) for at in places]
        lengths = [len(found) for found in rows]
        return Texts(np.concatenate(rows), np.concatenate([[0], np.cumsum(lengths)]))


@dataclass
class Encoded:
    """A collection's candidates, documents to fit to, and queries.

    Attributes:
        fit: documents drawn at random, in the order drawn.
        candidates: those that BM25 found for some query.
        first: query id to places of its candidates.
        ids: of the candidates.
        queries: those that are judged, in the order of `first`.
        other: queries of the collection's other splits, for fitting; None where it has none.
    """

    name: str
    fit: Texts
    candidates: Texts
    first: dict
    ids: list
    queries: Texts
    other: Texts | None
    qrels: dict


def encoded(path, options, backbone):
    """Read the vectors that a backbone makes of a collection, or make them."""
    said = {
        "collection": path.name, "lengths": [QUERY, DOCUMENT], "backbone": identity(backbone),
        **{name: getattr(options, name) for name in ("layers", "depth", "queries", "documents")},
    }  # fmt: skip
    name = f"{path.name}-{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]}"
    file, facts = options.work / f"{name}.npz", options.work / f"{name}.json"
    if not facts.is_file():
        options.work.mkdir(parents=True, exist_ok=True)
        found, arrays = encode(path, options, backbone)
        np.savez(file, **arrays)
        facts.write_text(json.dumps({"settings": said, **found}))
    held, told = np.load(file), json.loads(facts.read_text())

    def texts(what):
        return Texts(held[what], held[f"{what}_offsets"]) if what in held else None

    documents = texts("documents")
    places = sorted({place for found in told["first"].values() for place in found})
    now = {place: at for at, place in enumerate(places)}
    return Encoded(
        name=path.name,
        fit=documents.take(range(told["fit"])),
        candidates=documents.take(places),
        first={query: [now[place] for place in found] for query, found in told["first"].items()},
        ids=[told["ids"][place] for place in places],
        queries=texts("queries"),
        other=texts("other"),
        qrels=told["qrels"],
    )


def identity(backbone):
    """Its name, or of a folder the fingerprint of what is in it, which training anew changes."""
    return Transformer(backbone).setup().fingerprint() if Path(backbone).is_dir() else backbone


def encode(path, options, backbone):
    collection = open_collection(path, passage_words=None)
    split = next(name for name in ("test", "dev") if name in collection.splits)
    texts = {document.id: document.full_text for document in collection.documents()}
    queries, qrels = collection.queries(split), collection.qrels(split)
    judged = sorted(query for query, grades in qrels.items() if any(grade > 0 for grade in grades.values()))
    draw = np.random.default_rng(0)
    if len(judged) > options.queries:
        judged = sorted(draw.choice(judged, options.queries, replace=False).tolist())
    kept = {query: qrels[query] for query in judged}
    run = first_stage(DevelopmentSet(queries, texts, kept), options.depth)
    first = {query: [document for document, _ in run[query]] for query in judged}
    order = [list(texts)[at] for at in draw.permutation(len(texts))[: options.documents].tolist()]
    ids = list(dict.fromkeys([*order, *(document for found in first.values() for document in found)]))
    place = {document: at for at, document in enumerate(ids)}
    other = [
        text
        for name in collection.splits
        if name != split
        for text in list(collection.queries(name).values())[: options.documents]
    ]
    model = DualEncoder(
        Encoder(
            Transformer(backbone, layers=options.layers),
            {"t": TokenVectors()},
            query=TextInput(QUERY),
            document=TextInput(DOCUMENT),
        )
    )
    arrays = {}
    for what, encode_some, some in (
        ("documents", model.encode_document, [texts[document] for document in ids]),
        ("queries", model.encode_query, [queries[query] for query in judged]),
        ("other", model.encode_query, other),
    ):
        if some:
            arrays |= in_chunks(what, encode_some, some, path.name)
    facts = {
        "ids": ids, "fit": len(order), "qrels": kept,
        "first": {query: [place[d] for d in found] for query, found in first.items()},
    }  # fmt: skip
    return facts, arrays


def in_chunks(what, encode_some, texts, name):
    parts = []
    for start in range(0, len(texts), CHUNK):
        parts.append(encode_some(texts[start : start + CHUNK], EncodeOptions(precision="fp32"))["t"])
        print(f"{name}: {what} {min(start + CHUNK, len(texts))} of {len(texts)}", flush=True)
    lengths = np.concatenate([part.lengths for part in parts])
    values = np.concatenate([part.values.astype(np.float16) for part in parts])
    return {what: values, f"{what}_offsets": np.concatenate([[0], np.cumsum(lengths)])}


# -- spaces: what a text's token vectors become ---------------------------------------------------------


def rows_of(texts, space):
    """What a map of a space is fitted to: tokens, means, or first tokens."""
    if space == "tokens":
        return torch.from_numpy(texts.values).float()
    if space == "cls":
        return torch.from_numpy(texts.values[texts.offsets[:-1]]).float()
    return means(torch.from_numpy(texts.values), texts.offsets)


def means(values, offsets):
    """The mean of each text's rows."""
    found = torch.zeros(len(offsets) - 1, values.shape[1])
    for at, (start, end) in enumerate(zip(offsets, offsets[1:], strict=False)):
        found[at] = values[start:end].float().mean(0) if end > start else 0
    return found
