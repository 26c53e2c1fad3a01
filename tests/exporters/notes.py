"""An index whose scores an engine can reproduce: float32 vectors, fixed weights, no matching by id."""

import numpy as np
from tests.fakes import HashModel

from counterpoint.index import IndexSettings, build_index
from counterpoint.types import Document

WORDS = [
    f"{a}{b}" for a in ("fox", "whale", "train", "sea", "coast", "night") for b in ("", "s", "land", "er")
]
QUERIES = ["whale sea coast", "trainland night night", "foxer foxes unknownword"]


def documents(count=40):
    rng = np.random.default_rng(0)
    made = [
        Document(
            f"doc {i}/ü",
            " ".join(rng.choice(WORDS, rng.integers(3, 30))),
            "Title" if i % 3 else "",
            metadata={"year": 1990 + i, "draft": i % 2 == 0, "a.b": "x", "tags": ["one", "two"]},
        )
        for i in range(count)
    ]
    passage = Document("long#1", "whale sea", parent="long", start=7)
    return [*made, Document("empty", ""), passage]


def build(folder, given, **settings):
    with_fields = {"metadata": {"year": "int", "draft": "bool"}, "codec": "float32", **settings}
    build_index(given, HashModel(), folder, IndexSettings(**with_fields))


def agree(ours, theirs, tolerance=1e-4):
    """Whether two rankings, ids and scores, are the same, apart from the order of equal scores."""
    ours, theirs = list(ours), list(theirs)
    np.testing.assert_allclose([s for _, s in theirs], [s for _, s in ours], rtol=tolerance, atol=tolerance)
    known = dict(ours)
    lowest = min(known.values()) + tolerance
    for name, score in theirs:
        assert abs(known[name] - score) < tolerance * 10 if name in known else score <= lowest
    return True


def hits(answer):
    return [(hit.id, hit.score) for hit in answer]
