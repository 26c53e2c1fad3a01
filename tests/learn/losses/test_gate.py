"""ColBERTer's L1 term on the gate, by loops."""

import pytest
import torch
from hypothesis import given, settings
from tests.learn.losses.steps import steps
from tests.learn.small import training_set

from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, Transformer, WholeWords
from counterpoint.learn import Contrastive, GateSparsity, Job, Step, Targets, Train, train
from counterpoint.model import Model
from counterpoint.score import MaxSim
from counterpoint.vectors import Vectors


@settings(deadline=None, max_examples=40)
@given(step=steps())
def test_it_is_the_mean_over_words_then_over_passages_of_both_kinds(step):
    gates = step.d["words.gate"]

    def passage(at):
        found = [gates.values[at, i, 0].item() for i in range(gates.mask.shape[1]) if gates.mask[at, i]]
        return sum(found) / len(found) if found else 0.0

    positives = [passage(row[0]) for row in step.targets.own.tolist()]
    negatives = [passage(at) for row in step.targets.own.tolist() for at in row[1:] if at >= 0]
    expected = sum(positives) / len(positives) + sum(negatives) / len(negatives)
    assert GateSparsity("words")(step).item() == pytest.approx(expected, abs=1e-5)


def test_it_does_not_depend_on_how_long_passages_are():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    gates = Vectors(torch.full((2, 3, 1), 0.5), mask)
    targets = Targets(torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool))
    step = Step({}, {"words.gate": gates}, torch.zeros(1, 2), targets)
    assert GateSparsity("words")(step).item() == pytest.approx(1.0)


def test_positives_alone_and_passages_without_words():
    gates = Vectors(torch.full((2, 1, 1), 3.0), torch.tensor([[True], [False]]))
    targets = Targets(torch.tensor([[0], [1]]), torch.ones(2, 2, dtype=torch.bool))
    step = Step({}, {"words.gate": gates}, torch.zeros(2, 2), targets)
    assert GateSparsity("words")(step).item() == pytest.approx(1.5)


def test_without_a_gate_it_says_what_to_do():
    targets = Targets(torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"no gate on 'words'; give the model DualEncoder\(\.\.\., gates="):
        GateSparsity("words")(Step({}, {}, torch.zeros(1, 2), targets))


def test_training_closes_a_gate(tiny_bert_folder, tmp_path):
    """By the trainer, in chunks, together with a loss on the scores."""
    encoder = Encoder(
        Transformer(str(tiny_bert_folder), layers=1), {"words": WholeWords(projection=Linear(4))}
    )
    model = Model(DualEncoder(encoder, gates={"words": Gate()})).setup()
    before = model(encoder.tokens(["the cat sat"], "document"))["words.gate"].values.mean()
    stage = Train(
        Contrastive() + 5.0 * GateSparsity("words"),
        MaxSim("words", floor0=True),
        steps=12,
        batch=6,
        chunk=2,
        lr=0.02,
        learn=("gates.*",),
    )
    train(Job(model, (stage,), training_set(), tmp_path))
    after = model(encoder.tokens(["the cat sat"], "document"))["words.gate"].values.mean()
    assert after < 0.8 * before
