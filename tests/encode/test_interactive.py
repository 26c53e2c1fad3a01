"""The cross-encoder: transformers' and sentence-transformers' own scores, truncation, reranking, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.encode.tiny import FP32, VOCABULARY, tiny_tokenizer

from counterpoint.encode import EncodeOptions, InteractiveEncoder, Linear, Transformer, load_interactive
from counterpoint.errors import ArtifactError, ConfigError, DataError, ShapeError
from counterpoint.part import Part
from counterpoint.search import Run

QUERIES = ["where is the cat", "red house?", "dogs", "", "what is a document"]
DOCUMENTS = [
    "The cat sat on the mat.",
    "a blue house " * 30,
    "",
    "dogs run, running",
    "[SEP] in 中文 the query",
]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
FAMILIES = {
    "albert": {"embedding_size": 8},
    "bert": {},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "pooler_hidden_size": 16},
    "distilbert": {"dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 2},
    "electra": {"embedding_size": 8},
    "roberta": {"pad_token_id": 0, "type_vocab_size": 1},
    "xlm-roberta": {"pad_token_id": 0, "type_vocab_size": 1},
}


def save_classifier(folder, family="bert", labels=1, **options):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = {} if family == "distilbert" else SMALL
    options = {
        "vocab_size": len(VOCABULARY),
        "max_position_embeddings": 66,
        **sizes,
        **FAMILIES[family],
    } | options
    config = AutoConfig.for_model(family, num_labels=labels, initializer_range=0.4, **options)
    torch.manual_seed(1)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    # As BERT's own class of tokenizer does, and the generic one does not.
    changed(
        folder, "tokenizer_config.json", model_input_names=["input_ids", "token_type_ids", "attention_mask"]
    )
    return folder


def changed(folder, file, **entries):
    path = folder / file
    found = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(found | entries))


@pytest.fixture
def judge(tmp_path):
    return load_interactive(save_classifier(tmp_path / "judge"))


def assert_scores_are_transformers_own(folder):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    long = {"truncation": "only_second", "max_length": 64}
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(QUERIES, DOCUMENTS, padding=True, return_tensors="pt", **long)
    reference = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    if getattr(reference.config, "type_vocab_size", 0) < 2:
        batch.pop("token_type_ids", None)  # as the tokenizers of these families do
    with torch.inference_mode():
        expected = reference(**batch).logits[:, 0]
    made = load_interactive(folder)
    torch.testing.assert_close(made.scores(QUERIES, DOCUMENTS, FP32), expected, rtol=1e-5, atol=1e-5)
    assert made.max_length == 64 and expected.std() > 1e-3
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_transformers_own(family, tmp_path):
    assert_scores_are_transformers_own(save_classifier(tmp_path, family))


def test_a_tokenizer_that_passes_no_segments_on(tmp_path):
    save_classifier(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    made = assert_scores_are_transformers_own(tmp_path)
    assert not made.segments and Part.from_dict(made.to_dict()).segments is False


def test_scores_are_sentence_transformers_own_and_so_is_its_layout(tmp_path):
    from sentence_transformers import CrossEncoder

    reference = CrossEncoder(
        str(save_classifier(tmp_path / "m")), device="cpu", activation_fn=torch.nn.Identity()
    )
    reference.save(str(tmp_path / "saved"))
    expected = reference.predict(list(zip(QUERIES, DOCUMENTS, strict=True)), convert_to_tensor=True)
    for folder in ("m", "saved"):
        found = load_interactive(tmp_path / folder).scores(QUERIES, DOCUMENTS, FP32)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_batches_and_order_do_not_change_a_score(judge):
    together = judge.scores(QUERIES, DOCUMENTS, FP32)
    alone = [judge.scores([q], [d], FP32)[0] for q, d in zip(QUERIES, DOCUMENTS, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone))
    done = []
    small = EncodeOptions(budget=70, precision="fp32", device="cpu", progress=done.append)
    torch.testing.assert_close(judge.scores(QUERIES[::-1], DOCUMENTS[::-1], small), together.flip(0))
    assert sum(done) == 5 and len(done) > 1
    assert judge.scores([], []).shape == (0,)


def words(pairs, row):
    return [VOCABULARY[number] for number in pairs.ids[row][pairs.attention[row]].tolist()]


def test_the_document_is_cut_and_the_query_stays(tiny_bert_folder):
    made = InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1), max_length=9)
    pairs = made.pairs(["the cat"], ["dog dogs run running house"])
    assert words(pairs, 0) == ["[CLS]", "the", "cat", "[SEP]", "dog", "dogs", "run", "running", "[SEP]"]
    assert pairs.segments.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 1]]
    pairs = made.pairs(["the cat sat on mat"], ["dog dogs run"])
    assert words(pairs, 0) == ["[CLS]", "the", "cat", "sat", "on", "mat", "[SEP]", "dog", "[SEP]"]


def test_a_query_that_fills_the_sequence_is_cut_longest_first(tiny_bert_folder):
    made = InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1), max_length=9)
    long = "the cat sat on mat where is"
    expected = tiny_tokenizer()([long], ["dog dogs"], truncation="longest_first", max_length=9)
    assert made.pairs([long], ["dog dogs"]).ids.tolist() == expected["input_ids"]
    assert words(made.pairs([long], ["dog " * 9]), 0).count("dog") == 3
    assert words(made.pairs([long], [""]), 0) == ["[CLS]", *long.split()[:6], "[SEP]", "[SEP]"]


def test_pairs_that_are_cut_are_counted(tiny_bert_folder):
    made, counts = InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1), max_length=9), []
    fits, longer = "dog dogs run running", "dog dogs run running house"
    made.scores(["the cat", "the cat"], [fits, longer], replace(FP32, on_longer=counts.append))
    assert counts == [1]
    run = Run({"q1": {"fits": 2.0, "longer": 1.0}, "q2": {"longer": 1.0}})
    queries, documents = {"q1": "the cat", "q2": "cat"}, {"fits": fits, "longer": longer}
    counts.clear()
    made.rerank(run, queries, documents, options=replace(FP32, on_longer=counts.append))
    assert counts == [1]  # once; with the shorter query the longer document fits
    rows = made.rows(["the cat", "the cat"], [fits, longer])
    assert [row.without(np.array([1])).cut for row in rows] == [False, True]


def test_it_learns_and_is_saved(tiny_bert_folder, tmp_path):
    made = InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1), max_length=32).setup().eval()
    pairs = made.pairs(["cat", "cat"], ["the cat sat", "a red house"])
    optimiser = torch.optim.AdamW(made.parameters(), lr=2e-2)
    losses = []
    for _ in range(20):
        good, bad = made(pairs)
        loss = torch.nn.functional.softplus(bad - good)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    made.save(tmp_path / "judge")
    again = load_interactive(tmp_path / "judge")
    assert again.fingerprint() == made.fingerprint()
    # Not bit for bit: where weights lie in memory decides how a product is summed up.
    expected = made.scores(QUERIES, DOCUMENTS, FP32)
    torch.testing.assert_close(again.scores(QUERIES, DOCUMENTS, FP32), expected, rtol=1e-5, atol=1e-5)


def test_scoring_leaves_the_mode_as_it_was(judge):
    judge.train()
    first = judge.scores(QUERIES, DOCUMENTS, FP32)
    assert judge.training and torch.equal(judge.scores(QUERIES, DOCUMENTS, FP32), first)


def test_rerank(judge):
    documents = dict(zip("abcde", DOCUMENTS, strict=True))
    run = Run({"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"d": 1.0}, "q3": {}}, provenance={"tag": "bm25"})
    queries = {"q1": QUERIES[0], "q2": QUERIES[1], "q3": "dog", "q4": "cat"}
    found = judge.rerank(run, queries, documents, k=2, options=FP32)
    expected = judge.scores(
        [QUERIES[0], QUERIES[0], QUERIES[1]], [documents[name] for name in "abd"], FP32
    ).tolist()
    assert found.queries == ("q1", "q2", "q3")
    assert found.scores("q1") == pytest.approx(dict(zip("ab", expected[:2], strict=True)), abs=1e-5)
    assert found.scores("q2") == pytest.approx({"d": expected[2]}, abs=1e-5)
    assert found["q3"] == [] and found.provenance["first"] == {"tag": "bm25"}
    with pytest.raises(DataError, match="no text is known for query 'q2', document 'b'"):
        judge.rerank(run, {"q1": "", "q3": ""}, {"a": "", "c": "", "d": ""})
    twice = Run({"q1": {"x": 2.0, "y": 1.0}, "q2": {"x": 3.0, "z": 2.0, "w": 1.0}})
    with pytest.raises(DataError, match="for document 'x', document 'y', document 'z' and 1 more, which"):
        judge.rerank(twice, queries, documents)
    with pytest.raises(ConfigError, match="k must be at least 1"):
        judge.rerank(run, queries, documents, k=0)


def test_what_cannot_be_carried_out_is_refused_before_scoring(tiny_bert_folder):
    def declare(**options):
        return InteractiveEncoder(Transformer(str(tiny_bert_folder)), **{"head": Linear(1), **options})

    with pytest.raises(ConfigError, match="the head gives 2 components"):
        declare(head=Linear(2)).setup()
    for length in (4, 65):
        with pytest.raises(ConfigError, match=f"max_length is {length}; .* need 5, .* at most 64"):
            declare(max_length=length).setup()
    with pytest.raises(ConfigError, match="in_dim is 3, but the input has 16"):
        declare(head=Linear(1, in_dim=3)).setup()
    with pytest.raises(ShapeError, match="2 queries and 1 documents"):
        declare().scores(["a", "b"], ["c"])


def test_checkpoints_that_would_be_read_wrongly_are_refused(tmp_path):
    def refused(folder, message):
        with pytest.raises(ArtifactError, match=message):
            load_interactive(folder)

    refused(save_classifier(tmp_path / "two", labels=2), "classifies into 2 labels")
    folder = save_classifier(tmp_path / "bert")
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "classifier.extra": torch.zeros(1)}, folder / "model.safetensors")
    refused(folder, "'classifier.extra' is not used")
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, folder / "model.safetensors")
    refused(folder, "'bert.pooler.dense.weight' is missing")
    save_file({k: v for k, v in weights.items() if "layer.1" not in k}, folder / "model.safetensors")
    refused(folder, "encoder.layer.1.* is missing")
    save_file(weights, folder / "model.safetensors")
    load_interactive(folder)
    changed(folder, "config_sentence_transformers.json", default_prompt_name="query")
    refused(folder, "puts a prompt before every pair")
    changed(folder, "config.json", model_type="gpt2")
    refused(folder, "unsupported classification head on 'gpt2'; supported are albert, bert")
    folder = save_classifier(tmp_path / "deberta", "deberta-v2", pooler_hidden_act="tanh")
    refused(folder, "pools with 'tanh'")
    refused(tmp_path, "config.json: this file is missing")


def test_more_modules_and_other_parts_are_refused(tmp_path):
    folder = save_classifier(tmp_path / "bert")
    kinds = ["base.modules.transformer.Transformer", "models.Dense"]
    entries = [{"type": f"sentence_transformers.{kind}", "path": ""} for kind in kinds]
    (folder / "modules.json").write_text(json.dumps(entries))
    with pytest.raises(ArtifactError, match=r"modules.json lists \['Transformer', 'Dense'\]"):
        load_interactive(folder)
    Linear(1, in_dim=2).save(tmp_path / "linear")
    with pytest.raises(ArtifactError, match="holds a Linear, not an InteractiveEncoder"):
        load_interactive(tmp_path / "linear")
    assert isinstance(Part.load(tmp_path / "linear"), Linear)
