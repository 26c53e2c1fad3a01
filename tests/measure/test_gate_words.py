import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.measure.gate_words import GateWord, gate_words


def text(*rows):
    words, ids, weights = zip(*rows, strict=True)
    return words, np.array(ids), np.array(weights)


def test_words_by_hand():
    texts = [
        text(("The", 1, 0.0), ("dogs", 2, 0.9), ("run", 3, 0.1)),
        text(("the", 1, 0.25), ("dog", 2, 0.7), ("Dog", 2, 0.5)),  # word-pieces: two rows of one text
        text(
            ("a", 4, 0.0),
        ),
    ]
    assert gate_words(texts, threshold=0.0) == [
        GateWord("a", 1, 0.0, 1.0),
        GateWord("the", 2, 0.125, 0.5),
        GateWord("dog", 3, np.mean([0.9, 0.7, 0.5]), 0.0),
        GateWord("run", 1, 0.1, 0.0),
    ]
    closed = gate_words(texts, threshold=0.25, least=2)  # at the threshold is dropped, too
    assert [(word.word, word.dropped) for word in closed] == [("the", 1.0), ("dog", 0.0)]
    assert gate_words([], 0.0) == []


rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=9)


@settings(deadline=None)
@given(st.lists(rows, max_size=5), st.sampled_from([0.0, 0.5]))
def test_words_are_what_loops_count(texts, threshold):
    found = gate_words([text(*[(f"w{i}", i, r) for i, r in rows]) for rows in texts], threshold)
    every = [row for rows in texts for row in rows]
    assert sum(word.rows for word in found) == len(every)
    for word in found:
        values = [r for i, r in every if f"w{i}" == word.word]
        assert word.rows == len(values)
        np.testing.assert_allclose(word.mean, np.mean(values))
        np.testing.assert_allclose(word.dropped, np.mean([r <= threshold for r in values]))
    assert [word.dropped for word in found] == sorted((word.dropped for word in found), reverse=True)
