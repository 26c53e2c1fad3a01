"""ColBERTer's gate: what it computes, on which side, and that training and an index see the same rows."""

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32, TEXTS

from counterpoint.encode import BY_GATE, Cls, DualEncoder, Encoder, Gate, Linear, Transformer, WholeWords
from counterpoint.errors import ConfigError
from counterpoint.part import Part
from counterpoint.score import MaxSim
from counterpoint.vectors import Vectors


def made(folder, gate=None, **more):
    heads = {"cls": Cls(Linear(4)), "words": WholeWords(stem="lower", projection=Linear(3))}
    encoder = Encoder(Transformer(str(folder)), heads)
    return DualEncoder(encoder, gates={"words": gate or Gate()}, **more).setup().eval()


@pytest.fixture
def gated(tiny_bert_folder):
    """A model whose gate drops about half of the words."""
    torch.manual_seed(5)
    model = made(tiny_bert_folder)
    linear = model.gates["words"].linear_
    with torch.no_grad():
        linear.weight.normal_(0, 2)
        rows = torch.from_numpy(DualEncoder(model.query).eval().encode_document(TEXTS, FP32)["words"].values)
        linear.bias.copy_(-(rows @ linear.weight[0]).median())
    return model


def test_golden_colberter_score(golden):
    case = golden("colberter_score")
    inputs, expected = case["inputs"], case["expected"]
    rows = torch.tensor(inputs["d"])
    gate = Gate(in_dim=2).setup()
    # Weights that give the three rows their printed gate values: a system of three equations in w and b.
    system = torch.cat([rows, torch.ones(3, 1)], 1)
    solved = torch.linalg.solve(system, torch.tensor(inputs["gate_pre"]))
    with torch.no_grad():
        gate.linear_.weight.copy_(solved[None, :2])
        gate.linear_.bias.copy_(solved[2:])
    ids = torch.tensor([inputs["d_ids"]])
    kept, weights = gate(Vectors(rows[None], torch.ones(1, 3, dtype=torch.bool), ids))
    assert weights.values[0, :, 0].tolist() == pytest.approx(expected["gate"], abs=1e-5)
    assert kept.mask.tolist() == [[True, False, True]]
    query = {
        "words": Vectors(
            torch.tensor([inputs["q"]]), torch.ones(1, 3, dtype=torch.bool), torch.tensor([inputs["q_ids"]])
        )
    }
    score = MaxSim("words", floor0=True)(query, {"words": kept}).item()
    assert score == pytest.approx(expected["token_full_train"], abs=1e-4)
    exact = MaxSim("words", exact=True, floor0=True)(query, {"words": kept}).item()
    assert exact == pytest.approx(expected["token_em_zerofill_train"], abs=1e-4)


def test_it_weighs_and_drops_documents_rows_only(gated):
    plain = DualEncoder(gated.query).setup().eval()
    linear = gated.gates["words"].linear_
    weight, bias = linear.weight[0].detach(), linear.bias[0].detach()
    raw, found = plain.encode_document(TEXTS, FP32)["words"], gated.encode_document(TEXTS, FP32)["words"]
    dropped = 0
    for i in range(len(TEXTS)):
        expected, ids = [], []
        for row, number in zip(raw[i], raw.ids_of(i), strict=True):
            r = max(0.0, float(torch.from_numpy(row) @ weight + bias))
            if r > 0:
                expected.append(r * row)
                ids.append(number)
            else:
                dropped += 1
        assert found.ids_of(i).tolist() == ids
        np.testing.assert_allclose(found[i], np.array(expected).reshape(-1, 3), atol=1e-5)
    assert 0 < dropped < len(raw.values)
    queries = [model.encode_query(TEXTS, FP32)["words"].values for model in (plain, gated)]
    np.testing.assert_array_equal(*queries)


def test_its_weights_are_told_of_every_row_that_there_was(gated):
    plain = DualEncoder(gated.query).setup().eval()
    linear = gated.gates["words"].linear_
    raw, found = plain.encode_document(TEXTS, FP32)["words"], gated.gate_weights(TEXTS, "words", FP32)
    assert found.offsets.tolist() == raw.offsets.tolist() and found.ids.tolist() == raw.ids.tolist()
    for row, weight in zip(raw.values, found.values, strict=True):
        product = sum(float(a) * float(b) for a, b in zip(row, linear.weight[0].tolist(), strict=True))
        assert weight.tolist() == pytest.approx([max(0.0, product + linear.bias.item())], abs=1e-5)
    with pytest.raises(ConfigError, match="no gate on 'cls'; there is one on words"):
        gated.gate_weights(TEXTS, "cls")


def test_training_sees_the_same_rows_as_an_index_and_the_gates_beside_them(gated):
    tokens = gated.query.tokens(TEXTS, "document")
    seen = gated(tokens)
    stored = gated.encode_document(TEXTS, FP32)
    assert set(stored) == {"cls", "words"} == set(gated.sets)
    np.testing.assert_allclose(seen["words"].ragged().values, stored["words"].values, atol=1e-5)
    gates = seen["words" + BY_GATE]
    assert gates.mask.equal(gated.query(tokens)["words"].mask), "of every word that there was"
    assert (gates.values[..., 0] > 0).equal(seen["words"].mask)
    assert "words" + BY_GATE not in gated(gated.query.tokens(TEXTS, "query"))


def test_padding_may_hold_anything_and_a_gradient_passes():
    gate = Gate(in_dim=2).setup()
    values = torch.tensor([[[1.0, 2.0], [float("nan"), float("inf")]]])
    kept, weights = gate(Vectors(values, torch.tensor([[True, False]])))
    assert kept.mask.tolist() == [[True, False]] and not weights.values[0, 1].any()
    kept.values[kept.mask].sum().backward()
    assert torch.isfinite(gate.linear_.weight.grad).all() and gate.linear_.weight.grad.any()


def test_every_word_is_open_at_first():
    gate = Gate(in_dim=3).setup()
    assert gate.linear_.bias.item() == 1


def test_a_threshold_drops_more_and_changes_no_row_that_stays(gated):
    before = gated.encode_document(TEXTS, FP32)["words"]
    tokens = gated.query.tokens(TEXTS, "document")
    weights = gated(tokens)["words" + BY_GATE].values.detach()
    gated.gates["words"].threshold = float(weights[weights > 0].median())
    after = gated.encode_document(TEXTS, FP32)["words"]
    assert 0 < len(after.values) < len(before.values)
    for i in range(len(TEXTS)):
        rows = {int(number): row for number, row in zip(before.ids_of(i), before[i], strict=True)}
        for number, row in zip(after.ids_of(i), after[i], strict=True):
            np.testing.assert_array_equal(row, rows[int(number)])


def test_all_words_gated_away_or_no_words_at_all_score_nothing(gated):
    with torch.no_grad():
        gated.gates["words"].linear_.weight.zero_()
        gated.gates["words"].linear_.bias.fill_(-1)
    assert not len(gated.encode_document(TEXTS, FP32)["words"].values)
    q = gated(gated.query.tokens(["the cat", ""], "query"))
    d = gated(gated.query.tokens(TEXTS, "document"))
    for exact in (False, True):
        assert not MaxSim("words", exact=exact, floor0=True)(q, d).any()


def test_a_second_projection_has_nothing_to_say_of_dropped_rows(gated, tiny_bert_folder):
    """Uni-ColBERTer's second projection has a bias, and a dropped row would become that bias."""
    torch.manual_seed(6)
    uni = (
        DualEncoder(gated.query, shared={"words": Linear(1)}, gates={"words": gated.gates["words"]})
        .setup()
        .eval()
    )
    with torch.no_grad():
        uni.shared["words"].linear_.bias.fill_(100.0)
    before, after = gated.encode_document(TEXTS, FP32)["words"], uni.encode_document(TEXTS, FP32)["words"]
    assert uni.sets["words"] == 1
    np.testing.assert_array_equal(before.offsets, after.offsets)
    np.testing.assert_array_equal(before.ids, after.ids)
    weight = uni.shared["words"].linear_.weight.detach().numpy()
    np.testing.assert_allclose(after.values, before.values @ weight.T + 100, rtol=1e-5)


def test_it_is_saved_and_loaded(gated, tmp_path):
    gated.save(tmp_path / "gated")
    loaded = Part.load(tmp_path / "gated")
    assert loaded.fingerprint() == gated.fingerprint()
    np.testing.assert_array_equal(
        loaded.encode_document(TEXTS, FP32)["words"].values,
        gated.encode_document(TEXTS, FP32)["words"].values,
    )


def test_what_is_refused(tiny_bert_folder):
    with pytest.raises(ConfigError, match="a gate on 'tokens', but the encoders make cls, words"):
        heads = {"cls": Cls(), "words": WholeWords()}
        DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads), gates={"tokens": Gate()}).setup()
    with pytest.raises(ConfigError, match="'cls' has one row per text"):
        DualEncoder(
            Encoder(Transformer(str(tiny_bert_folder)), {"cls": Cls()}), gates={"cls": Gate()}
        ).setup()
    with pytest.raises(ConfigError, match="in_dim is 5, but the input has 3"):
        made(tiny_bert_folder, Gate(in_dim=5))
    with pytest.raises(ConfigError, match=r"threshold must be finite and at least 0, found -0\.1"):
        Gate(threshold=-0.1)
