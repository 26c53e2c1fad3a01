"""ColBERTer's published layout: a tiny random model, encoded again by loops over transformers' own output."""

import hashlib
import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.encode import formats
from tests.encode.tiny import FP32, TEXTS

from counterpoint.encode import load_encoder
from counterpoint.errors import ArtifactError
from counterpoint.loading import load_model

# No word is cut by the window, and none is Chinese: there the released code cuts words otherwise than BERT.
SHORT = [TEXTS[0], "Where is the red house? In what?", *TEXTS[2:4]]


def reference(text, tensors, bert, side, exact):
    """CLS vector, and vectors by word id, as the paper has them: gated words are not there."""
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(bert).eval(), AutoTokenizer.from_pretrained(bert)
    batch = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(batch["input_ids"], batch["attention_mask"]).last_hidden_state[0]

    def linear(name, x):
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    found = {}
    words = BertPreTokenizer().pre_tokenize_str(text)
    for place, (start, end) in enumerate(batch["offset_mapping"][0].tolist()):
        for word, (begin, stop) in words:
            if begin <= start < end <= stop:
                digest = hashlib.sha256(word.lower().encode()).digest()
                found.setdefault(int.from_bytes(digest[:4], "little"), []).append(hidden[place])
    rows = {number: linear("compressor", torch.stack(pieces)).mean(0) for number, pieces in found.items()}
    if side == "document":
        gates = {number: linear("stop_word_reducer", row).relu() for number, row in rows.items()}
        rows = {number: row * gates[number] for number, row in rows.items() if gates[number] > 0}
    if exact:
        rows = {number: linear("mini_compressor", row) for number, row in rows.items()}
    return linear("compressor_retrieval", hidden[0]), rows


@pytest.mark.parametrize("exact", [False, True], ids=["colberter", "uni-colberter"])
def test_its_vectors_are_those_of_the_paper(tmp_path, exact):
    torch.manual_seed(3)
    tensors, bert = formats.save_colberter(tmp_path / "m", exact=exact)
    found = load_encoder(tmp_path / "m")
    assert found.sets == {"cls": 6, "words": 1 if exact else 5}
    dropped = 0
    for side in ("query", "document"):
        sets = getattr(found, f"encode_{side}")(SHORT, FP32)
        for i, text in enumerate(SHORT):
            cls, rows = reference(text, tensors, bert, side, exact)
            np.testing.assert_allclose(sets["cls"][i][0], cls, atol=1e-4)
            assert sorted(sets["words"].ids_of(i).tolist()) == sorted(rows)
            for number, row in zip(sets["words"].ids_of(i).tolist(), sets["words"][i], strict=True):
                np.testing.assert_allclose(row, rows[number], atol=1e-4)
            dropped += len(found.spans([text], "words", side)[0]) - len(rows)
    assert dropped > 0


def test_a_model_of_it_is_searched_with_its_own_weights(tmp_path):
    formats.save_colberter(tmp_path / "m", exact=True)
    model = load_model(tmp_path / "m")
    cls = 1 / (1 + math.exp(-0.4))
    assert model.search == {
        "weights": {"cls": pytest.approx(cls), "words": pytest.approx(1 - cls)},
        "scale": "none",
        "exact": ("words",),
    }
    assert not model.transforms, "inner products, not cosines"


def test_without_words_it_matches_tokens(tmp_path):
    formats.save_colberter(tmp_path / "m", words=False)
    assert load_encoder(tmp_path / "m").sets == {"cls": 6, "tokens": 5}
    assert load_model(tmp_path / "m").search["floor"] == ("tokens",)


def test_weights_and_settings_that_disagree_are_refused(tmp_path):
    tensors, _ = formats.save_colberter(tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    whole = load_file(path)
    save_file({name: t for name, t in whole.items() if name != "compressor.bias"}, path)
    with pytest.raises(ArtifactError, match=r"weight 'compressor\.bias' is missing"):
        load_encoder(tmp_path / "m")
    save_file({**whole, "mini_compressor.weight": torch.zeros(1, 5)}, path)
    with pytest.raises(ArtifactError, match=r"'mini_compressor\.weight' is not expected by config\.json"):
        load_encoder(tmp_path / "m")
    save_file(whole, path)
    settings = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**settings, "bert_model": 3}))
    with pytest.raises(ArtifactError, match="does not name its backbone as bert_model"):
        load_encoder(tmp_path / "m")
