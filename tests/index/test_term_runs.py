from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.index import term_runs
from counterpoint.index.term_runs import merged, sorted_run

DOCUMENTS = st.lists(st.lists(st.sampled_from("a b ba bb c é 東 𝔘 z".split()), max_size=6), max_size=9)


def run_of(documents, first=0):
    vocabulary = {}
    tokens = [vocabulary.setdefault(term, len(vocabulary)) for terms in documents for term in terms]
    lengths = np.array([len(terms) for terms in documents], np.uint32)
    return sorted_run(vocabulary, np.array(tokens, np.uint32), lengths, first)


def entries_of(parts):
    """(term, document, count) of all postings, in their order."""
    found = []
    for part in parts:
        terms = [
            term.decode() for term, df in zip(part.terms, part.frequencies, strict=True) for _ in range(df)
        ]
        found += zip(terms, part.documents.tolist(), part.counts.tolist(), strict=True)
    return found


def expected(documents):
    counted = [(t, at, n) for at, terms in enumerate(documents) for t, n in Counter(terms).items()]
    return sorted(counted, key=lambda entry: (entry[0].encode(), entry[1]))


@given(DOCUMENTS, st.lists(st.integers(0, 9), max_size=3), st.integers(1, 5))
def test_runs_are_merged_into_what_one_run_has(documents, cuts, postings):
    edges = [0, *sorted(min(cut, len(documents)) for cut in cuts), len(documents)]
    runs = [run_of(documents[a:b], a) for a, b in zip(edges, edges[1:], strict=False)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_runs, "POSTINGS", postings)
        patch.setattr(term_runs, "READ", 2)
        parts = list(merged(runs))
    assert entries_of(parts) == expected(documents)
    assert [n for run in runs for n in run.lengths] == [len(terms) for terms in documents]


def test_a_run_on_the_disk_is_the_same(tmp_path):
    documents = [["a", "b", "a"], [], ["東", "b"]]
    run = run_of(documents)
    stored = run.stored(tmp_path, "run0")
    assert list(stored.terms()) == list(run.terms()) == [b"a", b"b", "東".encode()]
    assert entries_of(merged([stored])) == expected(documents)
    assert sorted(path.name for path in tmp_path.iterdir())[0] == "run0.counts.npy"
