"""Sets with a backbone of their own: one model of several modules (ColBERT-λ)."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32, TEXTS, assert_same, save_tiny_bert
from torch.testing import assert_close

from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Linear,
    Mean,
    Routed,
    Router,
    Static,
    TextInput,
    TokenVectors,
    Transformer,
    cut_query,
)
from counterpoint.errors import ConfigError
from counterpoint.learn.fit import token_rows
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.part import Part

QUERY, DOCUMENT = TextInput(12, marker="[unused0]", expand_to=12), TextInput(24, marker="[unused1]")


def backbone(folder, seed, **options):
    """One of random weights, so that two of them differ."""
    torch.manual_seed(seed)
    return Transformer(str(folder), random=True, **options).setup()


def colbert(on, of):
    head = TokenVectors(projection=Linear(4, bias=False), normalise=True)
    return DualEncoder(Encoder(of, {on: head}, QUERY, DOCUMENT)).setup()


def together(one, other):
    """Both modules in one encoder, as their own weights have it."""
    heads = {**one.query.heads, **other.query.heads}
    own = {name: other.query.backbone for name in other.query.heads}
    return DualEncoder(Encoder(one.query.backbone, heads, QUERY, DOCUMENT, own))


def test_each_set_is_what_its_own_module_makes(tiny_bert_folder, tmp_path):
    iso, aniso = (colbert(on, backbone(tiny_bert_folder, at)) for at, on in enumerate(("iso", "aniso")))
    made = together(iso, aniso)
    for side in ("query", "document"):
        found = getattr(made, f"encode_{side}")(TEXTS, FP32)
        for module in (iso, aniso):
            alone = getattr(module, f"encode_{side}")(TEXTS, FP32)
            assert_same({on: found[on] for on in alone}, alone, rtol=1e-6, atol=1e-6)
    assert np.abs(found["iso"].values - found["aniso"].values).max() > 0.1
    assert made.query.backbones == [iso.query.backbone, aniso.query.backbone]
    made.save(tmp_path / "model")
    again = Part.load(tmp_path / "model")
    assert again.fingerprint() == made.fingerprint()
    assert_same(again.encode_document(TEXTS, FP32), found)
    assert set(load_model(tmp_path / "model").sets) == {"iso", "aniso"}


def test_a_backbone_that_sets_share_is_run_once_and_saved_once(tiny_bert_folder, tmp_path):
    one, other = backbone(tiny_bert_folder, 0), backbone(tiny_bert_folder, 1)
    heads = {"mean": Mean(), "rows": TokenVectors(), "l": Static(), "far": Static()}
    made = DualEncoder(Encoder(one, heads, own={"rows": other, "mean": other, "far": other})).setup()
    calls = []
    for found in (one, other):
        found.register_forward_hook(lambda module, *_: calls.append(module))
    vectors = made.encode_document(TEXTS[:1], FP32)
    assert calls == [other]  # of the first only the word embeddings are wanted
    assert made.query.backbones == [one, other]
    rows = vectors["rows"].values
    np.testing.assert_allclose(vectors["mean"].values[0], rows.mean(0), rtol=1e-5, atol=1e-6)
    for on, of in (("l", one), ("far", other)):
        table = made.table(on)
        assert_close(table, of.embeddings.weight)
        np.testing.assert_allclose(vectors[on].values, table.detach()[vectors[on].ids].numpy())
    assert token_rows(made, "mean").query.backbone is other
    made.save(tmp_path / "model")
    again = Part.load(tmp_path / "model")
    assert len(again.query.backbones) == 2
    assert_same(again.encode_document(TEXTS[:1], FP32), vectors)


def test_a_router_scores_the_keys_of_its_own_backbone(tiny_bert_folder):
    one, other = backbone(tiny_bert_folder, 0), backbone(tiny_bert_folder, 1)
    routed = Routed(Router(start="new"), projection=Linear(4))
    made = DualEncoder(Encoder(one, {"mean": Mean(), "routed": routed}, own={"routed": other})).setup()
    alone = DualEncoder(Encoder(other, {"routed": deepcopy(routed)})).setup()
    found = made.encode_document(TEXTS, FP32)["routed"]
    assert_same({"routed": found}, alone.encode_document(TEXTS, FP32), rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_refused(tiny_bert_folder, tmp_path):
    one = Transformer(str(tiny_bert_folder))
    with pytest.raises(ConfigError, match="a backbone for 'rows', but the heads are mean"):
        Encoder(one, {"mean": Mean()}, own={"rows": Transformer(str(tiny_bert_folder))}).setup()
    short = Transformer(str(save_tiny_bert(tmp_path / "short", positions=20)))
    heads = {"mean": Mean(), "rows": TokenVectors()}
    made = Encoder(one, heads, own={"rows": short})
    assert made.setup().max_positions == 20
    assert len(made.rows(["dog " * 50], "document")[0]) == 20
    with pytest.raises(ConfigError, match="max_length is 40, but the backbone accepts at most 20"):
        Encoder(one, heads, TextInput(40), own={"rows": short}).setup()
    with pytest.raises(ConfigError, match="cannot cut rows, which has a backbone of its own"):
        cut_query(made, 1)


def test_tokenizers_that_differ_are_refused(tiny_bert_folder, tmp_path):
    save_tiny_bert(tmp_path / "other")
    path = tmp_path / "other" / "tokenizer.json"
    path.write_text(path.read_text().replace('"dogs"', '"doges"'))
    own = {"rows": Transformer(str(tmp_path / "other"))}
    with pytest.raises(ConfigError, match="the backbones have different tokenizers"):
        Encoder(Transformer(str(tiny_bert_folder)), {"mean": Mean(), "rows": TokenVectors()}, own=own).setup()


def test_encoders_without_them_are_declared_as_before(tiny_bert_folder):
    """So that fingerprints of saved models, and of indexes made by them, stay as they are."""
    encoder = Encoder(Transformer(str(tiny_bert_folder)), {"mean": Mean()})
    assert encoder.own is None and "own" not in encoder.to_dict(defaults=True)
    assert (
        Encoder(Transformer(str(tiny_bert_folder)), {"mean": Mean()}, own={}).to_dict() == encoder.to_dict()
    )
    assert Model(DualEncoder(encoder)).fingerprint() is not None


def test_modules_may_share_a_head_with_its_projection(tiny_bert_folder, tmp_path):
    """What is in a part of two names has two names with it, in the folder, too."""
    head = TokenVectors(projection=Linear(4, bias=False))
    own = {"aniso": backbone(tiny_bert_folder, 1)}
    made = DualEncoder(Encoder(backbone(tiny_bert_folder, 0), {"iso": head, "aniso": head}, own=own))
    made.save(tmp_path / "model")
    again = Part.load(tmp_path / "model")
    assert again.query.heads["iso"] is again.query.heads["aniso"]
    assert_same(again.encode_document(TEXTS, FP32), made.encode_document(TEXTS, FP32))
