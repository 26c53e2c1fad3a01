"""What the tests of exports share: documents of every kind, indexes of them, what their files hold."""

from contextlib import contextmanager

from tests.fakes import HashModel, StaticModel, UniModel

import counterpoint as cp
from counterpoint.index import IndexSettings, LexicalSettings, build_index
from counterpoint.types import Document

DOCUMENTS = [
    Document("a", "the quick brown fox jumps over the lazy dog", metadata={"year": 1999, "lang": "en"}),
    Document("b", "slow green turtles\nwalk \u2028 under \\ a \"bridge\"\r\n", title="Turtles\tand é 日本"),
    Document("c", ""),
    Document(
        "d", "brown dogs and brown foxes",
        metadata={
            "year": 2**60, "x": 0.1, "draft": True, "none": None, "list": [1, "é", {"a": {}}], "metadata": {},
        },
    ),
    Document(" e#0\t", "a fox in a box", parent=" e", start=0, metadata={"year": 2001}),
    Document("e#1", "the box is brown", parent=" e", start=2**40, metadata={"year": 2001}),
    Document("7", "brown", title="Fox"),
    *(Document(f"n{i}", f"fox{i % 7} and turtle{i % 3} in box{i}", metadata={"year": i}) for i in range(600)),
]  # fmt: skip
QUERIES = ("brown fox", "turtle2 box", "lazy bridge", "box17 fox3")
MODELS = {
    "hash": HashModel,
    "uni": lambda: UniModel(8, repeats=True),
    "static": lambda: StaticModel(whole=True),
}
SETTINGS = {
    "lexical": LexicalSettings(k1=1.4, b=0.3, analyzer="simple", identifiers=False),
    "metadata": {"year": "int"},
    "passage_words": 90,
}


def built(folder, model, documents=DOCUMENTS, **settings):
    """An index of a model, open."""
    build_index(documents, model, folder, IndexSettings(**{**SETTINGS, **settings}))
    return cp.open(folder, model)


@contextmanager
def without_encoding(model):
    """In this block the model encodes no document."""
    kept = type(model).encode_document

    def refuse(self, texts):
        raise AssertionError(f"{len(texts)} documents are encoded")

    type(model).encode_document = refuse
    try:
        yield
    finally:
        type(model).encode_document = kept


def held(notes):
    """All files of an index with their checksums; folders that are named at random are left out of names."""
    files = notes.index.manifest.files
    return sorted((path.split("/")[0], path.split("/", 2)[2], entry.sha256) for path, entry in files.items())


def documents_of(notes):
    return [notes.index.document(int(position)) for position in notes.index.positions]


def answers(notes, workflows=("hybrid", "lexical", "dense", "words")):
    if "l" in notes.index.layouts:
        workflows = [how for how in workflows if how != "dense"]
    found = [notes.search(query, 20, workflow=how) for how in workflows for query in QUERIES]
    return [[(hit.id, hit.score) for hit in answer] for answer in found]
