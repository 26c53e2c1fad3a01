"""Chunked encoding has the gradients of the whole batch, with every loss-like function, dropout included.

Vectors of texts and scores of pairs go through the same chunks.
"""

from contextlib import nullcontext

import pytest
import torch
from accelerate import Accelerator
from tests.learn.small import judge, model, training_set

from counterpoint.learn.gradient_cache import PairEncoding, TextEncoding
from counterpoint.learn.processes import Processes
from counterpoint.score import Dot, MaxSim

QUERIES = list(training_set().queries.values())[:7]
DOCUMENTS = list(training_set().documents.values())[:9]


def gradients(made, scorer, chunk, seed=3, budget=None):
    """The gradients of a loss that every pair takes part in, through the two phases."""
    encoding = TextEncoding(made, Processes(Accelerator()), chunk, nullcontext, budget)
    made.zero_grad()
    q, d = encoding.encode(QUERIES, "query", seed), encoding.encode(DOCUMENTS, "document", seed)
    scores = scorer(q.vectors, d.vectors)
    loss = (torch.logsumexp(3 * scores, 1) - scores[:, 0]).mean()
    loss.backward()
    q.backward()
    d.backward()
    return loss.item(), {n: p.grad.clone() for n, p in made.named_parameters() if p.grad is not None}


def plain_gradients(made, scorer):
    """The same loss by ordinary backpropagation through one batch."""
    made.zero_grad()
    q = made(made.encoder.query.tokens(QUERIES, "query"))
    d = made(made.encoder.encoder("document").tokens(DOCUMENTS, "document"))
    scores = scorer(q, d)
    loss = (torch.logsumexp(3 * scores, 1) - scores[:, 0]).mean()
    loss.backward()
    return loss.item(), {n: p.grad.clone() for n, p in made.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize(("tokens", "scorer"), [(False, Dot("mean")), (True, MaxSim("tokens"))])
@pytest.mark.parametrize(
    ("chunk", "budget"), [(None, None), (None, 1), (None, 25), (1, None), (2, None), (5, None), (100, None)]
)
def test_gradients_are_those_of_the_whole_batch(tiny_bert_folder, tokens, scorer, chunk, budget, two):
    made = model(tiny_bert_folder, tokens=tokens, dropout=False, two=two).double().train()
    expected_loss, expected = plain_gradients(made, scorer)
    loss, found = gradients(made, scorer, chunk, budget=budget)
    assert loss == pytest.approx(expected_loss, rel=1e-9)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-7, atol=1e-10, msg=name)


@pytest.mark.parametrize(("chunk", "budget"), [(None, None), (None, 25), (1, None), (4, None), (100, None)])
def test_gradients_of_pairs_are_those_of_the_whole_batch(tiny_bert_folder, chunk, budget):
    """A loss that mixes all scores, so that a gradient at the wrong pair would show."""
    made = judge(tiny_bert_folder, dropout=False).double().train()
    pairs = list(zip([*QUERIES, *QUERIES[:2]], DOCUMENTS, strict=True))
    weights = torch.arange(1, 10).double()

    def loss_of(scores):
        return torch.logsumexp(weights * scores, 0) - scores[2]

    def kept():
        found = {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}
        made.zero_grad()
        return found

    expected_loss = loss_of(made(made.pairs(*zip(*pairs, strict=True))))
    expected_loss.backward()
    expected = kept()
    encoding = PairEncoding(made, Processes(Accelerator()), chunk, nullcontext, budget)
    scored = encoding.encode(pairs, "pair", 3)
    loss = loss_of(scored.vectors["score"].values[:, 0, 0])
    loss.backward()
    scored.backward()
    found = kept()
    assert loss.item() == pytest.approx(expected_loss.item(), rel=1e-9)
    assert found.keys() == expected.keys() and any(name.startswith("backbone.") for name in found)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-7, atol=1e-10, msg=name)


def test_both_passes_over_pairs_draw_the_same_dropout(tiny_bert_folder):
    made = judge(tiny_bert_folder).double().train()
    pairs = list(zip(QUERIES, DOCUMENTS[:7], strict=True))
    scored = PairEncoding(made, Processes(Accelerator()), 3, nullcontext).encode(pairs, "pair", 5)
    for chunk in scored._chunks:
        again = scored._run(chunk, gradients=True)["score"].values
        torch.testing.assert_close(again, scored.vectors["score"].values[chunk.places])
    other = PairEncoding(made, Processes(Accelerator()), 3, nullcontext).encode(pairs, "pair", 6)
    assert not torch.equal(other.vectors["score"].values, scored.vectors["score"].values)


def test_both_passes_over_a_chunk_draw_the_same_dropout(tiny_bert_folder):
    """If they did not, the gradient of a vector would go into another vector's encoder."""
    made = model(tiny_bert_folder).double().train()
    encoding = TextEncoding(made, Processes(Accelerator()), 3, nullcontext)
    batch = encoding.encode(QUERIES, "query", 5)
    for chunk in batch._chunks:
        again = batch._run(chunk, gradients=True)["mean"].values
        torch.testing.assert_close(again, batch.vectors["mean"].values[chunk.places])
    assert not torch.equal(
        encoding.encode(QUERIES, "query", 6).vectors["mean"].values, batch.vectors["mean"].values
    )
    assert gradients(made, Dot("mean"), 3)[0] == gradients(made, Dot("mean"), 3)[0]


def test_what_is_frozen_gets_no_gradient_and_is_encoded_once(tiny_bert_folder, monkeypatch):
    made = model(tiny_bert_folder, two=True, dropout=False)
    made.encoder.document.requires_grad_(False)
    calls = []
    forward = type(made).forward
    monkeypatch.setattr(
        type(made), "forward", lambda self, tokens: calls.append(tokens.side) or forward(self, tokens)
    )
    _, found = gradients(made, Dot("mean"), 4)
    assert {name.split(".")[1] for name in found} == {"query"}
    assert calls.count("document") == 3 and calls.count("query") == 4, "9 in chunks once; 7 in chunks twice"


def test_without_chunks_every_text_is_encoded_once_among_others_of_its_length(tiny_bert_folder, monkeypatch):
    made = model(tiny_bert_folder, dropout=False)
    seen = {"query": [], "document": []}
    forward = type(made).forward
    monkeypatch.setattr(
        type(made), "forward", lambda self, t: seen[t.side].append(t.attention) or forward(self, t)
    )
    gradients(made, Dot("mean"), None, budget=40)
    for side, texts in (("query", QUERIES), ("document", DOCUMENTS)):
        assert sum(map(len, seen[side])) == len(texts)
        assert all(batch.numel() <= 40 for batch in seen[side])
    together = len(DOCUMENTS) * max(batch.shape[1] for batch in seen["document"])
    padding = sum(int((~batch).sum()) for batch in seen["document"])
    real = sum(int(batch.sum()) for batch in seen["document"])
    assert padding < (together - real) / 2


def test_plainly_is_without_dropout_and_gradients(tiny_bert_folder):
    made = model(tiny_bert_folder).train()
    encoding = TextEncoding(made, Processes(Accelerator()), 2, nullcontext)
    first, second = (encoding.plainly(QUERIES, "query")["mean"].values for _ in range(2))
    assert torch.equal(first, second) and not first.requires_grad and made.training
    torch.testing.assert_close(
        first[:, 0], torch.from_numpy(made.encode_query(QUERIES)["mean"].values), atol=2e-2, rtol=2e-2
    )


def test_memory_of_activations_does_not_grow_with_the_batch(tiny_bert_folder):
    """What a chunked batch keeps between the passes are vectors: no graph hangs on them."""
    made = model(tiny_bert_folder)
    encoding = TextEncoding(made, Processes(Accelerator()), 2, nullcontext)
    batch = encoding.encode(QUERIES, "query", 1)
    assert batch.vectors["mean"].values.is_leaf and all(chunk.kept is None for chunk in batch._chunks)
