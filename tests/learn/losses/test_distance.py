"""The distance to the positive, by loops, and what it is for: a small encoder that copies a frozen one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from tests.learn.losses.steps import steps
from tests.learn.small import model, training_set

from counterpoint.errors import ConfigError
from counterpoint.learn import Contrastive, Job, PositiveDistance, RandomNegatives, Train, train
from counterpoint.learn.batches import make_batch, mirrored
from counterpoint.score import Dot


@settings(deadline=None, max_examples=40)
@given(step=steps())
def test_it_is_the_mean_squared_distance(step):
    expected = 0.0
    for query, row in enumerate(step.targets.own.tolist()):
        one, other = step.q["cls"].values[query, 0].tolist(), step.d["cls"].values[row[0], 0].tolist()
        expected += sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
    expected /= len(step.targets.own)
    assert PositiveDistance("cls")(step).item() == pytest.approx(expected, rel=1e-5)


@given(step=steps())
@settings(deadline=None, max_examples=2)
def test_several_vectors_are_refused(step):
    with pytest.raises(ConfigError, match="one vector per text, and 'words' has several"):
        PositiveDistance("words")(step)


def test_a_mirrored_batch_has_the_queries_for_documents():
    """Each text once; a query that has another's text is not its negative."""
    data = training_set()
    batch = mirrored(make_batch(data, [0, 3, 0, 5], [], np.random.default_rng(1)))
    assert batch.documents == tuple(dict.fromkeys(batch.queries)) and len(batch.documents) == 3
    assert [batch.documents[at] for at in batch.targets.positive.tolist()] == list(batch.queries)
    assert batch.targets.own.shape == (4, 1) and batch.targets.allowed.all()
    assert batch.targets.teacher is None


def test_a_query_encoder_learns_to_say_what_the_document_encoder_says(tiny_bert_folder, tmp_path):
    """One layer imitates two, which do not change."""
    made = model(tiny_bert_folder, two=True, dropout=False)
    before = {name: tensor.clone() for name, tensor in made.encoder.document.state_dict().items()}
    texts = list(training_set().queries.values())

    def distance():
        made.eval()
        sides = [made.encode_query(texts)["mean"].values, made.encode_document(texts)["mean"].values]
        return float(((sides[0] - sides[1]) ** 2).sum(1).mean())

    first = distance()
    learning = {
        "steps": 150,
        "batch": 8,
        "lr": 1e-2,
        "warmup": 5,
        "precision": "fp32",
        "mirror": True,
        "keep": "last",
    }
    stage = Train(PositiveDistance("mean"), Dot("mean"), learn=("query.*",), **learning)
    (tmp_path / "run").mkdir()
    train(Job(made, [stage], training_set(), tmp_path / "run", development=None))
    assert distance() < 0.5 * first
    after = made.encoder.document.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_what_a_mirror_has_no_use_for_is_refused():
    with pytest.raises(
        ConfigError, match="mirror: every query is its own document, so negatives are not used"
    ):
        Train(Contrastive(), mirror=True, negatives=(RandomNegatives(1),))
