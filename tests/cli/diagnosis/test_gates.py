"""The stop words that a model has learnt, as `counterpoint diagnose` lists them."""

import json

import pytest
import torch
from tests.cli.conftest import DOCUMENTS
from tests.encode.tiny import FP32

from counterpoint.cli.diagnosis.gates import gate_text, gates_of
from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, Mean, Transformer, WholeWords
from counterpoint.model import Model

TEXTS = ["the dog runs", "the cat sat on the mat", "a dog and a cat", ""]


@pytest.fixture
def gated(tiny_bert_folder, monkeypatch):
    """A model of random weights whose gate drops some words."""
    monkeypatch.setattr("counterpoint.encode.batching.bf16_gains", lambda device: False)
    torch.manual_seed(5)
    heads = {"mean": Mean(normalise=True), "words": WholeWords(stem="lower", projection=Linear(3))}
    encoder = Encoder(Transformer(str(tiny_bert_folder)), heads)
    model = Model(DualEncoder(encoder, gates={"words": Gate()})).setup().eval()
    gate = model.encoder.gates["words"].linear_
    rows = torch.from_numpy(DualEncoder(encoder).eval().encode_document(TEXTS, FP32)["words"].values)
    with torch.no_grad():
        gate.weight.normal_(0, 2)
        at = (rows @ gate.weight[0]).sort().values
        gate.bias.fill_(-at[len(at) // 2 - 1 : len(at) // 2 + 1].mean())  # between two rows
    return model


def test_shares_are_those_of_the_words_that_encoding_leaves_out(gated):
    found = gates_of(gated, TEXTS)["words"]
    plain = DualEncoder(gated.encoder.query).eval()
    there, kept = (model.encode_document(TEXTS, FP32)["words"] for model in (plain, gated))
    assert (found["texts"], found["rows"]) == (4, len(there.values))
    assert found["dropped"] == pytest.approx(1 - len(kept.values) / len(there.values))
    spans = plain.spans(TEXTS, "words", "document")
    seen = {}
    for at, places in enumerate(spans):
        for span, number in zip(places, there.ids_of(at), strict=True):
            seen.setdefault(span.text, []).append(number in kept.ids_of(at))
    shares = {word: 1 - sum(stays) / len(stays) for word, stays in seen.items() if len(stays) > 1}
    assert {word["word"]: word["dropped"] for word in found["words"]} == pytest.approx(shares)
    assert 0 < found["dropped"] < 1 and set(shares) == {"the", "dog", "cat"}
    assert gates_of(gated, TEXTS, on="mean") == {}


def test_the_command_lists_them(gated, collection, call, tmp_path):
    with torch.no_grad():
        gated.encoder.gates["words"].linear_.bias.fill_(100.0)  # open: queries are encoded as documents, too
    gated.save(tmp_path / "model")
    code, out, err = call("diagnose", tmp_path / "model", collection, "--json")
    assert code == 0, err
    found = json.loads(out)["gates"]
    assert set(found) == {"words"} and found["words"]["texts"] == len(DOCUMENTS)
    assert found["words"]["dropped"] == 0 and found["words"]["words"][0]["mean"] > 50
    assert {"a", "the"} & {word["word"] for word in found["words"]["words"]}
    code, out, _ = call("diagnose", tmp_path / "model", collection)
    assert code == 0 and "words: the gate drops" in out and "mean r" in out


def test_a_gate_that_drops_everything_is_told_of(gated, collection, call, tmp_path):
    with torch.no_grad():
        gated.encoder.gates["words"].linear_.bias.fill_(-100.0)
    gated.save(tmp_path / "model")
    code, out, err = call("diagnose", tmp_path / "model", collection, "--plots", tmp_path / "plots")
    assert code == 0, err
    assert "words: too few rows to measure (" in out and "0 of documents" in out
    assert "mean: one vector" in out and not list((tmp_path / "plots").glob("*words*"))
    code, out, _ = call("diagnose", tmp_path / "model", collection, "--on", "words", "--json")
    found = json.loads(out)
    assert code == 0 and found["sets"] == {} and found["too_few_rows"]["words"]["documents"] == 0


def test_a_model_without_a_gate_has_no_such_list(tiny_bert_folder, collection, call):
    code, out, _ = call("diagnose", tiny_bert_folder, collection, "--json")
    assert code == 0 and "gates" not in json.loads(out)


def test_text_shows_both_ends_once():
    def word(at):
        return {"word": f"w{at:02}", "rows": 9, "mean": at / 40, "dropped": 1 - at / 40}

    found = {"texts": 9, "rows": 360, "dropped": 0.5, "threshold": 0.0, "words": [word(i) for i in range(40)]}
    shown = [line.split()[0] for line in gate_text({"words": found}).splitlines() if line.startswith("w")]
    assert shown[0] == "words:" and shown[2:17] == [f"w{i:02}" for i in range(15)]
    assert shown[17:] == [f"w{i:02}" for i in reversed(range(25, 40))]
    few = gate_text({"words": {**found, "words": [word(0), word(1)]}})
    assert few.count("w00") == few.count("w01") == 1
    assert "0 words" in gate_text({"words": {**found, "words": []}})
