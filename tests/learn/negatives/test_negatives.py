import gzip
import json
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import HashModel
from tests.learn.training import training_set, training_sets

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.learn import (
    BM25Negatives,
    Filtered,
    FromData,
    Grader,
    Mining,
    ModelNegatives,
    Negatives,
    RandomNegatives,
    Teacher,
    open_training_data,
)
from counterpoint.learn.negatives import mined


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture
def mine(tmp_path):
    """What a source may use, with everything but the data given."""

    def make(data, model=None, step=0, folder=tmp_path / "mined", **more):
        return Mining(data, model, folder, seed=0, step=step, **more)

    return make


@dataclass(frozen=True)
class TableTeacher(Teacher):
    """Scores by document; NaN for others, as `Grader` says."""

    table: dict

    def load(self, data):
        class Table(Grader):
            def __call__(grader, query, documents):
                return [self.table.get(document, math.nan) for document in documents]

        return Table()


# -- every source --------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(training_sets(scored=True), st.integers(1, 4), st.integers(0, 99))
def test_none_is_relevant_none_comes_twice_and_draws_are_decided(tmp_path_factory, data, count, seed):
    folder = tmp_path_factory.mktemp("mined")
    sources = [
        FromData(count),
        FromData(count, choose="first"),
        FromData(count, choose="balanced"),
        RandomNegatives(count),
        BM25Negatives(count),
        ModelNegatives(count),
        Filtered(
            RandomNegatives(count), TableTeacher({d: len(t) for d, t in data.documents.items()}), below=99
        ),
    ]
    for source in sources:
        try:
            draw = source.prepare(Mining(data, HashModel(), folder, seed=0))
        except DataError as error:
            assert "finds no negative for" in str(error)
            continue
        for at, example in enumerate(data.examples):
            found = draw(at, rng(seed))
            assert len(found) <= count and len(set(found)) == len(found)
            assert not set(found) & data.relevant_to(example) and set(found) <= data.documents.keys()
            assert list(draw(at, rng(seed))) == list(found)


@given(training_sets(), st.integers(1, 9))
def test_random_negatives_are_as_many_as_there_can_be(data, count):
    wanted = [len(data.documents) - len(data.relevant_to(example)) for example in data.examples]
    if 2 * wanted.count(0) > len(wanted):
        return
    draw = RandomNegatives(count).prepare(Mining(data, None, None, seed=0))
    assert [len(draw(at, rng())) for at in range(len(data))] == [min(count, n) for n in wanted]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FromData(0), "FromData: count must be at least 1, found 0"),
        (lambda: FromData(choose="best"), "first, random or balanced, found 'best'"),
        (lambda: RandomNegatives(-1), "RandomNegatives: count must be at least 1, found -1"),
        (lambda: BM25Negatives(0, 0, -1), "count .* found 0\nBM25Negatives: depth .* found 0\nBM25.*skip"),
        (lambda: BM25Negatives(depth=10, skip=10), "skip 10 leaves nothing of depth 10"),
        (lambda: BM25Negatives(analyzer="latin"), "unknown analyzer 'latin'"),
        (lambda: ModelNegatives(every=0), "every must be at least 1, found 0"),
        (lambda: Filtered(FromData(), margin=1.0, below=2.0), "found margin and below"),
        (lambda: Filtered(FromData(), relative=1.5), "at most 1, found 1.5"),
        (lambda: Filtered(FromData(), count=0, margin=-1.0), "count .* found 0\nFiltered: margin .* -1.0"),
    ],
)
def test_settings_that_cannot_be(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_settings_are_saved():
    for source in (
        FromData(3, choose="balanced"),
        Filtered(Filtered(ModelNegatives(8, every=500, skip=2), margin=3.0), count=1, below=0.5),
        BM25Negatives(analyzer="none"),
    ):
        assert Negatives.from_dict(json.loads(json.dumps(source.to_dict()))) == source
    assert Filtered(ModelNegatives(every=500)).every == 500 and Filtered(FromData()).every is None


# -- without a search ----------------------------------------------------------------------------------


def test_negatives_of_the_data(mine):
    data = training_set([("q", ("a",), ("b", "c", "a", "d", "b")), ("r", ("c",), ("d",))])
    draw = FromData(2, choose="first").prepare(mine(data))
    assert draw(0, rng()) == ["b", "c"] and draw(1, rng()) == ["d"]
    counts = Counter(tuple(sorted(FromData(2).prepare(mine(data))(0, rng(seed)))) for seed in range(600))
    assert counts.keys() == {("b", "c"), ("b", "d"), ("c", "d")} and min(counts.values()) > 150


def test_balanced_draws_bins_first(mine):
    """Nine easy documents at margin 10 and above, one hard one at 0: half of the draws are the hard one."""
    easy = tuple(f"e{i}" for i in range(9))
    scores = {"p": 10.0, "hard": 10.0} | {name: -i / 100 for i, name in enumerate(easy)}
    data = training_set([("q", ("p",), ("hard", *easy), scores)])
    draw = FromData(choose="balanced").prepare(mine(data))
    drawn = Counter(draw(0, rng(seed))[0] for seed in range(1000))
    assert abs(drawn["hard"] - 500) < 64  # 4 standard deviations
    assert all(abs(drawn[name] - 500 / 9) < 30 for name in easy)
    both = FromData(2, choose="balanced").prepare(mine(data))
    # The bin of the hard one is empty once it is drawn: with it first or second, 1/2 + 1/2 · 1/2.
    assert abs(sum("hard" in both(0, rng(seed)) for seed in range(1000)) - 750) < 55


def test_bins_have_equal_width(mine):
    scores = {"p": 9.0} | {str(i): float(i) for i in (0, 1, 2, 3, 9, 10)}
    data = training_set([("q", ("p",), tuple("0 1 2 3 9 10".split()), scores)])
    draw = FromData(choose="balanced").prepare(mine(data))
    drawn = Counter(draw(0, rng(seed))[0] for seed in range(2000))
    # Width 1: bins {0}, {1}, {2}, {3}, and {9, 10}, since the last is closed.
    for name, share in {"0": 1 / 5, "1": 1 / 5, "2": 1 / 5, "3": 1 / 5, "9": 1 / 10, "10": 1 / 10}.items():
        assert abs(drawn[name] - 2000 * share) < 80


def test_balanced_needs_scores_and_most_examples_need_negatives(mine):
    data = training_set([("q", ("a",), ("b",), {"a": 1.0})])
    with pytest.raises(DataError, match="negative 'b' of query 'q' has no teacher's score"):
        FromData(choose="balanced").prepare(mine(data))
    bare = training_set([("q1", ("a",)), ("q2", ("b",)), ("q3", ("c",), ("a",))])
    with pytest.raises(DataError, match="FromData finds no negative for 2 of 3 .* query 'q[12]'"):
        FromData().prepare(mine(bare))
    half = training_set([("q1", ("a",)), ("q3", ("c",), ("a",))])
    assert FromData().prepare(mine(half))(0, rng()) == []
    with pytest.raises(DataError, match="RandomNegatives finds no negative for 1 of 1"):
        RandomNegatives().prepare(mine(training_set([("q", ("a", "b"))])))


def test_random_negatives_are_uniform(mine):
    data = training_set([("q", ("a", "b"), tuple("cdefgh"))])
    draw, state = RandomNegatives(3).prepare(mine(data)), rng(1)
    drawn = Counter(document for _ in range(2000) for document in draw(0, state))
    assert drawn.keys() == set("cdefgh") and all(abs(n - 1000) < 90 for n in drawn.values())


# -- BM25 ----------------------------------------------------------------------------------------------

TEXTS = {
    "one": "whale whale sea",
    "two": "whale sea sea ship harbour",
    "three": "sea",
    "four": "ship harbour coast train ticket",
    "five": "bread",
}


def bm25(query, text, k1=0.9, b=0.4):
    """Lucene's formula, word by word."""
    texts = [words.split() for words in TEXTS.values()]
    average = sum(map(len, texts)) / len(texts)
    total = 0.0
    for word in query.split():
        df, tf = sum(word in words for words in texts), text.split().count(word)
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        total += idf * tf / (tf + k1 * (1 - b + b * len(text.split()) / average))
    return total


def ranking(query):
    found = {name: bm25(query, text) for name, text in TEXTS.items()}
    return [name for name in sorted(found, key=lambda name: -found[name]) if found[name] > 0]


def whales():
    queries = {"q": "whale sea", "r": "ship harbour sea", "s": "train"}
    return training_set([("q", ("three",)), ("r", ("four",)), ("s", ("four",))], TEXTS, queries)


def test_bm25_takes_what_ranks_highest(mine):
    assert ranking("whale sea") == ["one", "two", "three"]
    assert ranking("ship harbour sea") == ["two", "four", "three", "one"]
    draw = BM25Negatives(5, depth=3).prepare(mine(whales()))
    # The positive three is out of q's, four out of r's; one is beyond the depth of r's; s has none.
    assert [sorted(draw(at, rng())) for at in range(3)] == [["one", "two"], ["three", "two"], []]
    draw = BM25Negatives(5, depth=3, skip=1).prepare(mine(whales()))
    assert [sorted(draw(at, rng())) for at in range(3)] == [["two"], ["three"], []]


def test_mined_lists_are_drawn_from_uniformly(mine):
    draw = BM25Negatives(1, depth=4).prepare(mine(whales()))
    drawn = Counter(draw(1, rng(seed))[0] for seed in range(900))
    assert drawn.keys() == {"two", "three", "one"} and all(abs(n - 300) < 60 for n in drawn.values())


def counted(monkeypatch):
    """How often something was mined."""
    calls, original = [], mined.ranked
    monkeypatch.setattr(mined, "ranked", lambda *args: calls.append(args[3]) or original(*args))
    return calls


def test_what_was_mined_is_read_again(mine, tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    first = BM25Negatives(2).prepare(mine(whales()))
    (path,) = (tmp_path / "mined").iterdir()  # the index is gone
    header, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert json.loads(header)["data"] == whales().fingerprint and json.loads(header)["step"] == 0
    assert list(map(json.loads, lines)) == [
        ["q", *ranking("whale sea")],
        ["r", *ranking("ship harbour sea")],
        ["s", "four"],
    ]
    # How many are drawn, and which are skipped, changes nothing that was mined.
    for source in (BM25Negatives(2), BM25Negatives(1), BM25Negatives(1, skip=1)):
        source.prepare(mine(whales()))
    assert calls == ["lexical"]
    again = BM25Negatives(2).prepare(mine(whales()))
    assert [again(at, rng(5)) for at in range(3)] == [first(at, rng(5)) for at in range(3)]


def test_what_was_mined_for_something_else_is_not(mine, tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    BM25Negatives().prepare(mine(whales()))
    (path,) = (tmp_path / "mined").iterdir()
    other = training_set([("q", ("one",)), ("r", ("four",))], TEXTS, {"q": "whale sea", "r": "ship harbour"})
    draw = BM25Negatives(5).prepare(mine(other))
    assert len(calls) == 2 and sorted(draw(0, rng())) == ["three", "two"]
    assert list((tmp_path / "mined").iterdir()) == [path]  # in its place
    BM25Negatives(depth=2).prepare(mine(other))
    BM25Negatives(analyzer="none").prepare(mine(other))
    BM25Negatives().prepare(mine(other, step=7))
    assert len(calls) == 5 and len(list((tmp_path / "mined").iterdir())) == 4


@pytest.mark.parametrize(
    "body",
    ['["q", "one"', '["q", "one"]', '{"q": ["one"]}', '["q", 5]\n["r"]\n["s"]', '["q", "six"]\n["r"]\n["s"]'],
)
def test_damaged_lists_are_told(mine, tmp_path, body):
    BM25Negatives().prepare(mine(whales()))
    (path,) = (tmp_path / "mined").iterdir()
    header = gzip.decompress(path.read_bytes()).decode().splitlines()[0]
    path.write_bytes(gzip.compress(f"{header}\n{body}\n".encode()))
    with pytest.raises(ArtifactError, match="damaged .* remove it to mine it again"):
        BM25Negatives().prepare(mine(whales()))


def test_a_search_that_fails_leaves_nothing(mine, tmp_path, monkeypatch):
    def broken(*args, **more):
        raise DataError("broken")

    monkeypatch.setattr("counterpoint.search.Searcher.run", broken)
    with pytest.raises(DataError, match="broken"):
        BM25Negatives().prepare(mine(whales()))
    assert not list((tmp_path / "mined").iterdir())


def test_progress_is_told(mine):
    told = []
    BM25Negatives().prepare(mine(whales(), on_progress=lambda what, done: told.append((what, done))))
    assert told == [("indexing", 5), ("searching", 3)]


# -- the model -----------------------------------------------------------------------------------------


def test_the_model_takes_what_it_ranks_highest(mine):
    data, model = whales(), HashModel()
    draw = ModelNegatives(2, depth=3, workflow="dense").prepare(mine(data, model))
    vectors = model.encode_document(list(TEXTS.values()))["mean"].values
    for at, example in enumerate(data.examples):
        scores = vectors @ model.encode_query([data.queries[example.query]])["mean"].values[0]
        order = [list(TEXTS)[i] for i in np.argsort(-scores)]
        pool = [name for name in order[:3] if name not in example.positives]
        assert set(draw(at, rng())) <= set(pool) and len(draw(at, rng())) == min(2, len(pool))
    with pytest.raises(ConfigError, match="no model to search with"):
        ModelNegatives().prepare(mine(data, None, step=1))


def test_lists_belong_to_a_step(mine, tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    source = ModelNegatives(4, depth=2, every=10)
    data = whales()
    before, after = HashModel(seed=1), HashModel(seed=2)
    first = [sorted(source.prepare(mine(data, before))(at, rng())) for at in range(3)]
    second = [sorted(source.prepare(mine(data, after, step=10))(at, rng())) for at in range(3)]
    assert len(calls) == 2 and first != second
    # A run that is taken up again has another model by now, and reads what that step had.
    later = HashModel(seed=3)
    assert [sorted(source.prepare(mine(data, later, step=10))(at, rng())) for at in range(3)] == second
    assert [sorted(source.prepare(mine(data, later, step=0))(at, rng())) for at in range(3)] == first
    assert len(calls) == 2 and len(list((tmp_path / "mined").iterdir())) == 2


# -- filters -------------------------------------------------------------------------------------------


def filtered(mine, scores, source=None, **rule):
    """The negatives b to f of query q, whose positive is a, that a filter keeps."""
    names = "abcdef"[: len(scores)]
    data = training_set([("q", ("a",), tuple(names[1:]), dict(zip(names, scores, strict=True)))])
    return list(Filtered(FromData(9, choose="first"), **rule).prepare(mine(data))(0, rng()))


def test_limits(mine):
    scores = [10.0, 9.6, 9.5, 9.4, 2.0, 11.0]
    assert filtered(mine, scores) == ["c", "d", "e"]  # 0.95 · 10
    assert filtered(mine, scores, relative=0.9) == ["e"]
    assert filtered(mine, scores, margin=0.5) == ["c", "d", "e"]
    assert filtered(mine, scores, margin=0.0) == ["b", "c", "d", "e"]
    assert filtered(mine, scores, below=9.4) == ["d", "e"]
    assert filtered(mine, scores, below=9.4, count=1) == ["d"]
    # Below 0, a share of the score would be more than the score: -10 − 0.05 · 10 is meant.
    assert filtered(mine, [-10.0, -9.5, -10.0, -10.4, -10.6]) == ["e"]


def test_the_lowest_of_several_positives_counts(mine):
    data = training_set([("q", ("a", "b"), ("c", "d"), {"a": 10.0, "b": 5.0, "c": 6.0, "d": 4.0})])
    assert list(Filtered(FromData(9), margin=1.0).prepare(mine(data))(0, rng())) == ["d"]


def test_a_teacher_scores_everything_itself(mine):
    """Scores in the data may be of another kind, and are not mixed with it."""
    data = training_set([("q", ("a",), ("b", "c"), {"a": 100.0, "b": 99.9, "c": 0.0})])
    teacher = TableTeacher({"a": 1.0, "b": 0.1, "c": 0.99})
    assert list(Filtered(FromData(9), teacher).prepare(mine(data))(0, rng())) == ["b"]


def test_a_text_that_is_the_positives_is_no_negative(mine):
    """Where a set was made by hand and nothing is known of equal texts."""
    documents = {"a": "same", "b": "same", "c": "other"}
    made = training_set([("q", ("a",), ("b", "c"))], documents, {"q": "x"})
    data = type(made)(made.queries, documents, made.examples, relevant={})
    teacher = TableTeacher({"a": 1.0, "b": 0.5, "c": 0.0})
    assert sorted(FromData(9).prepare(mine(data))(0, rng())) == ["b", "c"]
    assert list(Filtered(FromData(9), teacher).prepare(mine(data))(0, rng())) == ["c"]


def test_what_the_teacher_does_not_know_is_dropped(mine):
    data = training_set([("q", ("a", "b"), ("c", "d", "e"))])

    def kept(scores, **rule):
        return list(
            Filtered(FromData(9, choose="first"), TableTeacher(scores), **rule).prepare(mine(data))(0, rng())
        )

    assert kept({"a": 1.0, "c": 0.5, "e": 0.2}) == ["c", "e"]  # b counts for nothing
    assert kept({"c": 0.5, "e": 0.2}, below=0.3) == ["e"]
    with pytest.raises(DataError, match="Filtered finds no negative"):
        kept({"c": 0.5, "e": 0.2})


def test_filters_that_cannot_work_are_told_before_training(mine):
    with pytest.raises(DataError, match="Filtered: the data have no scores; give a teacher"):
        Filtered(FromData()).prepare(mine(training_set([("q", ("a",), ("b",))])))
    with pytest.raises(DataError, match="Filtered finds no negative for 1 of 1"):
        filtered(mine, [1.0, 0.99])


# -- real collections ----------------------------------------------------------------------------------


@pytest.mark.shared
def test_a_real_collection(shared, mine):
    data = open_training_data(shared / "data" / "squad11-dev").subset(300, seed=1)
    draw = BM25Negatives(4, depth=50).prepare(mine(data))
    relevant_found = 0
    for at, example in enumerate(data.examples):
        found = draw(at, rng(at))
        texts = {data.documents[document] for document in example.positives}
        relevant_found += any(data.documents[document] in texts for document in found)
        assert len(found) == len(set(found)) and not set(found) & set(example.positives)
    assert relevant_found == 0
    assert np.mean([len(draw(at, rng())) for at in range(len(data))]) > 3.9
    # Hard negatives share more words with the query than random ones.
    random = RandomNegatives(4).prepare(mine(data))

    def shared_words(source):
        words = [set(data.queries[e.query].lower().split()) for e in data.examples]
        pairs = [(words[at], d) for at in range(len(data)) for d in source(at, rng(at))]
        return np.mean([len(own & set(data.documents[d].lower().split())) for own, d in pairs])

    assert shared_words(draw) > 1.3 * shared_words(random)
