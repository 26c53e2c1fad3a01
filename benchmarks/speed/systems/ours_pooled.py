"""Ours: pooled vectors, every one looked at."""

import numpy as np

from systems import OURS, System


def model_of(files, queries=()):
    from given import Given

    from counterpoint.index import VectorSet
    from counterpoint.types import Ragged

    def one_each(rows):
        return Ragged(rows, np.arange(len(rows) + 1))

    chunks = ({"mean": one_each(rows)} for rows in files.pooled_chunks())
    asked = {query.text: {"mean": one_each(query.pooled[None])} for query in queries}
    dim = len(files.queries(1)[0].pooled)
    return Given({"mean": VectorSet(dim, True, False)}, chunks, asked, "pooled")


def build(files, folder):
    from counterpoint.index import IndexSettings, build_index
    from counterpoint.types import Document

    documents = (Document(str(i), "") for i in range(files.documents))
    settings = IndexSettings(lexical=None, codec="int8")
    build_index(documents, model_of(files), folder / "index", settings, keep_model=False)


def opened(files, folder):
    from given import ranked_by

    from counterpoint.index import Index
    from counterpoint.search import Searcher

    ask = ranked_by(Searcher(Index(folder / "index"), model_of(files, files.queries(10**9))), "dense")
    return lambda query, k: [int(name) for name in ask(query, k)]


SYSTEMS = {"ours, pooled": System("pooled", OURS, build, opened, {"every document": {}})}
