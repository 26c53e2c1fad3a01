"""CITADEL's router: by loops, against transformers' own heads, and as the paper's score."""

import math

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32, TEXTS, VOCABULARY, copy, tiny_tokenizer
from torch.testing import assert_close

from counterpoint.encode import (
    BY_GATE,
    BY_LOAD,
    BY_ROUTER,
    Cls,
    DualEncoder,
    Encoder,
    Gate,
    Linear,
    Routed,
    Router,
    Transformer,
)
from counterpoint.errors import ArtifactError, ConfigError, NotFittedError
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.score import MaxSim


def made(folder, activation="log", *, start="new", **settings):
    """A tiny model whose router is random, so that some logits are negative; in training mode."""
    torch.manual_seed(3)
    head = Routed(Router(activation, start), projection=Linear(4), **settings)
    model = DualEncoder(Encoder(Transformer(str(folder)), {"cls": Cls(), "routed": head})).setup()
    model.eval().query.heads["routed"].router.train()
    if start == "new":
        with torch.no_grad():
            head.router.dense_.weight.normal_(0, 0.3)
            head.router.bias_.normal_(-4, 1)
    return model


@torch.no_grad()
def by_hand(model, tokens, normalise=False):
    """For every text and token but the first: (key, weight, vector) of every vocabulary entry, by loops."""
    encoder = model.encoder(tokens.side)
    head, table = encoder.heads["routed"], encoder.backbone.embeddings.weight
    hidden = encoder.backbone(tokens)
    logits, vectors = [], []
    for states, real in zip(hidden, tokens.attention, strict=True):
        logits.append([])
        vectors.append([])
        for at in range(1, len(states)):
            if real[at]:
                fed = torch.nn.functional.gelu(head.router.dense_(states[at]))
                fed = (fed - fed.mean()) / fed.var(unbiased=False).sqrt()
                logits[-1].append((table @ fed + head.router.bias_).tolist())
                vector = head.projection(states[at])
                vectors[-1].append(vector / vector.norm() if normalise else vector)
    return logits, vectors


def weights_of(logits, activation):
    if activation == "log":
        return [math.log(1 + max(0.0, x)) for x in logits]
    total = sum(math.exp(x) for x in logits)
    return [math.exp(x) / total for x in logits]


@pytest.mark.parametrize("activation", ["log", "softmax"])
@pytest.mark.parametrize(("side", "count"), [("query", 2), ("document", 3)])
def test_rows_are_weighted_vectors_of_the_highest_keys(tiny_bert_folder, activation, side, count):
    model = made(tiny_bert_folder, activation, keys=(2, 3), normalise=True)
    tokens = model.query.tokens(TEXTS, side)
    found = model(tokens)["routed"]
    packed, dropped = found.ragged(), 0
    logits, vectors = by_hand(model, tokens, normalise=True)
    for i in range(len(TEXTS)):
        ids, rows = [], []
        for line, vector in zip(logits[i], vectors[i], strict=True):
            weights = weights_of(line, activation)
            for key in sorted(sorted(range(len(line)), key=lambda k: -line[k])[:count]):
                if weights[key] > 0 or side == "query":
                    ids.append(key)
                    rows.append(weights[key] * vector.numpy())
                else:
                    dropped += 1
        assert packed.ids_of(i).tolist() == ids
        np.testing.assert_allclose(packed[i], np.array(rows).reshape(-1, 4), atol=1e-4)
    assert (dropped > 0) == (activation == "log" and side == "document"), "a softmax is never 0"


@pytest.mark.parametrize("activation", ["log", "softmax"])
def test_what_losses_go_by_is_the_whole_vector_and_the_load(tiny_bert_folder, activation):
    model = made(tiny_bert_folder, activation)
    tokens = model.query.tokens(TEXTS, "document")
    found = model(tokens)
    logits, _ = by_hand(model, tokens)
    pooled, load, gates = (found["routed" + end] for end in (BY_ROUTER, BY_LOAD, BY_GATE))
    for i in range(len(TEXTS)):
        for key in range(len(VOCABULARY)):
            logs = [math.log(1 + max(0.0, line[key])) for line in logits[i]]
            assert pooled.values[i, 0, key].item() == pytest.approx(max(logs), abs=1e-4)
            share = sum(weights_of(line, "softmax")[key] for line in logits[i])
            assert load.values[i, 1, key].item() == pytest.approx(share, abs=1e-4)
        real = [weight.item() for weight, there in zip(gates.values[i], gates.mask[i], strict=True) if there]
        chosen = [(line, sorted(range(len(line)), key=lambda k: -line[k])[:5]) for line in logits[i]]
        weights = [weights_of(line, activation)[key] for line, keys in chosen for key in sorted(keys)]
        assert real == pytest.approx(weights, abs=1e-4)
        sent = [0] * len(VOCABULARY)
        for line, keys in chosen:
            for key in keys:
                sent[key] += weights_of(line, activation)[key] > 0
        assert load.values[i, 0].tolist() == sent
    assert pooled.mask.all() and load.mask.all()


def test_the_papers_score_is_exact_matching_of_the_rows(tiny_bert_folder):
    """Σ over query tokens and keys of max over document tokens and keys of q·d w_q w_d, 0 if keys differ."""
    model = made(tiny_bert_folder, keys=(1, 5))
    asked = ["where is the cat", "dogs", ""]
    q, d = (model.query.tokens(texts, side) for texts, side in ((asked, "query"), (TEXTS, "document")))
    scores = MaxSim("routed", exact=True, floor0=True)(model(q), model(d))
    plain = MaxSim("routed", exact=True)(model(q), model(d))
    sides = [by_hand(model, tokens) for tokens in (q, d)]
    matched = 0
    for i in range(len(asked)):
        for j in range(len(TEXTS)):
            expected = 0.0
            for q_line, q_vector in zip(*(part[i] for part in sides[0]), strict=True):
                for q_key in sorted(range(len(q_line)), key=lambda k: -q_line[k])[:1]:
                    best = 0.0  # of tokens and keys that do not match, and of the released code's padding
                    for d_line, d_vector in zip(*(part[j] for part in sides[1]), strict=True):
                        for d_key in sorted(range(len(d_line)), key=lambda k: -d_line[k])[:5]:
                            if d_key == q_key:
                                both = weights_of(q_line, "log")[q_key] * weights_of(d_line, "log")[d_key]
                                best = max(best, both * float(q_vector @ d_vector))
                    expected += best
                    matched += best > 0
            assert scores[i, j].item() == pytest.approx(expected, abs=1e-4)
    assert matched > 5
    assert (scores - plain).abs().max() < 1e-4, "no document here has one key alone"


def test_padding_changes_nothing_and_may_hold_anything(tiny_bert_folder):
    model = made(tiny_bert_folder)
    together = model(model.query.tokens(TEXTS, "document"))
    for i, text in enumerate(TEXTS):
        alone = model(model.query.tokens([text], "document"))
        for name in ("routed", *("routed" + end for end in (BY_GATE, BY_ROUTER, BY_LOAD))):
            one, other = alone[name], together[name]
            assert_close(one.values[0][one.mask[0]], other.values[i][other.mask[i]], atol=1e-4, rtol=1e-4)
    head, tokens = model.query.heads["routed"], model.query.tokens(["the cat", "cat sat on the mat"], "query")
    hidden = model.query.backbone(tokens).detach()
    spoilt = hidden.masked_fill(~tokens.attention[:, :, None], float("nan"))
    table = model.query.backbone.embeddings.weight
    found, more = head.route(spoilt, tokens, table)
    assert_close(found.values, head.route(hidden, tokens, table)[0].values)
    loss = found.values.square().sum() + sum(vectors.values.sum() for vectors in more.values())
    loss.backward()
    assert torch.isfinite(head.router.dense_.weight.grad).all() and head.router.dense_.weight.grad.any()


@pytest.mark.parametrize("activation", ["log", "softmax"])
def test_blocks_change_neither_values_nor_gradients(tiny_bert_folder, activation):
    model = made(tiny_bert_folder, activation)
    router, table = model.query.heads["routed"].router, model.query.backbone.embeddings.weight
    tokens = model.query.tokens(TEXTS, "document")
    hidden, real = model.query.backbone(tokens).detach(), tokens.attention
    seen = []
    for block in (2**25, 1):
        router.zero_grad()
        found = router(hidden, real, table, 5, block)
        (found.weights.square().sum() + found.pooled.square().sum() + found.shares.square().sum()).backward()
        seen.append([*found, *(parameter.grad.clone() for parameter in router.parameters())])
    for one, other in zip(*seen, strict=True):
        assert_close(one, other, atol=1e-4, rtol=1e-4)
    router.eval()
    assert router(hidden, real, table, 5, 1).pooled is None
    assert_close(router(hidden, real, table, 5, 1).weights, seen[0][1])


def test_no_texts_and_no_tokens(tiny_bert_folder):
    model = made(tiny_bert_folder)
    router, table = model.query.heads["routed"].router, model.query.backbone.embeddings.weight
    for shape in ((0, 0), (0, 4), (2, 0)):
        real = torch.zeros(shape, dtype=torch.bool)
        found = router(torch.zeros(*shape, 16), real, table, 5)
        assert found.weights.shape == (*shape, 5) and not found.pooled.any() and not found.shares.any()
    assert len(model.encode_document([], FP32)["routed"]) == 0
    assert model.query.spans([], "routed", "document") == []


# -- in an encoder ---------------------------------------------------------------------------------------


def test_an_index_gets_the_rows_that_training_sees_and_nothing_else(tiny_bert_folder):
    model = made(tiny_bert_folder)
    stored = model.encode_document(TEXTS, FP32)
    assert set(stored) == {"cls", "routed"} == set(model.sets)
    seen = model(model.query.tokens(TEXTS, "document"))["routed"].ragged()
    np.testing.assert_array_equal(stored["routed"].ids, seen.ids)
    np.testing.assert_allclose(stored["routed"].values, seen.values, atol=1e-5)
    more = [name for name in model.eval()(model.query.tokens(TEXTS, "document")) if "." in name]
    assert more == ["routed" + BY_GATE], "the rest is for training"


def test_spans_and_ids_stand_beside_rows_also_those_that_are_dropped(tiny_bert_folder):
    model = made(tiny_bert_folder)
    weights = model.gate_weights(TEXTS, "routed")
    for side, encode in (("query", model.encode_query), ("document", model.encode_document)):
        packed = encode(TEXTS)["routed"]  # in the precision that spans are found in
        spans = model.spans(TEXTS, "routed", side)
        for i, ids in enumerate(model.row_ids(TEXTS, "routed", side)):
            kept = ids if side == "query" else ids[weights[i][:, 0] > 0]
            assert kept.tolist() == packed.ids_of(i).tolist() and len(spans[i]) == len(ids)
            for span, key in zip(spans[i], ids, strict=True):
                token, arrow, name = span.text.partition("→")
                assert (name if arrow else token.lower()) in (VOCABULARY[key], VOCABULARY[key].strip("#"))
                assert TEXTS[i][span.start : span.end] == (token if span.end else "")
    assert (weights.values == 0).any() and (weights.values > 0).any()
    with pytest.raises(ConfigError, match=r"use Encoder\.spans"):
        _ = model.query.heads["routed"].choice


def test_texts_come_back_to_their_places_whatever_the_batches(tiny_bert_folder):
    from counterpoint.encode import EncodeOptions

    model = made(tiny_bert_folder)
    options = EncodeOptions(budget=1, precision="fp32", device="cpu")
    batches = model.query.in_batches(TEXTS, "query", options, model, model)
    places = [place for found, _, _ in batches for place in found]
    assert sorted(places) == list(range(len(TEXTS))) != places


def test_a_threshold_drops_rows_of_documents_and_changes_none_that_stays(tiny_bert_folder):
    model = Model(made(tiny_bert_folder)).setup()
    weights = model.encoder(model.encoder.query.tokens(TEXTS, "document"))["routed" + BY_GATE].values.detach()
    before, queries = (
        encode(TEXTS, FP32)["routed"] for encode in (model.encode_document, model.encode_query)
    )
    mark = model.fingerprint()
    model.prune(float(weights[weights > 0].median()))
    after = model.encode_document(TEXTS, FP32)["routed"]
    assert model.fingerprint() != mark and 0 < len(after.values) < len(before.values)
    left = [row.tobytes() for row in before.values]
    assert all(row.tobytes() in left for row in after.values)
    np.testing.assert_array_equal(model.encode_query(TEXTS, FP32)["routed"].values, queries.values)
    with pytest.raises(ConfigError, match="no gate and no router"):
        Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), {"cls": Cls()}))).prune(0.9)


def test_it_is_saved_and_loaded(tiny_bert_folder, tmp_path):
    model = made(tiny_bert_folder, "softmax")
    model.save(tmp_path / "routed")
    loaded = Part.load(tmp_path / "routed")
    assert loaded.fingerprint() == model.fingerprint()
    one, other = (each.encode_document(TEXTS, FP32)["routed"] for each in (model, loaded))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.ids, other.ids)


def test_what_is_refused(tiny_bert_folder):
    with pytest.raises(ConfigError, match="'routed' needs no gate"):
        DualEncoder(made(tiny_bert_folder).query, gates={"routed": Gate()}).setup()
    with pytest.raises(ConfigError, match="each at least 1"):
        Routed(Router(), keys=(0, 5))
    with pytest.raises(ConfigError, match="threshold must be finite and at least 0"):
        Routed(Router(), threshold=-1.0)
    with pytest.raises(ConfigError, match="vocabulary is 7, but the backbone has"):
        Encoder(Transformer(str(tiny_bert_folder)), {"r": Routed(Router(start="new", vocabulary=7))}).setup()
    model = made(tiny_bert_folder)
    with pytest.raises(NotFittedError, match="use an Encoder"):
        model.query.heads["routed"](torch.zeros(1, 3, 16), model.query.tokens(["a"], "query"))


# -- masked-language-model heads ---------------------------------------------------------------------------


def masked_lm(kind, folder):
    """A tiny masked-language model by transformers, and its folder."""
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        DistilBertConfig,
        DistilBertForMaskedLM,
        RobertaConfig,
        RobertaForMaskedLM,
    )

    torch.manual_seed(2)
    size = {"vocab_size": len(VOCABULARY), "initializer_range": 0.4, "max_position_embeddings": 64}
    bert = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    model = {
        "bert": lambda: BertForMaskedLM(BertConfig(**size, **bert)),
        "roberta": lambda: RobertaForMaskedLM(
            RobertaConfig(**size, **bert, pad_token_id=0, layer_norm_eps=1e-12, type_vocab_size=1)
        ),
        "distilbert": lambda: DistilBertForMaskedLM(
            DistilBertConfig(**size, dim=16, n_layers=2, n_heads=2, hidden_dim=32)
        ),
    }[kind]()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name or "orm" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    model.eval().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_the_checkpoints_own_head_is_taken(kind, tmp_path):
    reference = masked_lm(kind, tmp_path)
    model = made(tmp_path, start="checkpoint").eval()
    tokens = model.query.tokens(TEXTS[:4], "document")
    with torch.inference_mode():
        expected = reference(input_ids=tokens.ids, attention_mask=tokens.attention.long()).logits
        router = model.query.heads["routed"].router
        found = router.logits(model.query.backbone(tokens), model.query.backbone.embeddings.weight)
    assert_close(found[tokens.attention], expected[tokens.attention], atol=1e-4, rtol=1e-4)


def test_a_saved_model_takes_its_own_router_and_not_the_checkpoints(tmp_path):
    masked_lm("bert", tmp_path / "lm")
    model = made(tmp_path / "lm", start="checkpoint")
    with torch.no_grad():
        model.query.heads["routed"].router.bias_.add_(1.0)
    model.save(tmp_path / "routed")
    assert Part.load(tmp_path / "routed").fingerprint() == model.fingerprint()


def test_a_checkpoint_without_a_head_is_refused(tiny_bert_folder, tmp_path):
    with pytest.raises(ArtifactError, match="no masked-language-model head"):
        made(tiny_bert_folder, start="checkpoint")
    masked_lm("bert", tmp_path / "lm")
    heads = {"routed": Routed(Router())}
    with pytest.raises(ArtifactError, match=r"declare Router\(start='new'\)"):
        Encoder(Transformer(str(tmp_path / "lm"), random=True), heads).setup()
    other = copy(tmp_path / "lm", tmp_path)
    config = (other / "config.json").read_text()
    (other / "config.json").write_text(config.replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    assert '"hidden_act": "gelu"' in config
    with pytest.raises(ArtifactError, match="with GELU"):
        Encoder(Transformer(str(other)), {"routed": Routed(Router())}).setup()
