"""A cross-encoder in the trainer: it learns what holds for other queries, and is cut and taken up again."""

from dataclasses import replace

import pytest
import torch
from tests.learn.small import development_set, judge, model, training_set
from tests.learn.test_trainer import StopAt, Stopped, log, losses, same, weights

from counterpoint.encode import load_interactive
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.learn import (
    AlignmentStop,
    BM25Negatives,
    Build,
    Contrastive,
    CrossEncoderTeacher,
    DevelopmentSet,
    Example,
    Fit,
    FromData,
    Job,
    KLDivergence,
    MarginMSE,
    ModelNegatives,
    NegativeCache,
    NegativeLogLikelihood,
    PairwiseCrossEntropy,
    PairwiseSoftmax,
    Train,
    TrainingSet,
    train,
)
from counterpoint.learn import training_run as run_module
from counterpoint.learn.learners import PairLearner
from counterpoint.loading import load_model
from counterpoint.score import Dot

KEPT = ["dog", "run", "running", "sat", "query", "where", "what", "of", "on", "an"]


def stage(objective=None, **changes):
    settings = {"steps": 12, "batch": 4, "lr": 3e-3, "precision": "fp32", "warmup": 2, "chunk": 3, **changes}
    return Train(objective or NegativeLogLikelihood(), negatives=(FromData(2),), **settings)


def job(tiny, folder, *stages, **changes):
    folder.mkdir(exist_ok=True)
    arguments = {"model": judge(tiny), "data": training_set(), "measures": ("RR@10",), **changes}
    return Job(stages=stages or (stage(),), folder=folder, **arguments)


def houses(words):
    """About each word a red house, which is relevant, and a blue one."""
    queries = {f"q-{word}": f"{word} {word}" for word in words}
    documents = {f"{c}-{word}": f"{word} in a {c} house" for word in words for c in ("red", "blue")}
    return queries, documents


def red_ones(scored=False):
    """Examples about houses: the red one is the positive."""
    queries, documents = houses(KEPT)
    scores = {"red": 3.0, "blue": 1.0}
    examples = tuple(
        Example(
            f"q-{word}",
            (f"red-{word}",),
            (f"blue-{word}",),
            {f"{colour}-{word}": score for colour, score in scores.items()} if scored else {},
        )
        for word in KEPT
    )
    relevant = {f"q-{word}": frozenset([f"red-{word}"]) for word in KEPT}
    return TrainingSet(queries, documents, examples, relevant)


def test_it_learns_what_holds_for_queries_that_it_has_not_seen(tiny_bert_folder, tmp_path):
    torch.manual_seed(1)  # a head that prefers blue
    unseen, more = houses(["cat", "dogs", "mat", "document"])
    development = DevelopmentSet(unseen, more, {query: {f"red-{query[2:]}": 1} for query in unseen})
    run = job(
        tiny_bert_folder, tmp_path / "run", stage(steps=20, batch=10, lr=1e-2, evaluate_every=10),
        measures=("P@1",), development=development, data=red_ones(), depth=2,
        model=judge(tiny_bert_folder, dropout=False),
    )  # fmt: skip
    place = train(run)
    values = [row["P@1"] for row in log(tmp_path / "run") if "P@1" in row]
    assert len(values) == 3 and values[0] < 0.5 and values[-1] == 1
    again = load_interactive(place)
    red, blue = again.scores(["cat", "cat"], ["cat in a red house", "cat in a blue house"]).tolist()
    assert red > blue


OBJECTIVES = {
    "nll": NegativeLogLikelihood(),
    "pairwise": PairwiseCrossEntropy(),
    "softmax": PairwiseSoftmax(),
    "contrastive": Contrastive(),
    "margin": MarginMSE(),
    "kl": KLDivergence() + 0.5 * MarginMSE(),
}


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_every_loss_of_own_documents_falls(tiny_bert_folder, tmp_path, kind):
    made = stage(OBJECTIVES[kind], steps=20, lr=1e-2, batch=8)
    run = job(tiny_bert_folder, tmp_path / "run", made, data=red_ones(scored=True))
    train(replace(run, model=judge(tiny_bert_folder, dropout=False)))
    first, last = losses(tmp_path / "run")
    assert last[2] < 0.5 * first[2]


def test_a_teacher_may_be_the_folder_of_a_run(tiny_bert_folder, tmp_path):
    """A student that is its own teacher has the margins right."""
    (tmp_path / "run").mkdir()
    torch.manual_seed(0)
    teacher = judge(tiny_bert_folder, dropout=False)
    teacher.save(tmp_path / "teacher" / "model")
    (tmp_path / "teacher" / "recipe.toml").write_text("")
    graded = CrossEncoderTeacher(str(tmp_path / "teacher"))
    student = stage(MarginMSE(), teacher=graded, steps=2, lr=0.0)
    train(job(tiny_bert_folder, tmp_path / "run", student, data=red_ones(), model=teacher))
    assert losses(tmp_path / "run")[-1][2] == pytest.approx(0, abs=1e-8)


def test_chunks_and_accumulation_change_no_step(tiny_bert_folder, tmp_path):
    """Without dropout, a batch in chunks takes the same steps as a batch at once."""
    state = judge(tiny_bert_folder).state_dict()
    for name, chunk in (("once", None), ("chunked", 5)):
        made = judge(tiny_bert_folder, dropout=False)
        made.load_state_dict(state)
        train(job(tiny_bert_folder, tmp_path / name, stage(chunk=chunk, keep="last"), model=made.double()))
    once, chunked = weights(tmp_path / "once"), weights(tmp_path / "chunked")
    for name, tensor in once.items():
        torch.testing.assert_close(chunked[name], tensor, rtol=1e-6, atol=1e-8, msg=name)


@pytest.mark.parametrize("cuts", [(7,), pytest.param((1, 11), marks=pytest.mark.long)])
@pytest.mark.parametrize("more", [{}, {"accumulate": 2, "chunk": 2}], ids=["plain", "accumulated"])
def test_an_interrupted_run_goes_on_to_the_same_losses(tiny_bert_folder, tmp_path, more, cuts):
    def fresh(folder):
        torch.manual_seed(0)  # the head is drawn when the model is made
        one = stage(name="one", evaluate_every=4, checkpoint_every=3, **more)
        two = Train(
            Contrastive(), negatives=(BM25Negatives(count=1),), name="two", steps=5, batch=4, precision="fp32"
        )
        return job(tiny_bert_folder, folder, one, two, development=development_set())

    train(fresh(tmp_path / "whole"))
    for at in cuts:
        folder = tmp_path / f"cut{at}"
        with pytest.raises(Stopped):
            train(fresh(folder), reporter=StopAt(at))
        train(fresh(folder), resume=True)
        assert log(folder) == log(tmp_path / "whole")
        assert same(weights(folder), weights(tmp_path / "whole"))


def test_the_first_stage_is_searched_once_a_run(tiny_bert_folder, tmp_path, monkeypatch):
    searched = []
    search = run_module.first_stage

    def counting(development, depth, **more):
        searched.append(depth)
        return search(development, depth, **more)

    monkeypatch.setattr(run_module, "first_stage", counting)
    stages = [stage(name=name, steps=4, evaluate_every=2) for name in ("one", "two")]
    train(job(tiny_bert_folder, tmp_path / "run", *stages, development=development_set(), depth=7))
    assert searched == [7]
    measured = [row for row in log(tmp_path / "run") if "RR@10" in row]
    assert len(measured) == 6


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_best_model_is_kept(tiny_bert_folder, tmp_path, monkeypatch, keep):
    """With a learning rate that destroys the model, the best evaluation is not the last."""
    seen = []
    evaluate = PairLearner.evaluate

    def recording(self, development):
        measured = evaluate(self, development)
        seen.append((measured["RR@10"], {name: t.clone() for name, t in self.model.state_dict().items()}))
        return measured

    monkeypatch.setattr(PairLearner, "evaluate", recording)
    one = stage(lr=0.3, keep=keep, clip=None, steps=6, evaluate_every=1)
    train(job(tiny_bert_folder, tmp_path / "run", one, development=development_set()))
    values = [value for value, _ in seen]
    best = values.index(max(values))
    assert best < len(seen) - 1
    assert same(seen[best if keep == "best" else -1][1], weights(tmp_path / "run"))


def test_nothing_is_watched_where_there_are_no_vectors(tiny_bert_folder, tmp_path):
    train(job(tiny_bert_folder, tmp_path / "run", stage(steps=25)))
    assert not any(name.startswith("watch.") for row in log(tmp_path / "run") for name in row)


def test_only_what_learns_changes(tiny_bert_folder, tmp_path):
    run = job(tiny_bert_folder, tmp_path / "run", stage(learn=("head.*",)))
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    train(run)
    found = weights(tmp_path / "run")
    assert {name for name in found if not torch.equal(found[name], before[name])} == {
        "head.linear_.weight", "head.linear_.bias",
    }  # fmt: skip


def test_what_goes_by_vectors_is_refused(tiny_bert_folder, tmp_path):
    for name, stages, message in (
        ("scorer", [stage(scorer=Dot("mean"))], "train: scorer needs vectors"),
        ("cache", [stage(cache=NegativeCache())], "train: cache needs vectors"),
        ("fit", [Fit("mean")], "fit: Fit needs vectors"),
        ("build", [Build()], "build: Build needs vectors"),
        ("stop", [stage(stop=AlignmentStop())], "AlignmentStop compares vectors"),
        ("loss", [stage(Contrastive(scorer=Dot("mean")))], "no vector set 'mean'"),
    ):
        with pytest.raises(ConfigError, match=message):
            train(job(tiny_bert_folder, tmp_path / name, *stages))
    mined = Train(NegativeLogLikelihood(), negatives=(ModelNegatives(),), steps=1, batch=4)
    with pytest.raises(ConfigError, match="no model to search with"):
        train(job(tiny_bert_folder, tmp_path / "mined", mined))
    with pytest.raises(ConfigError, match="train: needs a scorer"):
        train(job(tiny_bert_folder, tmp_path / "none", stage(), model=model(tiny_bert_folder)))


def test_the_folder_of_a_run_stands_for_its_model(tiny_bert_folder, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "recipe.toml").write_text("")
    with pytest.raises(ArtifactError, match="this run has no model yet"):
        load_interactive(folder)
    judge(tiny_bert_folder).save(folder / "model")
    assert load_interactive(folder).fingerprint() == load_interactive(folder / "model").fingerprint()
    with pytest.raises(ArtifactError, match="counterpoint rerank"):
        load_model(folder)
