"""Ours, in three layouts: token vectors in 4 bits and lists, the default without its encoder, BM25 alone.

As `OpenIndex` does, a commit is followed by the merges that are due by the rule.
"""

from functools import cached_property, partial

import numpy as np
from systems import OURS

from changed import Changed, Reader, Writer

CHANGING = (*OURS, "counterpoint.index.changing", "counterpoint.index.compacting", "filelock")


class Layout:
    """How documents are indexed and searched.

    Args:
        kind: of a system.
        files: the collection.
    """

    def __init__(self, kind, files):
        from counterpoint.index import IndexSettings, LexicalSettings, VectorSet
        from counterpoint.search import SearchSettings

        self.kind, self.search, self.sets = kind, None, {}
        self.lexical = LexicalSettings(analyzer="none", identifiers=False)
        codec, remembered = "float16", None
        if kind == "tokens":
            dim, codec, self.lexical = files.about["dim"], "4-bit", None
            self.sets = {"mean": VectorSet(dim, True, False), "tokens": VectorSet(dim, False, False)}
            self.search = SearchSettings(weights={"tokens": 1.0})
        elif kind == "words":
            of = files.about["models"]["minilm"]
            codec, remembered = of["codec"], of["search"]
            self.lexical = LexicalSettings(analyzer=of["analyzer"])
            self.sets = {name: VectorSet(**each) for name, each in of["sets"].items()}
        self.settings = IndexSettings(codec=codec, lexical=self.lexical, search=remembered)
        self.workflow = {"tokens": "words", "lexical": "lexical", "words": "hybrid"}[kind]

    def model(self, documents=(), queries=None):
        """Hands out the vectors of some documents; None for BM25."""
        from given import Given

        if self.kind == "lexical":
            return None
        return Given(self.sets, map(self.vectors, documents), {} if queries is None else queries, self.kind)

    def vectors(self, some):
        return self._sets(some.chunk.values, some.chunk.offsets, some.pooled, some.words)

    def asked(self, query):
        """Vectors of a query."""
        offsets = np.array([0, len(query.tokens)])
        return self._sets(query.tokens, offsets, query.pooled[None], query.words)

    def _sets(self, values, offsets, pooled, words):
        from vector_files import Chunk

        from counterpoint.types import Ragged

        values, offsets = values.astype(np.float32), offsets.astype(np.int64)
        if pooled is None:
            pooled = Chunk([], values, offsets).pooled
        mean = Ragged(pooled.astype(np.float32), np.arange(len(pooled) + 1))
        return {"mean": mean, self.kind: Ragged(values, offsets, words)}


class OurWriter(Writer):
    def __init__(self, kind, files, folder):
        self._layout, self._folder = Layout(kind, files), folder / "index"

    def create(self, documents):
        from itertools import tee

        from counterpoint.index import build_index

        texts, vectors = tee(documents)
        model = self._layout.model(vectors)
        listed = (each for some in texts for each in documents_of(some))
        build_index(listed, model, self._folder, self._layout.settings, keep_model=False)

    def add(self, documents):
        self._change(lambda change: change.add(documents_of(documents)), self._layout.model([documents]))

    def delete(self, ids):
        self._change(lambda change: change.delete(ids))

    def _change(self, work, model=None):
        from counterpoint.index.changing import changing

        with changing(self._index, model) as change:
            work(change)

    def tidy(self):
        self._compact(everything=False)

    def compact(self, alone):
        self._compact(everything=True)

    def _compact(self, everything):
        from counterpoint.index.compacting import compact

        self._index = self._index.refreshed()
        compact(self._index, everything=everything)

    @cached_property
    def _index(self):
        from counterpoint.index import Index

        return Index(self._folder)


def documents_of(some):
    from counterpoint.types import Document

    return [Document(name, " ".join(terms)) for name, terms in zip(some.ids, some.terms, strict=True)]


class OurReader(Reader):
    def __init__(self, kind, files, folder):
        from counterpoint.index import Index

        self._layout, self._known = Layout(kind, files), {}
        self._model = self._layout.model(queries=self._known)
        self._open(Index(folder / "index"))

    def _open(self, index):
        from counterpoint.search import Searcher

        self._index = index
        self._searcher = Searcher(index, self._model, self._layout.search)

    def refresh(self):
        now = self._index.refreshed()
        if now is not self._index:
            self._open(now)

    def search(self, query, k):
        text = " ".join(query.terms) if self._model is None else query.text
        if self._model is not None and text not in self._known:
            self._known[text] = self._layout.asked(query)
        found = self._searcher.search(text, k, workflow=self._layout.workflow)
        return [hit.document.id for hit in found.hits]


def system(kind, **more):
    return Changed(kind, CHANGING, partial(OurWriter, kind), partial(OurReader, kind), **more)


SYSTEMS = {
    "ours, 4-bit": system("tokens"),
    "ours, default without its encoder": system("words"),
    "ours, BM25": system("lexical"),
}
