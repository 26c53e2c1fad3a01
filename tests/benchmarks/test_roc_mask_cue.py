"""What the benchmark of [MASK] as a cue hides, and what it counts."""

from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.papers.roc_mask_cue import first, hidden

from counterpoint.encode.interactive import PairRow

CLS, SEP, MASK = 1, 2, 3
SPECIAL = frozenset({CLS, SEP, MASK})


@pytest.fixture
def row():
    """The question 10 11, and a document of ten word-pieces, four of them among the question's."""
    document = [10, 20, 11, 21, 10, 22, 23, 11, 24, 25]
    ids = np.array([CLS, 10, 11, SEP, *document, SEP])
    segments = np.array([0] * 4 + [1] * 11)
    texts = np.array([-1, 0, 0, -1, *[1] * 10, -1])
    return PairRow(ids, segments, texts)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_matches_are_hidden_or_as_many_other_word_pieces(row, share):
    tokenizer = SimpleNamespace(special_ids=SPECIAL, mask_id=MASK)
    matches = np.isin(row.ids, [10, 11]) & (row.texts == 1)
    for matching in (True, False):
        counts = []
        for seed in range(50):
            after = hidden(row, share, matching, tokenizer, np.random.default_rng(seed))
            changed = after.ids != row.ids
            assert (after.ids[changed] == MASK).all()
            assert (matches if matching else (row.texts == 1) & ~matches)[changed].all()
            counts.append(changed.sum())
        if matching and share < 1:
            assert 0 < np.mean(counts) < 4 and len(set(counts)) > 1  # each by a draw of its own
        else:
            assert set(counts) == {max(1, round(share * 4))}  # no word-piece would tell nothing


def test_how_often_the_answer_is_before_all_four_others():
    assert first(np.array([5.0, 4, 3, 2, 1, 1, 2, 3, 4, 5, 1, 0, 0, 0, 1])) == pytest.approx(1 / 3)
