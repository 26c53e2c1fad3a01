"""The encoder protocol: what mteb reports is what our own evaluation reports."""

import mteb
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from tests.integrations.tasks import (
    CORPUS,
    QRELS,
    QUERIES,
    TEXTS,
    encoded,
    ndcg,
    reported,
    retrieval_task,
    similarity_task,
    texts_of,
)

from counterpoint.integrations import MtebEncoder
from counterpoint.score import Dot
from counterpoint.search import Run
from counterpoint.vectors import Vectors


def test_the_protocol_holds(model):
    encoder = MtebEncoder(model, "unit")
    assert isinstance(encoder, mteb.EncoderProtocol) and not isinstance(encoder, mteb.SearchProtocol)


@pytest.mark.parametrize("on", ["mean", "unit"])
def test_the_encoder_is_measured_as_by_our_own_evaluation(model, on):
    queries = model.encode_query(list(texts_of(QUERIES).values()))[on].values
    documents = model.encode_document(list(texts_of(CORPUS).values()))[on].values
    scores = queries @ documents.T
    run = Run({f"q{i}": {f"d{j}": float(scores[i, j]) for j in range(16)} for i in range(4)})
    task = retrieval_task(CORPUS, QUERIES, QRELS)
    assert 0.1 < ndcg(run) < 0.9
    assert reported(MtebEncoder(model, on), task) == ndcg(run)


def test_the_prompt_type_tells_the_side(model):
    texts = [text for row in CORPUS for text in (row["text"], row["title"])]
    encoder = MtebEncoder(model, "mean")
    query, document = model.encode_query(texts)["mean"].values, model.encode_document(texts)["mean"].values
    assert np.abs(query - document).max() > 0.1
    side = mteb.types.PromptType
    for prompt_type, wanted in ((side.query, query), (side.document, document), (None, document)):
        made = encoded(encoder, texts, prompt_type=prompt_type, batch_size=2)
        assert made.dtype == np.float32
        np.testing.assert_allclose(made, wanted, atol=1e-5)
    assert encoded(encoder, []).shape == (0, 16)


def test_many_texts_are_encoded_in_chunks(model, monkeypatch):
    monkeypatch.setattr("counterpoint.integrations.mteb.CHUNK", 5)
    np.testing.assert_allclose(
        encoded(MtebEncoder(model, "mean"), TEXTS), model.encode_document(TEXTS)["mean"].values, atol=1e-5
    )


@pytest.mark.parametrize("on", ["mean", "unit"])
def test_similarity_is_dot_or_cosine(model, on):
    one, other = (np.random.default_rng(seed).normal(size=(3, 16)).astype(np.float32) for seed in (1, 2))
    encoder = MtebEncoder(model, on)
    sets = [{on: Vectors(torch.tensor(x)[:, None], torch.ones(3, 1, dtype=torch.bool))} for x in (one, other)]
    wanted = Dot(on, normalise=on == "unit")(*sets)
    assert encoder.mteb_model_meta.similarity_fn_name.value == {"mean": "dot", "unit": "cosine"}[on]
    torch.testing.assert_close(encoder.similarity(one, torch.tensor(other)), wanted)
    torch.testing.assert_close(encoder.similarity_pairwise(one, other), wanted.diagonal())
    assert encoder.similarity(one[0], other).shape == (1, 3)


def test_similarity_of_sentences(model):
    rng = np.random.default_rng(0)
    pairs = [(TEXTS[i], TEXTS[j], int(rng.integers(6))) for i, j in rng.integers(16, size=(12, 2))]
    one, other = (model.encode_document([pair[side] for pair in pairs])["mean"].values for side in (0, 1))
    task = similarity_task(pairs)
    wanted = spearmanr((one * other).sum(1), [pair[2] for pair in pairs]).statistic
    assert reported(MtebEncoder(model, "mean"), task, "spearman") == pytest.approx(wanted, abs=1e-6)
