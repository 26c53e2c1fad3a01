import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from counterpoint.errors import ShapeError
from counterpoint.types import Document, Explanation, Ragged, Span
from counterpoint.vectors import Vectors

lengths = st.lists(st.integers(0, 4), max_size=6)


def ragged(sizes, ids=True, seed=0):
    rng = np.random.default_rng(seed)
    sets = [rng.normal(size=(n, 3)).astype(np.float32) for n in sizes]
    return Ragged.from_list(sets, [rng.integers(0, 2**32, n) for n in sizes] if ids else None, dim=3), sets


@given(sizes=lengths)
def test_a_ragged_gives_back_its_sets(sizes):
    packed, sets = ragged(sizes)
    assert len(packed) == len(sizes) and packed.lengths.tolist() == sizes and packed.dim == 3
    for i, rows in enumerate(sets):
        np.testing.assert_array_equal(packed[i], rows)
        assert len(packed.ids_of(i)) == len(rows)


@given(sizes=lengths.filter(bool), data=st.data())
def test_take_picks_sets_in_any_order(sizes, data):
    packed, sets = ragged(sizes)
    wanted = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=8))
    taken = packed.take(np.array(wanted, dtype=np.int64))
    assert len(taken) == len(wanted)
    for i, source in enumerate(wanted):
        np.testing.assert_array_equal(taken[i], sets[source])
        np.testing.assert_array_equal(taken.ids_of(i), packed.ids_of(source))


@given(parts=st.lists(lengths, min_size=1, max_size=4))
def test_concatenate_is_one_after_the_other(parts):
    packed = [ragged(sizes, seed=i)[0] for i, sizes in enumerate(parts)]
    whole = Ragged.concatenate(packed)
    rows = [part[i] for part in packed for i in range(len(part))]
    assert len(whole) == len(rows)
    for i, wanted in enumerate(rows):
        np.testing.assert_array_equal(whole[i], wanted)


@given(sizes=lengths, ids=st.booleans())
def test_padding_and_packing_are_inverse(sizes, ids):
    packed, _ = ragged(sizes, ids)
    padded = Vectors.pad(packed)
    assert padded.mask.sum(1).tolist() == sizes
    again = padded.ragged()
    np.testing.assert_array_equal(again.values, packed.values)
    np.testing.assert_array_equal(again.offsets, packed.offsets)
    assert (again.ids is None) == (not ids)
    if ids:
        np.testing.assert_array_equal(again.ids, packed.ids)


def test_what_stands_at_padding_is_dropped():
    values = torch.tensor([[[1.0], [float("nan")]], [[2.0], [3.0]]])
    packed = Vectors(values, torch.tensor([[True, False], [True, True]])).ragged()
    assert packed.values.ravel().tolist() == [1, 2, 3] and packed.offsets.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ragged(np.zeros((2, 3)), np.array([0, 1])),
        lambda: Ragged(np.zeros((2, 3)), np.array([1, 2])),
        lambda: Ragged(np.zeros((2, 3)), np.array([0, 2]), np.array([1])),
        lambda: Ragged.concatenate([]),
        lambda: ragged([1], ids=False)[0].ids_of(0),
        lambda: Vectors(torch.zeros(2, 3, 4), torch.zeros(2, 2, dtype=torch.bool)),
        lambda: Vectors(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool), torch.zeros(2, 1).long()),
    ],
)
def test_arrays_that_do_not_fit_are_refused(make):
    with pytest.raises((ShapeError, TypeCheckError)):  # the second where shapes are checked as types
        make()


def test_title_and_text_are_joined_by_one_space():
    assert Document("d", "text", "title").full_text == "title text"
    assert Document("d", "text").full_text == "text"
    assert Document("d", "", "title").full_text == "title"


def test_explanations_scale_and_name_their_rows():
    tree = Explanation("a", 3.0, (Explanation("b", 1.0, rows=(0, 1)), Explanation("c", 2.0, rows=(1, None))))
    assert [leaf.score for leaf in tree.scaled(2).leaves()] == [2.0, 4.0] and tree.scaled(2).score == 6.0
    query, document = [Span("x", 0, 1), Span("y", 2, 3)], [Span("p", 0, 1), Span("q", 2, 3)]
    first, second = tree.with_spans(query, document).leaves()
    assert (first.query, first.document) == (query[0], document[1])
    assert (second.query, second.document) == (query[1], None)
