"""The vectors of a model's sets, at length 1 and as long as they come."""

import numpy as np

from counterpoint.cli.diagnosis.space import spaces_of
from counterpoint.cli.sampling import Sample
from counterpoint.encode import Cls, DualEncoder, Encoder, Mean, Routed, Router, TokenVectors, Transformer
from counterpoint.measure.inter_iso import pair_inter_iso
from counterpoint.model import Model
from counterpoint.transform import Normalise

TEXTS = {"a": "the quick brown fox", "b": "a lazy dog", "c": ""}


def lengths(rows):
    return np.linalg.norm(rows.values, axis=1)


def test_sets_that_end_at_length_1_are_kept_as_long_as_they_come_too(tiny_bert_folder):
    heads = {
        "head": Mean(normalise=True),
        "step": Mean(),
        "cls": Cls(),
        "tokens": TokenVectors(normalise=True),
    }
    encoder = DualEncoder(Encoder(Transformer(str(tiny_bert_folder), layers=1), heads))
    model = Model(encoder, {"step": [Normalise()]}).setup().eval()
    before = model.fingerprint()
    found = spaces_of(model, Sample(TEXTS, TEXTS, {}, {}, None), None, 0)
    assert model.fingerprint() == before and found["cls"].raw is None
    for name in ("head", "step", "tokens"):
        space = found[name]
        for side in ("queries", "documents", "crossed"):
            unit, raw = getattr(space, side), getattr(space.raw, side)
            np.testing.assert_allclose(lengths(unit), 1, atol=1e-6)
            assert np.abs(lengths(raw) - 1).max() > 0.1
            np.testing.assert_allclose(unit.values * lengths(raw)[:, None], raw.values, atol=1e-5)
        known = model.encode_document(list(TEXTS.values()))[name].values
        np.testing.assert_allclose(space.documents.values, known, atol=1e-2)  # of bfloat16


def test_weights_count_where_rows_are_weighed(tiny_bert_folder):
    """As in training: a key of little weight says little."""
    routed = {
        "routed": Routed(Router("softmax", start="new"), normalise=True),
        "tokens": TokenVectors(normalise=True),
    }
    model = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder), layers=1), routed))).setup().eval()
    sample = Sample(TEXTS, TEXTS, {}, {"a": {"b": 1}, "b": {"a": 1}}, "test")
    found = spaces_of(model, sample, None, 0)
    assert found["routed"].weighed and not found["tokens"].weighed
    numbers = {name: space.numbers() for name, space in found.items()}
    assert numbers["routed"]["between"]["kl"] is None and numbers["routed"]["weighed"]
    for name, space in found.items():
        own = [
            pair_inter_iso(space.queries.take([q]), space.documents.take([d]), unit=name == "tokens")
            for q, d in sample.pairs()
        ]
        np.testing.assert_allclose(numbers[name]["inter_iso"]["together"], np.mean(own), rtol=1e-5)
