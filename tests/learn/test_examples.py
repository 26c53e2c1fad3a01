from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learn.training import training_set, training_sets

from counterpoint.errors import ConfigError, DataError
from counterpoint.learn import Example, TrainingSet, open_training_data


def plain(text):
    return " ".join(text.lower().split())


# -- what is known to be relevant ----------------------------------------------------------------------


def test_relevant_goes_through_equal_queries_and_equal_documents():
    data = TrainingSet.gather(
        {"q1": "What is  BM25?", "q2": "what is bm25?", "q3": "something else"},
        {"a": "one", "b": "two", "c": "one", "d": "three", "e": "two"},
        [Example("q1", ("a",)), Example("q2", ("b",)), Example("q3", ("d",), ("a",))],
    )
    # q1 and q2 are one question, so a and b answer both; c has the text of a, e that of b.
    assert data.relevant["q1"] == data.relevant["q2"] == {"a", "b", "c", "e"}
    assert data.relevant["q3"] == {"d"}
    assert data.relevant_to(data.examples[2]) == {"d"}


def test_what_is_relevant_without_being_a_positive_counts_and_so_do_its_twins():
    data = training_set(
        [("q", ("a",))], {"a": "1", "b": "2", "c": "2", "d": "4"}, also={"q": ["b", "not in the corpus"]}
    )
    assert data.relevant["q"] == {"a", "b", "c", "not in the corpus"}


@given(training_sets())
def test_relevance_agrees_with_comparing_everything(data):
    for example in data.examples:
        answers = {
            data.documents[positive]
            for other in data.examples
            if plain(data.queries[other.query]) == plain(data.queries[example.query])
            for positive in other.positives
        }
        expected = {document for document, text in data.documents.items() if text in answers}
        assert data.relevant_to(example) == expected


def test_a_set_made_by_hand_counts_its_own_positives():
    data = TrainingSet({"q": "x"}, {"a": "1", "b": "2"}, (Example("q", ("a", "b")),), relevant={})
    assert data.relevant_to(data.examples[0]) == {"a", "b"}


# -- faults --------------------------------------------------------------------------------------------


def test_blank_texts_are_left_out_and_counted():
    data = TrainingSet.gather(
        {"q1": "one", "q2": "two", "q3": " \n", "q4": "four"},
        {"a": "text", "b": "", "c": "\t", "d": "more"},
        [
            Example("q1", ("a", "b"), ("c", "d")),
            Example("q2", ("b",)),
            Example("q3", ("a",)),
            Example("q4", ()),
        ],
    )
    assert data.examples == (Example("q1", ("a",), ("d",)),)
    assert data.provenance["left_out"] == 3 and set(data.queries) == {"q1"}


def test_ids_without_text_are_told():
    with pytest.raises(DataError, match="document 'b' .of query 'q'."):
        TrainingSet.gather({"q": "x"}, {"a": "1"}, [Example("q", ("a",), ("b",))])
    with pytest.raises(DataError, match="query 'q'"):
        TrainingSet({}, {"a": "1"}, (Example("q", ("a",)),), {})
    with pytest.raises(DataError, match="right split"):
        TrainingSet.gather({"q": "x"}, {"a": ""}, [Example("q", ("a",))])
    with pytest.raises(DataError, match="'q' has no positive"):
        TrainingSet({"q": "x"}, {"a": "1"}, (Example("q", ()),), {})


# -- smaller sets --------------------------------------------------------------------------------------

TWINS = {"q1": "How?", "q2": "how? ", "q3": "Why?", "q4": "When?", "q5": "WHY?"}


def test_a_set_is_shown_in_a_line_without_its_texts():
    shown = repr(training_set([("q", ("a",))], {"a": "a long text", "b": "another"}))
    assert shown.startswith("TrainingSet(1 examples, 1 queries, 2 documents, provenance=")
    assert "a long text" not in shown


def twins():
    return training_set([(query, (f"d{query}",)) for query in TWINS], queries=TWINS)


def ids(data):
    return [example.query for example in data.examples]


def test_queries_with_one_text_are_held_out_together():
    for seed in range(20):
        rest, held = twins().split(1, seed)
        assert set(ids(held)) in ({"q1", "q2"}, {"q3", "q5"}, {"q4"})
        assert set(ids(rest)) == set(TWINS) - set(ids(held))
    assert len({tuple(ids(twins().split(1, seed)[1])) for seed in range(20)}) == 3  # the seed decides
    rest, held = twins().split(0.6)  # 1.8 of three texts are two
    assert len({plain(TWINS[query]) for query in ids(held)}) == 2
    assert rest.documents == held.documents == twins().documents and set(rest.queries) == set(ids(rest))


def test_ids_can_be_named_and_their_twins_are_not_trained_on():
    rest, held = twins().split(["q2", "q4"])
    assert ids(held) == ["q2", "q4"] and ids(rest) == ["q3", "q5"]
    assert rest.relevant["q3"] == {"dq3", "dq5"}
    assert rest.provenance["steps"] == ["without 3 examples of 2 queries"]


def test_without_goes_by_id_and_by_text():
    assert ids(twins().without({"q4": "anything", "other": " HOW? "})) == ["q3", "q5"]


def test_subset_keeps_the_order():
    data = training_set([(f"q{i:02}", ("a",)) for i in range(30)])
    chosen = ids(data.subset(10, seed=3))
    assert chosen == sorted(chosen) and len(set(chosen)) == 10
    assert chosen == ids(data.subset(10, seed=3)) != ids(data.subset(10, seed=4))


def test_sizes_that_cannot_be():
    for held in (0, 0.0, 3, 4, 0.01, -1):
        with pytest.raises(ConfigError, match="3 different queries"):
            twins().split(held)
    with pytest.raises(ConfigError, match="no example has the query 'q9'"):
        twins().split(["q1", "q9"])
    with pytest.raises(ConfigError, match="nothing would be held out"):
        twins().split([])
    with pytest.raises(ConfigError, match="nothing is left"):
        twins().split(list(TWINS))
    with pytest.raises(ConfigError, match="expected texts by query id, .* found list"):
        twins().without(["q1"])
    for n in (0, 6):
        with pytest.raises(ConfigError, match="between 1 and 5"):
            twins().subset(n)


@given(training_sets(), st.integers(1, 4), st.integers(0, 3))
def test_no_text_is_on_both_sides(data, held, seed):
    texts = {plain(data.queries[query]) for query in ids(data)}
    if held >= len(texts):
        return
    rest, out = data.split(held, seed)
    sides = [{plain(data.queries[query]) for query in ids(side)} for side in (rest, out)]
    assert not sides[0] & sides[1] and sides[0] | sides[1] == texts and len(sides[1]) == held
    assert sorted(ids(rest) + ids(out)) == sorted(ids(data))


# -- identity ------------------------------------------------------------------------------------------


def test_the_fingerprint_tells_sets_apart():
    base = training_set([("q", ("a",), ("b",), {"a": 1.0})])
    assert base.fingerprint == training_set([("q", ("a",), ("b",), {"a": 1.0})]).fingerprint
    example = base.examples[0]
    others = [
        replace(base, queries={"q": "another"}),
        replace(base, documents={**base.documents, "c": "new"}),
        replace(base, examples=(example, example)),
        replace(base, examples=(replace(example, negatives=()),)),
        replace(base, examples=(replace(example, scores={"a": 2.0}),)),
        replace(base, relevant={"q": frozenset("ab")}),
    ]
    assert len({data.fingerprint for data in [base, *others]}) == 1 + len(others)
    assert replace(base, provenance={"file": "elsewhere"}).fingerprint == base.fingerprint


# -- real data -----------------------------------------------------------------------------------------


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "train", "documents"),
    [("nq-qed", 7167, 8100), ("squad11-dev", 7673, 2067), ("medquad", 14944, 16407)],
)
def test_real_collections(shared, name, train, documents):
    data = open_training_data(shared / "data" / name)
    assert (len(data), len(data.documents)) == (train, documents)  # as that folder's own table says
    rest, held = data.split(0.1, seed=1)
    trained = {plain(data.queries[query]) for query in ids(rest)}
    assert not any(plain(data.queries[query]) in trained for query in ids(held))
    texts = {plain(text) for text in data.queries.values()}
    assert abs(len(texts - trained) - 0.1 * len(texts)) <= 0.5
