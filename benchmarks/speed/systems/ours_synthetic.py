"""Ours: the default's layout, and ColBERTer's, over a synthetic collection; everything but the encoder."""

from functools import partial

import numpy as np

from systems import OURS, System


def model_of(name, files, asked=False):
    from given import Given

    from counterpoint.index import VectorSet
    from counterpoint.types import Ragged

    def sets(rows, pooled):
        words = Ragged(rows.values, rows.offsets, rows.ids)
        return {"mean": Ragged(pooled, np.arange(len(pooled) + 1)), "words": words}

    kinds = {part: VectorSet(**of) for part, of in files.about["models"][name]["sets"].items()}
    chunks = (sets(files.rows(name, *of), files.pooled_of(name, *of)) for of in files.numbers())
    known = {}
    if asked:  # what a query's text is, is the default's to say
        texts = {query.id: query.text for query in files.queries(10**9)}
        known = {texts[i]: sets(rows, pooled) for i, (rows, pooled) in files.asked(name).items()}
    return Given(kinds, chunks, known, name)


def build(name, lexical, files, folder):
    from counterpoint.index import IndexSettings, LexicalSettings, build_index
    from counterpoint.types import Document

    of = files.about["models"][name]
    settings = IndexSettings(
        codec=of["codec"],
        search=of["search"],
        lexical=LexicalSettings(analyzer=of["analyzer"]) if lexical else None,
    )
    documents = (Document(str(i), " ".join(words)) for i, words in enumerate(files.terms()))
    build_index(documents, model_of(name, files), folder / "index", settings, keep_model=False)


def opened(name, files, folder, workflow):
    from counterpoint.index import Index
    from counterpoint.search import Searcher

    searcher = Searcher(Index(folder / "index"), model_of(name, files, asked=True))

    def ask(query, k):
        found = searcher.search(query.text, k, workflow=workflow)
        return [hit.document.id for hit in found.hits]

    return ask


def system(name, lexical, *workflows):
    searches = {workflow: {"workflow": workflow} for workflow in workflows}
    build_it, open_it = partial(build, name, lexical), partial(opened, name)
    return System("words", OURS, build_it, open_it, searches, shown=10)


SYSTEMS = {
    "ours, default without its encoder": system("minilm", True, "hybrid", "words"),
    "ours, ColBERTer without its encoder": system("colberter", False, "hybrid", "dense-words"),
}
