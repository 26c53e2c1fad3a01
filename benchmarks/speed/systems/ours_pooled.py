"""Ours: pooled vectors, every one looked at."""

from systems import OURS, System
from systems.ours_tokens import model_of


def build(files, folder):
    from counterpoint.index import IndexSettings, build_index
    from counterpoint.types import Document

    documents = (Document(str(i), "") for i in range(files.documents))
    settings = IndexSettings(lexical=None, sets=("mean",))
    build_index(documents, model_of(files), folder / "index", settings, keep_model=False)


def opened(files, folder):
    from given import ranked_by

    from counterpoint.index import Index
    from counterpoint.search import Searcher

    ask = ranked_by(Searcher(Index(folder / "index"), model_of(files, files.queries(10**9))), "dense")
    return lambda query, k: [int(name) for name in ask(query, k)]


SYSTEMS = {"ours, pooled": System("pooled", OURS, build, opened, {"every document": {}})}
