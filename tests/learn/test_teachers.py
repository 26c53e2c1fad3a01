"""Teachers: the scores that search gives, a cross-encoder, a file; and what they keep."""

import gzip
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.encode.test_interactive import save_classifier
from tests.encode.tiny import FP32

from counterpoint.config import restore
from counterpoint.encode import (
    DualEncoder,
    Encoder,
    InteractiveEncoder,
    Linear,
    Mean,
    Transformer,
    WholeWords,
    load_interactive,
)
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index import Index, build_index
from counterpoint.learn import (
    CrossEncoderTeacher,
    Example,
    Grader,
    ModelTeacher,
    RunTeacher,
    TrainingSet,
    make_batch,
    taught,
)
from counterpoint.learn.teachers import models
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.score import Dot, MaxSim
from counterpoint.search import Run, Searcher
from counterpoint.types import Document

DOCUMENTS = {
    "a": "the cat sat on the mat",
    "b": "a red house is where dogs run",
    "c": "dogs run running",
    "d": "a blue house",
}
DATA = TrainingSet(
    queries={"q1": "where is the cat", "q2": "red house"},
    documents=DOCUMENTS,
    examples=(Example("q1", ("a",), ("b", "c")), Example("q2", ("b",), ("d",), {"b": 9.0})),
    relevant={"q1": frozenset("a"), "q2": frozenset("b")},
)


@pytest.fixture
def save_model(tiny_bert_folder, tmp_path):
    def save(search=None, words=True):
        heads = {"mean": Mean(normalise=True)}
        if words:
            heads["words"] = WholeWords(projection=Linear(4))
        model = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads)), search=search)
        model.save(tmp_path / "teacher")
        return str(tmp_path / "teacher")

    return save


def batch(*positions):
    return make_batch(
        DATA, positions, [lambda at, rng: DATA.examples[at].negatives], np.random.default_rng(0)
    )


# -- a retrieval model -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (None, False),
        (None, True),
        ({"weights": {"mean": 3.0, "words": 1.0}}, True),
        ({"weights": {"mean": 0.5, "words": 2.0}, "scale": "none"}, True),
        ({"weights": {"words": 2.0}}, True),
        ({"weights": {"mean": 0.5, "words": 2.0}, "scale": "none", "exact": ["words"]}, True),
        ({"weights": {"mean": 3.0, "words": 1.0}, "floor": ["words"]}, True),
    ],
)
def test_a_model_teaches_the_scores_it_searches_by(save_model, tmp_path, monkeypatch, search, words):
    monkeypatch.setattr("counterpoint.encode.batching.bf16_gains", lambda device: False)
    source = save_model(search, words)
    model = load_model(source)
    settings = model.index_settings(codec="float32", lexical=None)
    build_index(
        [Document(name, text) for name, text in DOCUMENTS.items()], model, tmp_path / "index", settings
    )
    candidates = Run({query: dict.fromkeys(DOCUMENTS, 0.0) for query in DATA.queries})
    with Index(tmp_path / "index") as index:
        expected = Searcher(index, model).run(DATA.queries, candidates=candidates)
    grader = ModelTeacher(source).load(DATA)
    for query in DATA.queries:
        found = dict(zip(DOCUMENTS, grader(query, list(DOCUMENTS)), strict=True))
        assert found == pytest.approx(expected.scores(query), abs=1e-5)
        assert np.ptp(list(found.values())) > 1e-3


def test_a_given_scorer_decides(save_model):
    source = save_model({"weights": {"lexical": 1.0, "mean": 1.0}})
    words, mean = MaxSim("words"), Dot("mean")
    apart = [ModelTeacher(source, scorer=s).load(DATA)("q1", ["a", "b"]) for s in (words, mean)]
    both = ModelTeacher(source, scorer=words + 0.5 * mean).load(DATA)("q1", ["a", "b"])
    with pytest.raises(ConfigError, match="no vector set 'tokens'; it has .*mean"):
        ModelTeacher(source, scorer=words + 0.5 * MaxSim("tokens")).load(DATA)
    assert both == pytest.approx([w + 0.5 * m for w, m in zip(*apart, strict=True)], abs=1e-5)


@pytest.mark.parametrize(
    ("search", "what"),
    [
        ({"weights": {"lexical": 1.0, "mean": 1.0}}, "BM25"),
        ({"weights": {"words": 1.0}, "idf": {"words": 0.5}}, "idf"),
        (
            {"weights": {"mean": 1.0, "words": 1.0}, "method": "rrf", "normalise": "z-score"},
            "z-score, rank fusion",
        ),
    ],
)
def test_search_settings_that_need_an_index_are_refused(save_model, search, what):
    with pytest.raises(ConfigError, match=rf"is searched with {what}, which needs an index; .*mean, words"):
        ModelTeacher(save_model(search)).load(DATA)


def test_texts_are_encoded_once_within_the_memory(save_model, monkeypatch):
    encoded = []
    encode = Model.encode_document

    def counting(self, texts, options=None):
        encoded.append(list(texts))
        return encode(self, texts, options)

    monkeypatch.setattr(Model, "encode_document", counting)
    source = save_model(words=False)
    grader = ModelTeacher(source).load(DATA)
    first = grader("q1", ["a", "b"])
    assert grader("q1", ["b", "a", "b"]) == [first[1], first[0], first[1]]
    assert grader("q2", []) == []
    grader("q2", ["a", "c"])
    assert encoded == [[DOCUMENTS["a"], DOCUMENTS["b"]], [DOCUMENTS["c"]]]
    encoded.clear()
    forgetful = ModelTeacher(source, memory=0).load(DATA)
    assert forgetful("q1", ["a", "b"]) == forgetful("q1", ["a", "b"]) == first
    assert len(encoded) == 2


@pytest.mark.parametrize("kind", ["model", "cross-encoder"])
def test_a_batch_is_read_together(save_model, tmp_path, monkeypatch, kind):
    if kind == "model":
        teacher, owner, method = ModelTeacher(save_model(words=False)), Model, "encode_document"
    else:
        teacher = CrossEncoderTeacher(str(save_classifier(tmp_path / "judge")))
        owner, method = InteractiveEncoder, "scores"
    one_by_one, read = teacher.load(DATA), []
    expected = [one_by_one("q1", ["a", "b", "c"]), one_by_one("q2", ["b", "d"])]
    whole = getattr(owner, method)

    def counting(self, *arguments):
        read.append(arguments)
        return whole(self, *arguments)

    scored = teacher.load(DATA)
    monkeypatch.setattr(owner, method, counting)
    found = taught(batch(0, 1), scored).targets.teacher
    assert len(read) == 1
    assert found[0].tolist() == pytest.approx(expected[0], abs=1e-5)
    assert found[1, :2].tolist() == pytest.approx(expected[1], abs=1e-5)


def test_the_oldest_is_forgotten_first():
    made = []

    def make(keys):
        made.extend(name for _, name in keys)
        return [f"<{name}>" for _, name in keys]

    held = models._Kept(3, lambda value: 1)
    keys = {name: ("query", name) for name in "abcd"}
    assert held.of([keys["a"], keys["b"], keys["c"]], make) == ["<a>", "<b>", "<c>"]
    held.of([keys["a"]], make)  # now b is the oldest
    held.of([keys["d"]], make)
    assert held.of([keys["a"], keys["c"], keys["d"]], make) == ["<a>", "<c>", "<d>"]
    assert made == ["a", "b", "c", "d"]
    held.of([keys["b"]], make)
    assert made == ["a", "b", "c", "d", "b"]


# -- a cross-encoder ---------------------------------------------------------------------------------------


def test_a_cross_encoder_teaches_its_logits_and_each_pair_once(tmp_path, monkeypatch):
    source = str(save_classifier(tmp_path / "judge"))
    judge = load_interactive(source)
    expected = judge.scores([DATA.queries["q1"]] * 2, [DOCUMENTS["a"], DOCUMENTS["d"]], FP32).tolist()
    grader = CrossEncoderTeacher(source).load(DATA)
    assert grader("q1", ["a", "d"]) == pytest.approx(expected, abs=1e-5)
    monkeypatch.setattr(type(judge), "scores", None)
    assert grader("q1", ["d"]) == pytest.approx(expected[1:], abs=1e-5)
    with pytest.raises(ArtifactError):
        CrossEncoderTeacher(str(tmp_path)).load(DATA)


# -- a file ------------------------------------------------------------------------------------------------


def test_a_run_teaches_its_scores(tmp_path):
    Run({"q1": {"a": 3.5, "b": -1.25}}).write(tmp_path / "teacher.trec")
    found = RunTeacher(str(tmp_path / "teacher.trec")).load(DATA)("q1", ["b", "c", "a"])
    assert found[0] == -1.25 and math.isnan(found[1]) and found[2] == 3.5
    assert all(map(math.isnan, RunTeacher(str(tmp_path / "teacher.trec")).load(DATA)("q2", ["a", "b"])))


def test_scores_in_four_columns(tmp_path):
    with gzip.open(tmp_path / "scores.gz", "wt") as file:
        file.write("q1 0 a 3.5\n\nq1 0 b -1e-3\nq2 0 a 7\n")
    grader = RunTeacher(str(tmp_path / "scores.gz")).load(DATA)
    assert grader("q1", ["a", "b"]) == [3.5, -1e-3] and grader("q2", ["a"]) == [7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 a 1\nq1 0 a 2\n", ":2: document 'a' has a second score for query 'q1'"),
        ("q1 0 a high\n", ":1: the score must be a finite number, found 'high'"),
        ("q1 0 a nan\n", ":1: the score must be a finite number, found 'nan'"),
        ("q1 0 a 1\nq1 a 2\n", ":2: expected a run's six columns or four columns .*, found 3"),
        ("q9 0 a 1\n", "scores 1 queries, and none of them is in the training data"),
        ("", "scores 0 queries"),
    ],
)
def test_a_file_that_cannot_teach_is_refused(tmp_path, text, message):
    (tmp_path / "scores").write_text(text)
    with pytest.raises(DataError, match=message):
        RunTeacher(str(tmp_path / "scores")).load(DATA)


# -- in a batch --------------------------------------------------------------------------------------------


def test_a_query_that_the_data_do_not_score_fully_is_graded_as_a_whole():
    graded, told = [], []

    class Counting(Grader):
        def prepare(self, asked):
            told.extend(asked)

        def __call__(self, query, documents):
            graded.append((query, list(documents)))
            return [float(len(graded) * 10 + at) for at in range(len(documents))]

    made = taught(batch(0, 1), Counting())
    assert told == graded == [("q1", ["a", "b", "c"]), ("q2", ["b", "d"])]
    assert torch.equal(made.targets.teacher[:, :2], torch.tensor([[10.0, 11.0], [20.0, 21.0]]))
    assert made.targets.teacher[0, 2] == 12 and made.targets.teacher[1, 2].isnan()


def test_scores_of_the_data_stay():
    scores = torch.tensor([[3.0, 2.0, 1.0], [5.0, 4.0, math.nan]])
    data = batch(0, 1)
    data = replace(data, targets=replace(data.targets, teacher=scores))

    class Never(Grader):
        def __call__(self, query, documents):
            raise AssertionError("nothing is missing")

    found = taught(data, Never()).targets.teacher
    torch.testing.assert_close(found, scores, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize(
    "teacher",
    [
        ModelTeacher("minilm", scorer=0.5 * Dot("mean") + MaxSim("words"), memory=10),
        CrossEncoderTeacher("some/judge", revision="main"),
        RunTeacher("bm25.trec"),
    ],
)
def test_teachers_are_plain_data(teacher):
    assert restore(teacher.to_dict()).to_dict() == teacher.to_dict()
