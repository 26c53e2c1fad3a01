"""Our BERT against transformers', to the last bit; and MiniLM's tokenizer read with and without them."""

import json
import shutil

import pytest
import torch
from transformers import AutoConfig, AutoModel

from counterpoint.encode.backbone import _build
from counterpoint.encode.bert import Bert, bert_settings
from counterpoint.encode.sources import TOKENIZER_SHA256, is_minilm_tokenizer, locate
from counterpoint.encode.tokenizer import Tokenizer

CONFIG = {
    "model_type": "bert", "vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 3,
    "num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3, "layer_norm_eps": 1e-7,
    "initializer_range": 0.05, "architectures": ["BertModel"], "use_cache": True, "hidden_act": "gelu",
}  # fmt: skip


def theirs(config):
    rest = {name: value for name, value in config.items() if name != "model_type"}
    model = AutoModel.from_config(AutoConfig.for_model("bert", **rest)).float()
    model.pooler = None
    return model


def both(config, seed=3):
    made = []
    for make in (theirs, lambda config: Bert(bert_settings(config))):
        torch.manual_seed(seed)
        made.append((make(config), torch.get_rng_state()))
    return made


@pytest.fixture
def batch():
    ids = torch.randint(1, 50, (4, 17), generator=torch.Generator().manual_seed(1))
    attention = torch.ones_like(ids)
    attention[1, 9:] = attention[2, 1:] = 0
    return ids, attention


def test_a_seed_draws_the_same_weights_and_leaves_the_same_state():
    (a, before), (b, after) = both(CONFIG)
    assert torch.equal(before, after)
    ours, other = b.state_dict(), a.state_dict()
    assert list(ours) == list(other) and all(torch.equal(ours[name], other[name]) for name in ours)
    assert [name for name, _ in b.named_parameters()] == [name for name, _ in a.named_parameters()]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_states_and_gradients_are_the_same(training, padded, segments, batch):
    ids, attention = batch
    asked = {"input_ids": ids, "attention_mask": attention if padded else torch.ones_like(ids)}
    asked |= {"token_type_ids": (ids % 2)} if segments else {}
    made = []
    for model, _ in both(CONFIG):
        model.train(training)
        torch.manual_seed(7)  # of the dropout
        states = model(**asked, output_hidden_states=True)
        states.last_hidden_state.pow(2).sum().backward()
        made.append((states, {name: p.grad for name, p in model.named_parameters()}))
    (x, gx), (y, gy) = made
    assert torch.equal(x.last_hidden_state, y.last_hidden_state)
    assert len(x.hidden_states) == len(y.hidden_states) == 4
    assert all(map(torch.equal, x.hidden_states, y.hidden_states))
    assert gx.keys() == gy.keys() and all(torch.equal(gx[name], gy[name]) for name in gx)
    assert model(**asked).hidden_states is None


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "roberta"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
        {"chunk_size_feed_forward": 2},
        {"output_hidden_states": True},
        {"hidden_size": 25},
        {"hidden_size": 0},
        {"hidden_size": "24"},
        {"num_hidden_layers": -1},
        {"num_attention_heads": True},
        {"hidden_dropout_prob": 2},
        {"layer_norm_eps": 0.0},
        {"pad_token_id": 50},
        {"unheard_of": None},
    ],
)
def test_what_is_not_ordinary_is_left_to_transformers(change):
    assert bert_settings(CONFIG) is not None
    assert bert_settings({**CONFIG, **change}) is None


def test_a_backbone_of_an_ordinary_bert_is_ours():
    assert isinstance(_build(CONFIG), Bert)
    assert not isinstance(_build({**CONFIG, "hidden_act": "relu"}), Bert)
    assert isinstance(_build({**CONFIG, "num_hidden_layers": 0, "pad_token_id": None}), Bert)


@pytest.mark.minilm
def test_minilm_and_its_tokenizer_need_no_transformers(tmp_path):
    folder = locate("minilm")
    assert bert_settings(json.loads((folder / "config.json").read_text())) is not None
    assert is_minilm_tokenizer(folder)
    assert Tokenizer.load(folder).to_text() == Tokenizer.from_pretrained(folder).to_text()
    for name in TOKENIZER_SHA256:
        shutil.copy(folder / name, tmp_path)
    assert is_minilm_tokenizer(tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"do_lower_case": true', '"do_lower_case": false'))
    assert not is_minilm_tokenizer(tmp_path)
