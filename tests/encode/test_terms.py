"""SparTerm's terms: importance and gate by loops, what an index keeps, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.encode.test_router import masked_lm
from tests.encode.tiny import FP32, TEXTS, VOCABULARY

from counterpoint.encode import BY_GATE, DualEncoder, Encoder, Gate, Router, SparseTerms, Transformer
from counterpoint.encode import terms as terms_module
from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.score import MaxSim

SPECIAL = {VOCABULARY.index(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}


def made(folder, *, gated=True, **settings):
    """A tiny model whose heads are random, so that some logits are negative."""
    torch.manual_seed(3)
    gate = Router(start="new") if gated else None
    head = SparseTerms(Router(start="new", bias=0.0), gate, **settings)
    model = DualEncoder(Encoder(Transformer(str(folder)), {"terms": head})).setup().eval()
    with torch.no_grad():
        for router in head.routers:
            router.dense_.weight.normal_(0, 0.3)
            router.bias_.normal_(-3 if router is gate else 0, 1)
    return model


@torch.no_grad()
def by_hand(model, text, side):
    """Of one text, {term: (importance, gate's logit)} for every vocabulary entry, and its own terms."""
    encoder, head = model.query, model.query.heads["terms"]
    tokens, table = encoder.tokens([text], side), encoder.backbone.embeddings.weight
    own = [piece for piece in tokens.ids[0].tolist() if piece not in SPECIAL]
    at = [place for place in range(1, tokens.ids.shape[1] - 1)]  # between [CLS] and [SEP]
    hidden = encoder.backbone(tokens)[0]

    def lines(router):
        fed = [torch.nn.functional.gelu(router.dense_(hidden[place])) for place in at]
        fed = [(one - one.mean()) / one.var(unbiased=False).sqrt() for one in fed]
        return [(table @ one + router.bias_).tolist() for one in fed]

    weighed = lines(head.importance)
    opened = lines(head.gate) if head.gate is not None else []
    found = {}
    for term in range(len(VOCABULARY)):
        logs = [math.log(1 + max(0.0, line[term])) for line in weighed]
        importance = (max(logs) if head.pool == "max" else sum(logs)) if logs else 0.0
        found[term] = importance, max((line[term] for line in opened), default=-math.inf)
    return found, set(own)


def expected(model, text, side, count):
    """{term: weight} of the rows, and of all that the gate lets through."""
    found, own = by_hand(model, text, side)
    others = [term for term in found if term not in own | SPECIAL and found[term][1] > 0]
    others = sorted(others, key=lambda term: -found[term][1])[:count]
    through = {term: found[term][0] for term in {*own, *others}}
    return {term: w for term, w in through.items() if w > 0 or side == "query"}, through


@pytest.mark.parametrize("pool", ["max", "sum"])
@pytest.mark.parametrize(("side", "count"), [("query", 2), ("document", 7)])
@pytest.mark.parametrize("gated", [True, False])
def test_rows_are_the_importance_of_the_terms_that_the_gate_lets_through(
    tiny_bert_folder, pool, side, count, gated
):
    model = made(tiny_bert_folder, gated=gated, pool=pool, expansion=(2, 7))
    tokens = model.query.tokens(TEXTS, side)
    found = model(tokens)
    packed, gates = found["terms"].ragged(), found["terms" + BY_GATE].ragged()
    expanded, dropped = 0, 0
    for i, text in enumerate(TEXTS):
        rows, through = expected(model, text, side, count if gated else 0)
        for kept, wanted in ((packed, rows), (gates, through)):
            ids = kept.ids_of(i).tolist()
            assert len(set(ids)) == len(ids)
            assert dict(zip(ids, kept[i][:, 0].tolist(), strict=True)) == pytest.approx(wanted, abs=1e-4)
        own = set(tokens.ids[i].tolist())
        expanded += sum(term not in own for term in rows)
        dropped += len(through) - len(rows)
    assert (expanded > 4) == gated and (dropped > 0) == (side == "document" and pool == "max" or dropped > 0)
    assert not packed.ids_of(2).size, "an empty text has no terms"


def test_the_score_is_the_inner_product_over_the_vocabulary(tiny_bert_folder):
    model = made(tiny_bert_folder, expansion=(3, 9))
    asked = ["where is the cat", "dogs", ""]
    q, d = (model.query.tokens(texts, side) for texts, side in ((asked, "query"), (TEXTS, "document")))
    scores = MaxSim("terms", exact=True, floor0=True)(model(q), model(d))
    for i, query in enumerate(asked):
        left = expected(model, query, "query", 3)[0]
        for j, document in enumerate(TEXTS):
            right = expected(model, document, "document", 9)[0]
            product = sum(left[term] * right[term] for term in left.keys() & right.keys())
            assert scores[i, j].item() == pytest.approx(product, abs=1e-3)
    assert not scores[2].any() and scores[0].any()


def test_blocks_and_padding_change_nothing(tiny_bert_folder, monkeypatch):
    model = made(tiny_bert_folder)
    together = model(model.query.tokens(TEXTS, "document"))["terms"].ragged()
    monkeypatch.setattr(terms_module, "BLOCK", 1)
    blocks = model(model.query.tokens(TEXTS, "document"))["terms"].ragged()
    np.testing.assert_array_equal(blocks.ids, together.ids)
    np.testing.assert_allclose(blocks.values, together.values, atol=1e-4)
    for i, text in enumerate(TEXTS):
        alone = model(model.query.tokens([text], "document"))["terms"].ragged()
        assert alone.ids_of(0).tolist() == together.ids_of(i).tolist()
        np.testing.assert_allclose(alone[0], together[i], atol=1e-4)
    head, tokens = model.query.heads["terms"], model.query.tokens(["the cat", "cat sat on the mat"], "query")
    hidden = model.query.backbone(tokens).detach()
    spoilt = hidden.masked_fill(~tokens.attention[:, :, None], float("nan"))
    found, _ = head.route(spoilt, tokens, model.query.backbone.embeddings.weight)
    found.values.sum().backward()
    assert torch.isfinite(found.values).all()
    assert all(torch.isfinite(p.grad).all() for p in head.parameters() if p.grad is not None)
    nothing = torch.zeros(0, 0, 16), model.query.pad([], "document"), model.query.backbone.embeddings.weight
    assert len(head.route(*nothing)[0]) == 0 and model.query.spans([], "terms", "document") == []


def test_the_gate_learns_straight_through_a_sigmoid(tiny_bert_folder):
    """d weight / d logit is importance · σ(g)(1 − σ(g)); the literal terms' weights do not know the gate."""
    model = made(tiny_bert_folder, expansion=(0, 5))
    head = model.query.heads["terms"]
    text = "the cat sat on the mat"
    found = model(model.query.tokens([text], "document"))["terms"]
    by_term, own = by_hand(model, text, "document")
    found.values[found.mask].sum().backward()
    moved = head.gate.bias_.grad
    opened = [term for term in found.ids[found.mask].tolist() if term not in own]
    assert opened
    for term in range(len(VOCABULARY)):
        importance, logit = by_term[term]
        s = 1 / (1 + math.exp(-logit))
        want = importance * s * (1 - s) if term in opened else 0.0
        assert moved[term].item() == pytest.approx(want, abs=1e-4)


def test_a_hidden_match_is_no_term_and_still_asked_for_others(tiny_bert_folder):
    """As input-level orthogonality leaves it: [MASK] at its place."""
    model = made(tiny_bert_folder, gated=False)
    tokens = model.query.tokens(["the cat sat"], "document")
    cat, mask = VOCABULARY.index("cat"), VOCABULARY.index("[MASK]")
    hidden = replace(tokens, ids=tokens.ids.masked_fill(tokens.ids == cat, mask))
    before, after = (set(model(one)["terms" + BY_GATE].ragged().ids.tolist()) for one in (tokens, hidden))
    assert before - after == {cat} and not after - before


def test_spans_and_ids_stand_beside_rows(tiny_bert_folder):
    model = Model(made(tiny_bert_folder, expansion=(2, 6))).setup()
    weights = model.gate_weights(TEXTS, "terms")
    for side, encode in (("query", model.encode_query), ("document", model.encode_document)):
        packed = encode(TEXTS)["terms"]
        spans = model.spans(TEXTS, "terms", side)
        for i, ids in enumerate(model.row_ids(TEXTS, "terms", side)):
            kept = ids if side == "query" else ids[weights[i][:, 0] > 0]
            assert kept.tolist() == packed.ids_of(i).tolist() and len(spans[i]) == len(ids)
            for span, key in zip(spans[i], ids, strict=True):
                if span.end:
                    assert TEXTS[i][span.start : span.end] == span.text
                    assert span.text.lower() == VOCABULARY[key].removeprefix("##")
                else:
                    assert span.text == f"→{VOCABULARY[key]}"
    before = model.encode_document(TEXTS, FP32)["terms"]
    model.prune(float(np.median(before.values)))
    after = model.encode_document(TEXTS, FP32)["terms"]
    assert 0 < len(after.values) < len(before.values)


def test_it_begins_with_a_masked_language_models_head_and_is_saved(tmp_path):
    (tmp_path / "lm").mkdir()
    lm, folder = masked_lm("bert", tmp_path / "lm"), tmp_path / "lm"
    head = SparseTerms(Router(), Router(), expansion=(0, 4))
    model = DualEncoder(Encoder(Transformer(str(folder)), {"terms": head})).setup().eval()
    tokens = model.query.tokens(["the cat sat"], "document")
    with torch.no_grad():
        logits = lm(input_ids=tokens.ids, attention_mask=tokens.attention.long()).logits[0, 1:-1]
        found = model(tokens)["terms" + BY_GATE].ragged()
    weights = logits.max(0).values.relu().log1p()
    assert found.values[:, 0].tolist() == pytest.approx(weights[found.ids].tolist(), abs=1e-4)
    model.save(tmp_path / "saved")
    again = Part.load(tmp_path / "saved")
    one, other = (each.encode_document(TEXTS, FP32)["terms"] for each in (model, again))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.ids, other.ids)


def test_what_is_refused(tiny_bert_folder):
    with pytest.raises(ConfigError, match="two numbers of at least 0"):
        SparseTerms(Router(), expansion=(0, -1))
    with pytest.raises(ConfigError, match=r"set importance=Router\('log'\)"):
        SparseTerms(Router("softmax"))
    model = made(tiny_bert_folder)
    with pytest.raises(ConfigError, match="'terms' needs no gate"):
        DualEncoder(model.query, gates={"terms": Gate()}).setup()
    with pytest.raises(NotFittedError, match="use an Encoder"):
        model.query.heads["terms"](torch.zeros(1, 3, 16), model.query.tokens(["a"], "query"))
    with pytest.raises(ConfigError, match=r"use Encoder\.spans"):
        _ = model.query.heads["terms"].choice
    bare = SparseTerms(Router(start="new", in_dim=16, out_dim=16, vocabulary=len(VOCABULARY))).setup()
    with pytest.raises(NotFittedError, match="until the head is part of an encoder"):
        bare(
            torch.zeros(1, 3, 16), model.query.tokens(["a"], "query"), model.query.backbone.embeddings.weight
        )
