"""The trainer on a small task: it learns, and a run that is killed goes on as if it had not been."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.learn.small import development_set, model, training_set

from counterpoint.errors import ConfigError, DataError
from counterpoint.learn import (
    AlignmentStop,
    BM25Negatives,
    Build,
    Contrastive,
    FromData,
    Job,
    NegativeCache,
    NoImprovement,
    RandomNegatives,
    Silent,
    Train,
    WatchSettings,
    train,
)
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.loading import load_model
from counterpoint.part import Part
from counterpoint.score import Dot


def stage(**changes):
    settings = {"steps": 12, "batch": 4, "lr": 3e-3, "precision": "fp32", "warmup": 2, **changes}
    return Train(objective=Contrastive(), scorer=Dot("mean"), **settings)


def job(tiny, folder, *stages, **changes):
    folder.mkdir(exist_ok=True)
    arguments = {"model": model(tiny), "development": None, **changes}
    return Job(stages=stages or (stage(),), data=training_set(), folder=folder, **arguments)


def log(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def losses(folder):
    return [(row["stage"], row["step"], row["loss"]) for row in log(folder) if "loss" in row]


def weights(folder):
    return Part.load(folder / "model").state_dict()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_it_learns_and_the_model_can_be_used(tiny_bert_folder, tmp_path):
    run = job(
        tiny_bert_folder,
        tmp_path / "run",
        stage(steps=120, batch=8, lr=1e-2, evaluate_every=60),
        development=development_set(),
        measures=("RR@10",),
    )
    place = train(run)
    values = [row["RR@10"] for row in log(tmp_path / "run") if "RR@10" in row]
    found = losses(tmp_path / "run")
    assert found[-1][2] < 0.8 * found[0][2]
    assert max(values) > values[0] + 0.1
    trained = load_model(place)
    queries, documents = training_set().queries, training_set().documents
    q = trained.encode_query(list(queries.values()))["mean"].values
    d = trained.encode_document(list(documents.values()))["mean"].values
    assert (np.argmax(q @ d.T, 1) == np.arange(len(queries))).mean() > 0.3


def test_the_best_model_is_kept(tiny_bert_folder, tmp_path):
    """A learning rate that destroys the model leaves it as it was at the best evaluation: the first."""
    for keep in ("best", "last"):
        run = job(
            tiny_bert_folder, tmp_path / keep, stage(lr=5.0, keep=keep, clip=None, steps=6),
            development=development_set(), measures=("RR@10",),
        )  # fmt: skip
        before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
        train(run)
        assert same(before, weights(tmp_path / keep)) == (keep == "best")


def test_only_what_learns_changes(tiny_bert_folder, tmp_path):
    run = job(tiny_bert_folder, tmp_path / "run", stage(freeze=("query.backbone.*embeddings*",)))
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    train(run)
    changed = {
        name for name, tensor in weights(tmp_path / "run").items() if not torch.equal(tensor, before[name])
    }
    assert changed and not any("embeddings" in name for name in changed)


def test_encoders_may_learn_in_turn(tiny_bert_folder, tmp_path):
    """One encoder a step: after one step only queries have moved, after two both, neither by momentum."""
    turns = ("query.*", "document.*")
    seen = {}
    for steps in (0, 1, 2, 3):
        # The rate is constant and the warm-up over, so that a run of three steps begins as one of two does.
        made = stage(steps=steps or 1, alternate=turns, warmup=0, schedule="constant", keep="last")
        made = made if steps else replace(made, lr=0.0)
        whole = model(tiny_bert_folder, two=True, dropout=False)
        train(job(tiny_bert_folder, tmp_path / str(steps), made, model=whole))
        seen[steps] = weights(tmp_path / str(steps))

    def moved(first, second):
        changed = {n for n, t in seen[second].items() if not torch.equal(t, seen[first][n])}
        return {name.split(".")[1] for name in changed}

    assert [moved(at, at + 1) for at in range(3)] == [{"query"}, {"document"}, {"query"}]


def test_turns_of_nothing_are_refused(tiny_bert_folder, tmp_path):
    with pytest.raises(ConfigError, match=r"alternate: 'document\.\*' matches nothing that learns"):
        turns = {"learn": ("query.*",), "alternate": ("query.*", "document.*")}
        run = job(tiny_bert_folder, tmp_path / "run", stage(**turns), model=model(tiny_bert_folder, two=True))
        train(run)
    with pytest.raises(ConfigError, match="alternate needs at least two patterns"):
        stage(alternate=("query.*",))


def test_the_same_seed_gives_the_same_run_and_another_does_not(tiny_bert_folder, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        torch.manual_seed(99 + len(name))
        train(job(tiny_bert_folder, tmp_path / name, seed=seed))
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert losses(tmp_path / "a") == losses(tmp_path / "b") != losses(tmp_path / "c")


def test_accumulated_batches_are_averaged(tiny_bert_folder, tmp_path):
    """Two batches a step of one epoch are half as many steps, over the same examples."""
    train(job(tiny_bert_folder, tmp_path / "run", stage(steps=None, epochs=2, accumulate=2, batch=3)))
    assert losses(tmp_path / "run")[-1][1] == 8, "24 examples, 2 epochs, 6 examples a step"


def test_a_stop_rule_ends_the_stage(tiny_bert_folder, tmp_path):
    run = job(
        tiny_bert_folder, tmp_path / "run",
        stage(steps=50, lr=0.0, evaluate_every=2, stop=NoImprovement("RR@10", patience=2)),
        development=development_set(), measures=("RR@10",),
    )  # fmt: skip
    train(run)
    last = log(tmp_path / "run")[-1]
    assert last["step"] == 4 and "RR@10 has not risen" in last["stopped"]


@pytest.mark.parametrize(
    "rule, looks, evaluations",
    [
        (AlignmentStop(every=3, delta=-1e9, patience=9), [0, 3, 6, 9, 12], [0, 8, 12]),
        (AlignmentStop(delta=-1e9, patience=9), [0, 8, 12], [0, 8, 12]),
        (NoImprovement("nDCG@10", every=5, patience=9), [0, 5, 10, 12], [0, 5, 8, 10, 12]),
    ],
)
def test_a_rule_looks_as_often_as_it_says_and_retrieval_is_for_those_who_need_it(
    tiny_bert_folder, tmp_path, rule, looks, evaluations
):
    asked = []

    class Spy(type(rule)):
        def look(self, situation):
            asked.append(len(asked))
            return super().look(situation)

    spy = Spy(**{name: getattr(rule, name) for name in rule.parameters_of()})
    stages = [stage(stop=spy, evaluate_every=8, watch=WatchSettings(every=1000))]
    changes = {"development": development_set(), "model": model(tiny_bert_folder, two=True)}
    train(job(tiny_bert_folder, tmp_path / "run", *stages, **changes))
    lines = log(tmp_path / "run")
    assert [line["step"] for line in lines if "nDCG@10" in line and "loss" not in line] == sorted(
        {*evaluations, *(looks if rule.by_measures else [])}
    )
    assert len(asked) == len(looks)
    if not rule.by_measures:
        assert [line["step"] for line in lines if "alignment.kl" in line] == looks


class Noted(Silent):
    """A reporter that remembers what was said."""

    def __init__(self):
        self.notes, self.warnings = [], []

    def note(self, text):
        self.notes.append(text)

    def warn(self, text):
        self.warnings.append(text)


def test_an_alignment_that_collapsed_is_warned_of_and_the_next_stage_goes_on(tiny_bert_folder, tmp_path):
    """At this rate the document side loses its spread; at rate 0 nothing changes."""
    rule = AlignmentStop(delta=-1e9, patience=1, every=2)
    for rate, told in ((0.5, "collapsed"), (0.0, "stalled")):
        heard, folder = Noted(), tmp_path / told
        run = job(
            tiny_bert_folder, folder,
            stage(name="align", steps=8, lr=rate, stop=rule, warmup=0, keep="last"),
            stage(name="both", steps=3),
            model=model(tiny_bert_folder, two=True), development=development_set(), measures=("RR@10",),
        )  # fmt: skip
        train(run, reporter=heard)
        (end,) = [row for row in log(folder) if "stopped" in row]
        said = f"align ended at step {end['step']}: {end['stopped']}"
        assert end["stopped"].startswith(told) and losses(folder)[-1][:2] == ("both", 3)
        assert heard.warnings == [row["warning"] for row in log(folder) if "warning" in row]
        assert heard.notes == ([] if told == "collapsed" else [said])
        goes_on = f"{said}. The recipe continues with both from there"
        assert (goes_on in heard.warnings) == (told == "collapsed")


def test_stages_follow_each_other_and_an_index_is_built(tiny_bert_folder, tmp_path):
    from counterpoint.index import Index

    run = job(tiny_bert_folder, tmp_path / "run", stage(name="one"), stage(name="two", lr=1e-4), Build())
    train(run)
    assert list(dict.fromkeys(row["stage"] for row in log(tmp_path / "run"))) == ["one", "two"]
    with Index(tmp_path / "run" / "index") as index:
        assert index.info()["documents"] == 24
        index.check_model(load_model(tmp_path / "run" / "model").fingerprint())


def test_a_loss_that_is_not_finite_stops_the_run(tiny_bert_folder, tmp_path):
    run = job(tiny_bert_folder, tmp_path / "run")
    with torch.no_grad():
        next(run.model.parameters()).fill_(float("inf"))
    with pytest.raises(DataError, match="not finite"):
        train(run)


def test_what_cannot_be_trained_is_refused(tiny_bert_folder, tmp_path):
    with pytest.raises(ConfigError, match="24 examples make no batch of 25"):
        train(job(tiny_bert_folder, tmp_path / "a", stage(batch=25)))
    with pytest.raises(ConfigError, match="no parameter matches 'querry"):
        train(job(tiny_bert_folder, tmp_path / "b", stage(learn=("querry.*",))))
    with pytest.raises(ConfigError, match="nothing is left to learn"):
        train(job(tiny_bert_folder, tmp_path / "c", stage(freeze=("*",))))
    with pytest.raises(ConfigError, match="at least one stage"):
        Job(model(tiny_bert_folder), (), training_set(), tmp_path)


CACHED = {"cache": NegativeCache(size=12, groups=4, refresh=0.2), "negatives": (RandomNegatives(1),)}
KINDS = {
    "plain": {},
    "chunked": {"chunk": 2, "accumulate": 2},
    "negatives": {"negatives": (FromData(1), RandomNegatives(1))},
    "cache": CACHED,
    "alternate": {"alternate": ("*embeddings*", "*.encoder.*")},
}


class Stopped(Exception):
    pass


class StopAt:
    """A reporter that ends the run as a crash would, after so many steps."""

    def __init__(self, step):
        self.at = step

    def stage(self, name, steps, done):
        pass

    def step(self, done, numbers):
        if done == self.at:
            raise Stopped

    def busy(self, what, done):
        pass

    def note(self, text):
        pass

    def warn(self, text):
        pass


@pytest.mark.parametrize("cuts", [(7,), pytest.param((1, 11), marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_goes_on_to_the_same_losses(tiny_bert_folder, tmp_path, kind, cuts):
    """Data order, negatives, dropout, optimiser, schedule, cache and best model are taken up."""

    def fresh(folder):
        made = stage(name="one", evaluate_every=4, checkpoint_every=3, **KINDS[kind])
        return job(
            tiny_bert_folder, folder, made, stage(name="two", steps=5), development=development_set(),
            measures=("RR@10",),
        )  # fmt: skip

    train(fresh(tmp_path / "whole"))
    for at in cuts:
        folder = tmp_path / f"cut{at}"
        with pytest.raises(Stopped):
            train(fresh(folder), reporter=StopAt(at))
        train(fresh(folder), resume=True)
        assert log(folder) == log(tmp_path / "whole")
        assert same(weights(folder), weights(tmp_path / "whole"))


class Told(StopAt):
    """A reporter that keeps what it is told, in order."""

    def __init__(self):
        self.all = []

    def step(self, done, numbers):
        self.all.append(("step", done))

    def busy(self, what, done):
        self.all.append((what, done))


def test_mining_is_over_before_the_first_step_is_reported(tiny_bert_folder, tmp_path):
    """A reporter goes on to show the mining until it hears of a step, and the first may take a minute."""
    told, mined = Told(), stage(steps=2, negatives=(BM25Negatives(count=1),))
    train(job(tiny_bert_folder, tmp_path / "run", mined), reporter=told)
    last = max(at for at, (what, _) in enumerate(told.all) if what == "searching")
    assert told.all[last + 1 : last + 3] == [("step", 0), ("step", 1)]


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.learn.test_trainer import job, stage
from counterpoint.learn import train
class Slow:
    def stage(self, *a): pass
    def busy(self, *a): pass
    def note(self, *a): pass
    def warn(self, *a): pass
    def step(self, done, numbers):
        import time
        Path({folder!r}, "steps").write_text(str(done))
        time.sleep({pause})
run = job(Path({tiny!r}), Path({folder!r}), stage(steps=40, checkpoint_every=2))
train(run, resume="--resume" in sys.argv, reporter=Slow())
"""


@pytest.mark.parametrize("kills", [(9,), pytest.param((9, 23), marks=pytest.mark.long)])
def test_kill_9_and_resume(tiny_bert_folder, tmp_path, kills):
    """A process killed at a random moment, again and again, ends with the weights of one that was not."""
    train(job(tiny_bert_folder, tmp_path / "whole", stage(steps=40, checkpoint_every=2)))
    folder = tmp_path / "killed"
    folder.mkdir()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    where = {"root": root, "folder": str(folder), "tiny": str(tiny_bert_folder)}
    for target in kills:
        script = SCRIPT.format(**where, pause=0.02)
        process = subprocess.Popen([sys.executable, "-c", script, "--resume"], cwd=root)
        while process.poll() is None and not (
            (folder / "steps").is_file() and int((folder / "steps").read_text() or 0) >= target
        ):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert Checkpoint.latest(folder / "checkpoints").step >= 8
    subprocess.run([sys.executable, "-c", SCRIPT.format(**where, pause=0), "--resume"], cwd=root, check=True)
    assert losses(folder) == losses(tmp_path / "whole")
    assert same(weights(folder), weights(tmp_path / "whole"))


def test_some_parameters_may_learn_faster_than_others(tiny_bert_folder, tmp_path):
    """The first step of AdamW moves a weight by the rate, so a factor shows at once."""
    moved = {}
    for name, factors in {"plain": {}, "faster": {"*.layer.0.*": 5.0, "query.*": 1.0}}.items():
        made = model(tiny_bert_folder, dropout=False)
        before = {key: parameter.detach().clone() for key, parameter in made.encoder.named_parameters()}
        once = stage(steps=1, lr=1e-3, warmup=0, weight_decay=0.0, lr_factors=factors, keep="last")
        train(job(tiny_bert_folder, tmp_path / name, once, model=made))
        after = dict(made.encoder.named_parameters())
        moved[name] = {key: float((after[key].detach() - was).abs().median()) for key, was in before.items()}
    for key, distance in moved["plain"].items():
        if distance > 1e-4:  # rows of the embeddings that no text has do not move
            factor = 5.0 if ".layer.0." in key else 1.0
            assert moved["faster"][key] == pytest.approx(factor * distance, rel=0.02)
    assert any(".layer.0." in key and distance > 1e-4 for key, distance in moved["plain"].items())


def test_a_factor_of_nothing_is_refused(tiny_bert_folder, tmp_path):
    with pytest.raises(ConfigError, match="lr_factors: 'gates.*' matches nothing that learns"):
        train(job(tiny_bert_folder, tmp_path / "run", stage(lr_factors={"gates.*": 2.0})))
    with pytest.raises(ConfigError, match=r"lr_factors\['query\.\*'\] must be at least 0, found -1"):
        stage(lr_factors={"query.*": -1.0})
