import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.index.paths import Meter
from counterpoint.index.score_column import ScoreColumn

DOCUMENTS = 40


@given(st.lists(st.dictionaries(st.integers(0, DOCUMENTS - 1), st.floats(0, 30, width=32)), max_size=6))
def test_columns_are_summed_as_loops_do(terms):
    """To the last bit, in whichever form each is."""
    expected = np.zeros(DOCUMENTS, np.float32)
    forms = {name: np.zeros(DOCUMENTS, np.float32) for name in ("chosen", "rows", "every", "compiled")}
    kernels = Meter().kernels(10**12)
    for term in terms:
        rows = np.array(sorted(term), np.int32)
        scores = np.array([term[row] for row in rows.tolist()], np.float32)
        for row in rows:
            expected[row] = expected[row] + np.float32(term[int(row)])
        for name, column in (
            ("chosen", ScoreColumn.of(rows, scores, DOCUMENTS)),
            ("rows", ScoreColumn(rows, scores)),
            ("every", of_every(rows, scores)),
            ("compiled", ScoreColumn(rows, scores)),
        ):
            column.add_to(forms[name], kernels if name == "compiled" else None)
            assert [column.score_of(i) for i in range(DOCUMENTS)] == [
                term.get(i, 0.0) for i in range(DOCUMENTS)
            ]
    for total in forms.values():
        np.testing.assert_array_equal(total, expected)


def of_every(rows, scores):
    every = np.zeros(DOCUMENTS, np.float32)
    every[rows] = scores
    return ScoreColumn(None, every)


def test_a_frequent_term_has_a_score_for_every_document():
    scores = np.ones(11, np.float32)
    rows = np.arange(11, dtype=np.int32)
    assert ScoreColumn.of(rows[:10], scores[:10], 40).nbytes == 80
    frequent = ScoreColumn.of(rows, scores, 40)
    assert frequent.rows is None and frequent.nbytes == 160 and frequent.scores.sum() == 11
