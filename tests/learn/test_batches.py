import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import HashModel
from tests.learn.training import training_set, training_sets

from counterpoint.errors import ConfigError
from counterpoint.index import Analyzer, VectorSet
from counterpoint.learn import RandomBatches, TopicBatches, make_batch, open_training_data
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.topics import _tf_idf, cluster, term_vectors


def always(*lists):
    """A draw that gives each example its own list."""
    return lambda example, rng: lists[example]


def generator(seed=0):
    return np.random.default_rng(seed)


# -- one batch -----------------------------------------------------------------------------------------


def test_a_batch_by_hand():
    data = training_set(
        [("q1", ("a",), (), {"a": 3, "b": 1.5}), ("q2", ("b",), (), {"c": 2}), ("q3", ("c",))],
        {name: f"text {name}" for name in "abcd"},
        also={"q2": ["a"]},
    )
    batch = make_batch(data, [2, 0, 1], [always(["b", "d"], ["c"], []), always(["d"], [], [])], generator())
    assert batch.query_ids == ("q3", "q1", "q2") and batch.document_ids == ("c", "a", "b", "d")
    assert batch.queries[0] == "what is q3" and batch.documents[3] == "text d"
    # q3 has only its positive; q1 has b and d, and d again from the second source; q2 has c.
    assert batch.targets.own.tolist() == [[0, -1, -1], [1, 2, 3], [2, 0, -1]]
    assert batch.targets.positive.tolist() == [0, 1, 2]
    # a is relevant for q2 and not its positive; nothing else is known.
    assert batch.targets.allowed.tolist() == [[True] * 4, [True] * 4, [True, False, True, True]]
    nan = math.nan
    expected = torch.tensor([[nan, nan, nan], [3, 1.5, nan], [nan, 2, nan]])
    torch.testing.assert_close(batch.targets.teacher, expected, equal_nan=True)


def test_types_do_not_depend_on_the_data():
    data = training_set([("q1", ("a",), ("b",), {"a": 2, "b": 1})])
    targets = make_batch(data, [0], [always(["b"])], generator()).targets
    assert (targets.own.dtype, targets.allowed.dtype) == (torch.int64, torch.bool)
    assert targets.teacher is not None and targets.teacher.dtype == torch.float32
    assert make_batch(training_set([("q1", ("a",))]), [0], [], generator()).targets.teacher is None


def test_one_query_twice_is_no_negative_of_itself():
    data = training_set([("q1", ("a",)), ("q1", ("b",))])
    assert make_batch(data, [0, 1], [], generator()).targets.allowed.tolist() == [
        [True, False],
        [False, True],
    ]


@given(training_sets(scored=True), st.data())
def test_a_batch_agrees_with_its_definition(data, choose):
    documents = sorted(data.documents)
    positions = choose.draw(st.lists(st.integers(0, len(data) - 1), min_size=1, max_size=5, unique=True))
    drawn = {}
    for at in positions:
        allowed = [d for d in documents if d not in data.relevant_to(data.examples[at])]
        drawn[at] = choose.draw(st.lists(st.sampled_from(allowed), max_size=3)) if allowed else []
    batch = make_batch(
        data, positions, [lambda at, rng: drawn[at]], generator(choose.draw(st.integers(0, 9)))
    )
    assert len(set(batch.document_ids)) == len(batch.document_ids)
    assert [data.documents[d] for d in batch.document_ids] == list(batch.documents)
    own, candidates = batch.targets.own.tolist(), batch.targets.allowed.tolist()
    for row, at in enumerate(positions):
        example = data.examples[at]
        columns = [column for column in own[row] if column >= 0]
        assert own[row] == columns + [-1] * (len(own[row]) - len(columns))
        ids = [batch.document_ids[column] for column in columns]
        assert ids[0] in example.positives and ids[1:] == list(dict.fromkeys(drawn[at]))
        for column, document in enumerate(batch.document_ids):
            wrong_negative = document in data.relevant_to(example) and document != ids[0]
            assert candidates[row][column] == (not wrong_negative)
        for place, document in enumerate(ids):
            score = example.scores.get(document, math.nan)
            found = math.nan if batch.targets.teacher is None else batch.targets.teacher[row, place].item()
            assert found == pytest.approx(score, rel=1e-6, abs=1e-6, nan_ok=True)
    used = {column for row in own for column in row if column >= 0}
    assert used == set(range(len(batch.documents)))  # nothing is encoded for nobody


def test_positives_are_drawn_equally_often():
    data = training_set([("q", tuple("abc"))])
    rng = generator(1)
    drawn = [make_batch(data, [0], [], rng).document_ids[0] for _ in range(3000)]
    for document in "abc":  # the standard deviation of a count is 26
        assert abs(drawn.count(document) - 1000) < 110


# -- the order of examples -----------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
def test_an_epoch_is_decided_and_has_every_example_once(count, size, topics, epoch):
    data = training_set([(f"q{i}", (f"d{i}",)) for i in range(count)])
    for sampler in (RandomBatches(), TopicBatches(topics=min(topics, count))):
        batches = list(sampler.batches(data, size, epoch, seed=5))
        seen = [at for batch in batches for at in batch]
        assert all(len(batch) == size for batch in batches) and len(batches) == count // size
        assert len(set(seen)) == len(seen) and set(seen) <= set(range(count))
        again = type(sampler)(**{k: v for k, v in vars(sampler).items() if not k.startswith("_")})
        assert list(again.batches(data, size, epoch, seed=5)) == batches


def test_epochs_and_seeds_differ():
    data = training_set([(f"q{i}", ("d",)) for i in range(40)])
    for sampler in (RandomBatches(), TopicBatches(topics=2)):
        orders = {str(list(sampler.batches(data, 4, *key))) for key in ((0, 0), (1, 0), (0, 1), (2, 7))}
        assert len(orders) == 4


def test_seeds_of_different_purposes_differ_and_stay():
    assert seed_of(1, "order", 2) == seed_of(1, "order", 2)
    assert (
        len({seed_of(1, "order", 2), seed_of(1, "draw", 2), seed_of(12, "order"), seed_of(1, "order2")}) == 4
    )
    assert all(0 <= seed_of(i) < 2**63 for i in range(100))  # torch takes no larger ones


# -- topics --------------------------------------------------------------------------------------------

TOPICS = ("whale sea ocean fish", "train coast platform ticket", "bread flour water salt")


def topical(each=30):
    """Queries of three words each, of one topic, mixed."""
    rng = generator()
    queries = {}
    for at in range(3 * each):
        queries[f"q{at}"] = " ".join(rng.choice(TOPICS[at % 3].split(), 3, replace=False))
    return training_set([(query, ("d",)) for query in queries], {"d": "x"}, queries)


def test_a_batch_has_one_topic():
    data = topical()
    sampler = TopicBatches(topics=3)
    topics = sampler.topics_of(data, seed=1)
    assert all(len(set(topics[at::3])) == 1 for at in range(3)) and len(set(topics)) == 3
    batches = list(sampler.batches(data, 10, epoch=0, seed=1))
    assert len(batches) == 9 and all(len({at % 3 for at in batch}) == 1 for batch in batches)
    later = list(sampler.batches(data, 10, epoch=1, seed=1))  # the same topics, other company
    assert not {frozenset(batch) for batch in batches} & {frozenset(batch) for batch in later}
    # 30 of a topic make 4 batches of 7 and leave 2; the 6 that are left make none.
    assert len(list(sampler.batches(data, 7, epoch=0, seed=1))) == 12
    # 30 of a topic make 3 batches of 8 and leave 6; the 18 that are left make two, of more than one topic.
    batches = list(sampler.batches(data, 8, epoch=0, seed=1))
    assert len(batches) == 11 and sum(len({at % 3 for at in batch}) > 1 for batch in batches) == 2


def test_a_query_with_several_examples_has_one_topic():
    data = training_set(
        [("q1", ("a",)), ("q2", ("b",)), ("q1", ("c",))], queries={"q1": "sea", "q2": "bread"}
    )
    topics = TopicBatches(topics=2).topics_of(data, seed=0)
    assert topics[0] == topics[2] != topics[1]


def test_settings_are_only_what_was_declared():
    sampler = TopicBatches(topics=3)
    before = (sampler.to_dict(), hash(sampler))
    list(sampler.batches(topical(), 10, 0, 0))
    assert (sampler.to_dict(), hash(sampler)) == before and sampler == TopicBatches(topics=3)
    assert TopicBatches.from_dict(sampler.to_dict()) == sampler
    with pytest.raises(ConfigError, match="at least 1, found 0"):
        TopicBatches(topics=0)
    with pytest.raises(ConfigError, match="91 topics of 90 queries"):
        TopicBatches(topics=91).topics_of(topical(), 0)


def test_what_was_found_for_other_data_or_seeds_is_not_taken():
    sampler = TopicBatches(topics=3)
    small, large = sampler.topics_of(topical(5), 0), sampler.topics_of(topical(6), 0)
    assert (len(small), len(large)) == (15, 18)
    np.testing.assert_array_equal(
        sampler.topics_of(topical(5), 1), TopicBatches(topics=3).topics_of(topical(5), 1)
    )


@pytest.mark.minilm
def test_topics_by_a_model():
    data = topical(4)
    topics = TopicBatches(topics=4, model="minilm").topics_of(data, seed=0)
    assert all(len({at % 3 for at in np.flatnonzero(topics == topic)}) == 1 for topic in topics)


def test_a_model_needs_pooled_vectors(monkeypatch):
    class Words(HashModel):
        sets = {"words": VectorSet(16, False, False)}

    monkeypatch.setattr("counterpoint.loading.load_model", lambda name: Words())
    with pytest.raises(ConfigError, match="no pooled vectors, only words"):
        TopicBatches(topics=2, model="words").topics_of(topical(), 0)
    monkeypatch.setattr("counterpoint.loading.load_model", lambda name: HashModel())
    assert len(set(TopicBatches(topics=2, model="both").topics_of(topical(), 0))) == 2


@given(st.integers(0, 1000), st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_clusters_are_a_fixed_point(seed, count):
    rows = generator(seed).normal(size=(40, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = cluster(rows, count, seed)
    centres = {k: rows[labels == k].sum(0) for k in set(labels.tolist())}
    for row, label in zip(rows, labels.tolist(), strict=True):
        cosines = {k: row @ centre / np.linalg.norm(centre) for k, centre in centres.items()}
        assert cosines[label] >= max(cosines.values()) - 1e-9


def test_term_vectors_keep_cosines_of_tf_idf():
    """Six texts have no more than 64 directions, so nothing is lost."""
    texts = ["whale sea", "whale train", "bread", "bread bread", "the", "sea"]
    found = term_vectors(texts, seed=1)

    def idf(df):
        return math.log(1 + (6 - df + 0.5) / (df + 0.5))

    whale, sea, train, bread = idf(2), idf(2), idf(1), idf(2)  # in two texts, two, one, and two
    rows = np.array(
        [
            [whale, sea, 0, 0],
            [whale, 0, train, 0],
            [0, 0, 0, bread],
            [0, 0, 0, 2 * bread],
            [0, 0, 0, 0],  # a stop word alone
            [0, sea, 0, 0],
        ]
    )
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(found @ found.T, rows @ rows.T, atol=1e-6)
    assert not term_vectors(["the", "of"], seed=0).any()


def test_term_vectors_are_those_of_the_singular_value_decomposition():
    """Against numpy's own, where there are more directions than are kept."""
    rng = generator()
    words = [f"word{i}" for i in range(400)]
    texts = [" ".join(rng.choice(words, 6, p=np.arange(1, 401) / 80200)) for _ in range(500)]
    weights = _tf_idf(texts).toarray()
    np.testing.assert_allclose(np.linalg.norm(weights, axis=1), 1)
    left, values, _ = np.linalg.svd(weights, full_matrices=False)
    best = (left * values)[:, :64]
    best /= np.linalg.norm(best, axis=1, keepdims=True)
    found = term_vectors(texts, seed=0)
    assert found.shape == (500, 64)
    cosines = [(x @ x.T)[np.triu_indices(500, 1)] for x in (best, found)]
    assert np.corrcoef(*cosines)[0, 1] > 0.7  # a flat spectrum is the hardest case


@pytest.mark.shared
def test_topics_of_real_queries_share_words(shared):
    """A question has more words in common with its neighbours in the batch than with any others."""
    data = open_training_data(shared / "data" / "nq-qed").subset(3000)
    analyzer = Analyzer("english")
    words = [set(analyzer.terms(data.queries[example.query])) for example in data.examples]

    def overlap(sampler):
        pairs = [pair for batch in sampler.batches(data, 16, 0, 0) for pair in pairwise(batch)]
        return np.mean([len(words[a] & words[b]) / max(1, len(words[a] | words[b])) for a, b in pairs])

    assert overlap(TopicBatches()) > 3 * overlap(RandomBatches())
