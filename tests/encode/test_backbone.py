"""The backbone: transformers' own results, saving, and what is refused."""

import errno
import importlib
import json
import os
import shutil

import pytest
import torch
from huggingface_hub.errors import HfHubHTTPError
from safetensors.torch import load_file, save_file
from tests.encode.tiny import (
    FP32,
    TEXTS,
    VOCABULARY,
    assert_same,
    copy,
    model,
    save_tiny_bert,
    tiny_tokenizer,
)

from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, Transformer, WholeWords
from counterpoint.encode.sources import MINILM_SHA256, locate
from counterpoint.errors import ArtifactError, ConfigError, MissingExtraError
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.transform import Whitening


def test_hidden_states_are_transformers_own(tiny_bert_folder):
    from transformers import AutoModel

    made = model(tiny_bert_folder).setup().eval().query
    reference = AutoModel.from_pretrained(tiny_bert_folder).eval()
    batch = tiny_tokenizer()(TEXTS, padding=True, truncation=True, max_length=64, return_tensors="pt")
    tokens = made.tokens(TEXTS, "document")
    assert torch.equal(tokens.ids, batch["input_ids"])
    with torch.inference_mode():
        expected = reference(**batch).last_hidden_state
        torch.testing.assert_close(made.backbone(tokens), expected, rtol=1e-5, atol=1e-5)


FAMILIES = {
    "distilbert": {"dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 2},
    "roberta": {"pad_token_id": 0},
    "xlm-roberta": {"pad_token_id": 0},
    "mpnet": {},
    "electra": {"embedding_size": 8},
    "albert": {"embedding_size": 8},
    "modernbert": {"pad_token_id": 0, "cls_token_id": 4, "sep_token_id": 5},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family, tmp_path):
    from transformers import AutoConfig, AutoModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    sizes = {} if family == "distilbert" else sizes
    options = {"vocab_size": len(VOCABULARY), "max_position_embeddings": 66, **sizes, **FAMILIES[family]}
    AutoModel.from_config(AutoConfig.for_model(family, **options)).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    made = Encoder(Transformer(str(tmp_path)), {"words": WholeWords()}, document=TextInput(20)).setup().eval()
    tokens = made.tokens(TEXTS, "document")
    with torch.inference_mode():
        expected = AutoModel.from_pretrained(tmp_path).eval()(tokens.ids, tokens.attention.long())
        found = made.backbone(tokens)
    torch.testing.assert_close(
        found[tokens.attention], expected.last_hidden_state[tokens.attention], rtol=1e-4, atol=1e-5
    )
    assert made.backbone.max_positions == {"roberta": 65, "xlm-roberta": 65, "mpnet": 64}.get(family, 66)
    made.save(tmp_path / "saved")
    assert Part.load(tmp_path / "saved").fingerprint() == made.fingerprint()
    assert made.backbone.cut(1).fingerprint() == Transformer(str(tmp_path), layers=1).fingerprint()


def test_the_first_layers(tiny_bert_folder, tmp_path):
    from transformers import AutoModel

    cut = model(tiny_bert_folder, layers=2).setup().eval()
    tokens = cut.query.tokens(TEXTS, "document")
    reference = AutoModel.from_pretrained(tiny_bert_folder).eval()
    with torch.inference_mode():
        states = reference(tokens.ids, tokens.attention.long(), output_hidden_states=True).hidden_states
        torch.testing.assert_close(cut.query.backbone(tokens), states[2], rtol=1e-5, atol=1e-5)
    cut.save(tmp_path / "cut")
    assert Part.load(tmp_path / "cut").fingerprint() == cut.fingerprint()
    with pytest.raises(ConfigError, match="layers is 4, this model has 3"):
        Transformer(str(tiny_bert_folder), layers=4).setup()


def test_saved_it_needs_its_source_no_longer(tmp_path):
    folder = save_tiny_bert(tmp_path / "source")
    made = model(folder)
    expected = made.encode_query(TEXTS, FP32)
    made.save(tmp_path / "model")
    for file in folder.iterdir():
        file.unlink()
    (tmp_path / "model").rename(tmp_path / "moved")
    again = Part.load(tmp_path / "moved")
    assert_same(expected, again.encode_query(TEXTS, FP32), rtol=0, atol=0)
    assert again.fingerprint() == made.fingerprint()


def test_a_backbone_of_a_model_of_ours(tiny_bert_folder, tmp_path):
    """Its query side's or its document side's, cut to fewer layers where that is asked for; of a run, too."""
    two = DualEncoder(
        Encoder(Transformer(str(tiny_bert_folder), layers=2), {"mean": Mean()}),
        Encoder(Transformer(str(tiny_bert_folder), random=True), {"mean": Mean()}),
    )
    Model(two).save(tmp_path / "run" / "model")
    for folder in (tmp_path / "run" / "model", tmp_path / "run"):
        for side, own in (("query", two.query), ("document", two.document)):
            taken = Transformer(str(folder), side=side).setup()
            assert taken.fingerprint() == own.backbone.fingerprint()
        (tmp_path / "run" / "recipe.toml").touch()
    cut = Transformer(str(tmp_path / "run"), side="document", layers=1).setup()
    assert cut.model_.config.num_hidden_layers == 1
    own = two.document.backbone.state_dict()
    assert all(torch.equal(tensor, own[name]) for name, tensor in cut.state_dict().items())
    with pytest.raises(ArtifactError, match="not the expected weights"):
        Transformer(str(tmp_path / "run"), sha256="0" * 64).setup()
    two.query.backbone.save(tmp_path / "alone")
    alone = Transformer(str(tmp_path / "alone"), side="document").setup()
    assert alone.fingerprint() == two.query.backbone.fingerprint()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "recipe.toml").touch()
    with pytest.raises(ArtifactError, match="no model yet"):
        Transformer(str(tmp_path / "new")).setup()
    Whitening(2).save(tmp_path / "whitening")
    with pytest.raises(ArtifactError, match="one backbone for the query side, found none"):
        Transformer(str(tmp_path / "whitening")).setup()


def test_fingerprint_sees_tokenizer_and_configuration(tiny_bert_folder, tmp_path):
    first = Transformer(str(tiny_bert_folder)).fingerprint()
    folder = copy(tiny_bert_folder, tmp_path)
    assert Transformer(str(folder)).fingerprint() == first
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-5}))
    changed = Transformer(str(folder)).fingerprint()
    (folder / "config.json").write_text(json.dumps(config))
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace('"lowercase": true', '"lowercase": false'))
    assert len({first, changed, Transformer(str(folder)).fingerprint()}) == 3


def test_weights_under_a_prefix_with_other_heads_beside(tiny_bert_folder, tmp_path):
    """As `BertForMaskedLM` saves them; what its head leaves is known to be harmless."""
    from transformers import BertConfig, BertForMaskedLM, BertModel

    folder = copy(tiny_bert_folder, tmp_path)
    masked = BertForMaskedLM(BertConfig.from_pretrained(folder))
    masked.bert.load_state_dict(BertModel.from_pretrained(folder, add_pooling_layer=False).state_dict())
    masked.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    old = {n.replace("LayerNorm.weight", "LayerNorm.gamma"): t.half() for n, t in tensors.items()}
    save_file(old, folder / "model.safetensors")
    made = Transformer(str(folder)).setup()
    for name, tensor in Transformer(str(tiny_bert_folder)).setup().state_dict().items():
        torch.testing.assert_close(made.state_dict()[name], tensor, rtol=1e-3, atol=1e-3)
        assert made.state_dict()[name].dtype == torch.float32


def rewrite(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_refused_weights(tiny_bert_folder, tmp_path):
    folder = copy(tiny_bert_folder, tmp_path)
    name = "encoder.layer.1.output.dense.bias"
    rewrite(folder, lambda tensors: tensors.pop(name))
    with pytest.raises(ArtifactError, match=f"{name}' is missing"):
        Transformer(str(folder)).setup()
    rewrite(
        folder, lambda tensors: tensors.update({name: torch.zeros(16), "linear.weight": torch.zeros(4, 16)})
    )
    with pytest.raises(ArtifactError, match="linear.weight' is not used"):
        Transformer(str(folder)).setup()
    rewrite(folder, lambda tensors: (tensors.pop("linear.weight"), tensors.update({name: torch.zeros(3)})))
    with pytest.raises(ArtifactError, match=f"{name}' has shape"):
        Transformer(str(folder)).setup()
    (folder / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ArtifactError, match="cannot be read"):
        Transformer(str(folder)).setup()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ArtifactError, match="found none"):
        Transformer(str(folder)).setup()
    (folder / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ArtifactError, match="pytorch_model.bin, a pickle.*convert"):
        Transformer(str(folder)).setup()


def test_weights_in_several_files(tiny_bert_folder, tmp_path):
    folder = copy(tiny_bert_folder, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    where = {name: f"part-{index % 2}.safetensors" for index, name in enumerate(names)}
    for file in set(where.values()):
        save_file({name: tensors[name] for name in names if where[name] == file}, folder / file)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    assert Transformer(str(folder)).fingerprint() == Transformer(str(tiny_bert_folder)).fingerprint()
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "../x.safetensors"}})
    )
    with pytest.raises(ArtifactError, match="outside the checkpoint"):
        Transformer(str(folder)).setup()


def test_code_of_a_checkpoint_is_not_run(tiny_bert_folder, tmp_path):
    folder = copy(tiny_bert_folder, tmp_path)
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    (folder / "config.json").write_text(
        json.dumps({"model_type": "evil", "auto_map": {"AutoModel": "evil.Evil"}})
    )
    with pytest.raises(ArtifactError, match="(?s)evil"):
        Transformer(str(folder)).setup()


def test_a_tokenizer_of_another_model(tiny_bert_folder, tmp_path):
    folder = copy(tiny_bert_folder, tmp_path)
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["more"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ArtifactError, match="do not belong together"):
        Transformer(str(folder)).setup()


def test_nothing_there(tmp_path):
    with pytest.raises(ArtifactError, match="not a hub id"):
        locate(str(tmp_path / "none"))
    with pytest.raises(ArtifactError, match="hub"):
        locate("counterpoint-tests/no-such-model", "0" * 40)
    with pytest.raises(ArtifactError, match="config.json"):
        Transformer(str(tmp_path)).setup()


def test_a_pinned_revision_of_the_hub(tiny_bert_folder, monkeypatch):
    asked = []

    def download(name, *, revision, **patterns):
        asked.append((name, revision))
        assert not any("bin" in pattern for pattern in patterns["allow_patterns"])
        return str(tiny_bert_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    made = Transformer("owner/name", revision="abc123").setup()
    assert asked == [("owner/name", "abc123")]
    assert made.fingerprint() == Transformer(str(tiny_bert_folder)).fingerprint()


@pytest.mark.parametrize("kind", ["ProxyError", "RemoteProtocolError", "ConnectError"])
def test_a_network_that_fails_within_a_download(monkeypatch, kind):
    """No such error of the hub's HTTP library is the operating system's."""
    base = next(found for found in HfHubHTTPError.__mro__ if found.__name__ == "HTTPError")
    library = importlib.import_module(base.__module__.partition(".")[0])
    if not hasattr(library, kind):
        pytest.skip(f"{library.__name__} has no {kind}")

    def download(name, **options):
        raise getattr(library, kind)("gone")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(ArtifactError, match=r"owner/name: .*the hub cannot be reached"):
        locate("owner/name")


def test_a_full_disk_within_a_download_is_not_the_network(monkeypatch):
    def download(name, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/blob")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(
        ArtifactError, match=r"owner/name: cannot be stored .*No space left.*/cache/blob.*HF_HOME"
    ):
        locate("owner/name")


def test_expected_weights(tiny_bert_folder):
    with pytest.raises(ArtifactError, match=f"should be {MINILM_SHA256}"):
        Transformer(str(tiny_bert_folder), sha256=MINILM_SHA256).setup()


def test_minilm_absent(monkeypatch):
    monkeypatch.setattr("counterpoint.encode.sources.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"\[minilm\]"):
        locate("minilm")


def test_minilm_tampered_with(monkeypatch, tmp_path):
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other")
    monkeypatch.setattr("counterpoint.encode.sources.find_spec", lambda name: Spec)
    with pytest.raises(ArtifactError, match="not the expected weights"):
        locate("minilm")


def test_a_tokenizer_with_an_id_beyond_the_embeddings_is_refused(tiny_bert_folder, tmp_path):
    """It has as many entries as the model embeds, and one of them is far away."""
    shutil.copytree(tiny_bert_folder, tmp_path / "gap")
    path = tmp_path / "gap" / "tokenizer.json"
    data = json.loads(path.read_text())
    word = list(data["model"]["vocab"])[-1]
    data["model"]["vocab"][word] += 1000
    path.write_text(json.dumps(data))
    with pytest.raises(ArtifactError, match="ids up to [0-9]+, but the model embeds [0-9]+ ids"):
        Transformer(str(tmp_path / "gap")).setup()
