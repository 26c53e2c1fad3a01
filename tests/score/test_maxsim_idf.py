"""Idf on query rows: by loops, what is not known, and tables of any length."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tests.score import oracle
from torch.testing import assert_close

from counterpoint.errors import ArtifactError, NotFittedError, ShapeError
from counterpoint.part import Part
from counterpoint.score import MaxSim
from counterpoint.vectors import Vectors

KNOWN, UNSEEN = {3: 0.25, 1: 2.0}, 4.0


def weighted(power=1.0, **more):
    scorer = MaxSim("w", idf=power, **more).setup()
    scorer.set_idf(torch.tensor(list(KNOWN)), torch.tensor(list(KNOWN.values())), UNSEEN)
    return scorer


@settings(deadline=None, max_examples=60)
@given(oracle.sets(), oracle.sets(), st.sampled_from([0.5, 1.0]), st.booleans(), st.booleans())
def test_by_loops(q, d, power, exact, floor0):
    def one(row, document):
        best = oracle.maxsim([row], document, exact=exact, floor0=floor0)
        return KNOWN.get(row[1], UNSEEN) ** power * best

    expected = [[float(sum(one(row, document) for row in query)) for document in d] for query in q]
    scorer = weighted(power, exact=exact, floor0=floor0)
    queries, documents = {"w": oracle.vectors(q, extra=1)}, {"w": oracle.vectors(d, extra=2)}
    found = scorer(queries, documents)
    assert_close(found, torch.tensor(expected).reshape(found.shape), rtol=1e-4, atol=1e-4)
    matches = scorer.matches(queries, documents)
    assert_close(matches.sum(1), found)
    assert not matches[~queries["w"].mask].any()
    assert_close(scorer._in_blocks(queries["w"], documents["w"], 4, rows=True), matches)


def test_an_explanation_has_the_idf_of_each_row():
    query = {"w": oracle.vectors([[([1, 0, 0], 1), ([0, 2, 0], 3), ([0, 0, 1], 9)]])}
    tree = weighted(0.5).explain(query, query)
    assert [leaf.idf for leaf in tree.leaves()] == pytest.approx([2**0.5, 0.5, 2.0])
    assert [leaf.score for leaf in tree.leaves()] == pytest.approx([2**0.5, 0.5 * 4, 2.0])
    assert [leaf.idf for leaf in MaxSim("w").explain(query, query).leaves()] == [None] * 3


def test_it_must_be_known():
    some = {"w": oracle.vectors([[([1, 0, 0], 1)]])}
    with pytest.raises(NotFittedError, match=r'stage Fit\("w", what="idf"\)'):
        MaxSim("w", idf=1.0).setup()(some, some)
    without = {"w": Vectors(some["w"].values, some["w"].mask)}
    with pytest.raises(ShapeError, match="idf needs vectors with ids"):
        weighted()(without, some)


def test_a_table_of_any_length_is_saved(tmp_path):
    scorer = weighted()
    scorer.save(tmp_path / "s")
    again = Part.load(tmp_path / "s")
    some = {"w": oracle.vectors([[([1, 0, 0], 1), ([0, 2, 0], 3), ([0, 0, 1], 9)]])}
    assert_close(again(some, some), scorer(some, some))
    assert again(some, some).item() == pytest.approx(2.0 * 1 + 0.25 * 4 + 4.0 * 1)
    fresh = MaxSim("w", idf=1.0).setup()
    fresh.load_state_dict(scorer.state_dict())  # as a run is taken up again
    assert_close(fresh(some, some), scorer(some, some))
    path = tmp_path / "s" / "weights.safetensors"
    save_file({**load_file(path), "idf_": torch.zeros(2, 2)}, path)
    with pytest.raises(ArtifactError, match=r"'idf_' has shape \(2, 2\)"):
        Part.load(tmp_path / "s")
