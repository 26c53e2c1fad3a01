"""Ours: late interaction over token vectors and pooled ones, by every codec; those of few bits have lists."""

from functools import partial

import numpy as np

from systems import OURS, System
from systems.numpy_peer import RERANKED

CODECS = {"int8": False, "4-bit": True, "2-bit": True, "1-bit": True}  # whether documents are in lists, too
POOLED = {"int8": 1.05, "4-bit": 1.05}  # codecs that are measured with token pooling, too, and its factor
MORE = tuple(n + n // 5 for n in RERANKED)  # to reach the recall of float vectors with as many as RERANKED
SEARCHES = {
    "every document": {"workflow": "words", "exhaustive": True},
    **{
        f"{n:,} by pooled vectors": {"workflow": "dense-words", "candidates": n}
        for n in sorted(RERANKED + MORE)
    },
}
LISTS = {
    "lists": {"workflow": "words"},
    "lists, 1,000 candidates": {"workflow": "words", "candidates": 1000},
    "lists, 16 probes, 1,000 candidates": {"workflow": "words", "candidates": 1000, "probes": 16},
}


def model_of(files, queries=()):
    from given import Given

    from counterpoint.index import VectorSet
    from counterpoint.types import Ragged

    dim = files.about["dim"]
    sets = {"mean": VectorSet(dim, True, False), "tokens": VectorSet(dim, False, False)}
    chunks = (
        {
            "mean": Ragged(chunk.pooled, np.arange(len(chunk.ids) + 1)),
            "tokens": Ragged(chunk.values.astype(np.float32), chunk.offsets),
        }
        for chunk in files.chunks()
    )
    asked = {
        query.text: {
            "mean": Ragged.from_list([query.pooled[None]], dim=dim),
            "tokens": Ragged.from_list([query.tokens], dim=dim),
        }
        for query in queries
    }
    return Given(sets, chunks, asked, "tokens")


def build(codec, pool_factor, files, folder):
    from counterpoint.index import IndexSettings, build_index
    from counterpoint.types import Document

    documents = (Document(str(i), "") for i in range(files.documents))
    settings = IndexSettings(codec=codec, lexical=None, pool_factor=pool_factor)
    build_index(documents, model_of(files), folder / "index", settings, keep_model=False)


def opened(files, folder, workflow, **settings):
    from given import ranked_by

    from counterpoint.index import Index
    from counterpoint.search import Searcher, SearchSettings

    model = model_of(files, files.queries(10**9))
    searcher = Searcher(Index(folder / "index"), model, SearchSettings(weights={"tokens": 1.0}, **settings))
    ask = ranked_by(searcher, workflow)
    return lambda query, k: [int(name) for name in ask(query, k)]


def system(codec, pool_factor=1.0):
    searches = SEARCHES | (LISTS if CODECS[codec] else {})
    return System("tokens", OURS, partial(build, codec, pool_factor), opened, searches)


SYSTEMS = {f"ours, {codec}": system(codec) for codec in CODECS}
SYSTEMS |= {f"ours, {codec}, pool factor {x}": system(codec, x) for codec, x in POOLED.items()}
