"""The alignment stage ends for the right reason, and a collapse is not taken for alignment."""

import importlib.util
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from counterpoint.config import Setting
from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.errors import ConfigError, DataError
from counterpoint.learn import AlignmentStop, DevelopmentSet, Situation
from counterpoint.measure.alignment import kl_divergence, mean_cosine, participation_ratio, spectrum
from counterpoint.model import Model
from counterpoint.types import Ragged

TEXTS = [
    f"where is the {what} {who}?" for what in ("red", "blue", "a") for who in ("cat", "dog", "mat", "house")
]


def situation(model, texts=TEXTS):
    queries = {str(at): text for at, text in enumerate(texts)}
    development = DevelopmentSet(queries, {"d": "a cat"}, {"0": {"d": 1}})
    return Situation(model, development, {})


def looks(kl, cosine=0.2, rank=10.0, delta=7.8):
    """Histories by their divergences; the last look has this cosine and rank, those before 0.2 and 10."""
    made = [
        {
            "alignment.kl": value,
            "alignment.delta": delta,
            "alignment.document.cosine": 0.2,
            "alignment.document.rank": 10.0,
            "alignment.query.cosine": 0.2,
            "alignment.query.rank": 10.0,
        }
        for value in kl
    ]
    made[-1] |= {"alignment.document.cosine": cosine, "alignment.document.rank": rank}
    return made


class Fixed:
    """A model of two sides whose vectors are given."""

    def __init__(self, query, document):
        self.query, self.document = query, document
        self.sets = {"cls": None}
        self.asked = []

    def parameters(self):
        return iter([torch.zeros(1)])

    def encode_query(self, texts, options):
        self.asked.append(texts)
        return {"cls": self._rows(self.query, texts)}

    def encode_document(self, texts, options):
        return {"cls": self._rows(self.document, texts)}

    def _rows(self, rows, texts):
        found = [rows[TEXTS.index(text)][None].astype(np.float32) for text in texts]
        return Ragged.from_list(found, dim=rows.shape[1])


# -- looking ---------------------------------------------------------------------------------------------


def test_a_look_compares_both_sides_on_the_same_queries():
    rng = np.random.default_rng(0)
    query, document = rng.normal(size=(2, len(TEXTS), 5)).astype(np.float32)
    document[:, 2:] = 1
    model = Fixed(query, document)
    found = AlignmentStop().look(situation(model, [*TEXTS, *TEXTS[:3], TEXTS[0].upper()]))
    assert model.asked == [TEXTS]  # each text once
    assert found["alignment.kl"] == pytest.approx(kl_divergence(document, query))
    assert found["alignment.delta"] == pytest.approx(250 * 5 / 512)
    assert AlignmentStop(delta=3).look(situation(model))["alignment.delta"] == 3
    for side, rows in (("query", query), ("document", document)):
        assert found[f"alignment.{side}.cosine"] == pytest.approx(mean_cosine(rows))
        assert found[f"alignment.{side}.rank"] == pytest.approx(participation_ratio(spectrum(rows)))
    assert json.loads(json.dumps(found)) == found


def test_a_sample_is_the_same_at_every_look():
    model = Fixed(*np.random.default_rng(0).normal(size=(2, len(TEXTS), 5)))
    rule = AlignmentStop(sample=7)
    rule.look(situation(model))
    rule.look(situation(model))
    assert model.asked[0] == model.asked[1] and len(set(model.asked[0])) == 7


def test_real_encoders_and_a_choice_of_set(tiny_bert_folder):
    def encoder():
        heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
        return Encoder(Transformer(str(tiny_bert_folder)), heads)

    model = Model(DualEncoder(encoder(), encoder())).setup().train()
    with pytest.raises(ConfigError, match="the sets mean, tokens; name one with on="):
        AlignmentStop().look(situation(model))
    with pytest.raises(ConfigError, match="there is no 'cls'"):
        AlignmentStop(on="cls").look(situation(model))
    equal = AlignmentStop(on="mean").look(situation(model))
    # The encoders coincide, of which there is no estimate, and so no reason to stop.
    assert "alignment.kl" not in equal and equal["alignment.coincident"] == 1
    assert AlignmentStop(on="mean", patience=1).decide([equal] * 5) is None
    assert model.training
    with torch.no_grad():
        for weights in model.encoder.query.parameters():
            weights += 0.3 * torch.randn_like(weights)
    for name in ("mean", "tokens"):
        found = AlignmentStop(on=name).look(situation(model))
        assert found["alignment.coincident"] == 0 and found["alignment.kl"] > 0


def test_without_queries_there_is_nothing_to_compare():
    model = SimpleNamespace(sets={"cls": None})
    with pytest.raises(ConfigError, match="found 0 different ones; give the run a development split"):
        AlignmentStop().look(Situation(model, None, {}))
    with pytest.raises(ConfigError, match="found 1 different ones"):
        AlignmentStop().look(situation(model, ["the same", "the same"]))
    point = np.ones((len(TEXTS), 5))
    with pytest.raises(DataError, match="one point"):
        AlignmentStop().look(situation(Fixed(point, point)))


# -- deciding --------------------------------------------------------------------------------------------


def test_the_three_kinds_of_reasons():
    rule = AlignmentStop(patience=3)
    assert rule.decide([]) is None
    assert rule.decide(looks([20, 12, 7.9])) is None
    assert rule.decide(looks([20, 7.7])) == "aligned: KL 7.7 is below 7.8"
    assert rule.decide(looks([20, 12, 12, 13])) is None
    assert rule.decide(looks([20, 12, 12, 13, 12])) == "stalled: KL has not fallen below 12 for 3 looks"
    assert rule.decide(looks([20, 12, 13, 12, 11.9])) is None
    assert rule.decide(looks([20, -3e4])).startswith("aligned")


def test_a_look_without_an_estimate_decides_nothing():
    rule, history = AlignmentStop(patience=2), looks([20, 12, 12, 5])
    for unknown in (2, 3):
        del history[unknown]["alignment.kl"]
    assert rule.decide(history) is None
    assert rule.decide(history + looks([13])) is None  # the second look without a lower one
    assert rule.decide(history + looks([13, 12])).startswith("stalled")
    assert rule.decide(history + looks([13, 5])).startswith("aligned")


@pytest.mark.parametrize("kl", [[20, 5], [20, 12, 12, 12, 12]])
def test_a_document_side_that_lost_its_spread_is_never_aligned(kl):
    rule = AlignmentStop()
    assert rule.decide(looks(kl, cosine=0.59, rank=5.1)).split(":")[0] in ("aligned", "stalled")
    one = rule.decide(looks(kl, cosine=0.61))
    assert one.startswith("collapsed: documents point in one direction, mean cosine 0.610, was 0.200")
    assert rule.decide(looks(kl, rank=4.9)).startswith("collapsed: documents use few dimensions")
    assert rule.decide(looks(kl, cosine=0.1, rank=20)).split(":")[0] in ("aligned", "stalled")
    lenient = AlignmentStop(least_room=0.1, least_rank=0.1)
    assert not lenient.decide(looks(kl, cosine=0.61, rank=4.9)).startswith("collapsed")
    assert rule.is_failure(one) and not rule.is_failure(rule.decide(looks(kl)))


@pytest.mark.parametrize("query", [{"cosine": 0.61}, {"rank": 4.9}])
def test_a_query_side_without_spread_is_not_aligned_however_low_the_estimate(query):
    history = looks([20, 5])
    history[-1] |= {f"alignment.query.{name}": value for name, value in query.items()}
    assert AlignmentStop().decide(history) is None
    assert AlignmentStop(least_match=0.3).decide(history).startswith("aligned")
    history += history[-1:] * 3
    assert AlignmentStop(patience=3).decide(history).startswith("stalled")


def test_queries_at_one_point_have_a_low_estimate_where_documents_are_spread():
    """Why there is that guard: at 256 components, 125 is the paper's threshold."""
    rng = np.random.default_rng(0)
    documents = rng.normal(size=(300, 256))
    point = rng.normal(size=256) + 0.01 * rng.normal(size=(300, 256))
    assert mean_cosine(point) > 0.99 and mean_cosine(documents) < 0.01
    assert kl_divergence(documents, point) < 125 / 2


def test_a_collapse_that_is_still_far_from_aligned_may_go_on():
    assert AlignmentStop().decide(looks([20, 15, 12], cosine=1.0)) is None


@pytest.mark.shared
def test_the_toy_crosses_the_threshold_with_all_documents_on_one_point(shared):
    """With the shared projection trained in stage 1, KL₁ ends below 0.488·16, the documents at one point."""
    spec = importlib.util.spec_from_file_location("daft_toy", shared / "golden" / "daft_toy.py")
    toy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(toy)
    reasons = {}
    before = None
    for frozen in (True, False):  # documents stay where they began if the projection is frozen
        (start, end), _, _, cosine, _ = toy.run(0, daft=1, align=800, steps=801, fp=frozen, C=1024)
        before = cosine if frozen else before
        history = looks([start, end], cosine=cosine, delta=250 * 16 / 512)
        history[0]["alignment.document.cosine"] = before
        assert start > 7.8 > end
        reasons[frozen] = AlignmentStop().decide(history).split(":")[0]
    assert reasons == {True: "aligned", False: "collapsed"}


# -- settings --------------------------------------------------------------------------------------------


def test_settings_are_plain_data_and_checked_at_once():
    rule = AlignmentStop(on="cls", patience=5, every=100)
    assert Setting.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule
    with pytest.raises(ConfigError) as caught:
        AlignmentStop(patience=0, sample=1, every=0, least_room=1.5, least_rank=-1, least_match=2)
    assert len(caught.value.faults) == 6
