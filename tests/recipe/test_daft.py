"""DAFT's table 1: a BERT for queries next to document encoders of other families and tokenizers."""

import json

import numpy as np
import pytest
from tests.encode.tiny import VOCABULARY, save_tiny_bert, tiny_tokenizer
from tests.recipe.small import WORDS, write_collection

from counterpoint.loading import load_model
from counterpoint.recipe import change, load_recipe, read_recipe_data, run_recipe


def save_roberta(folder):
    """A RoBERTa with a byte-level vocabulary, whose special tokens and positions are not BERT's."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder.mkdir()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        [" ".join(WORDS)] * 4, vocab_size=300, special_tokens=special, show_progress=False
    )
    bpe.save(str(folder / "tokenizer.json"))
    tokenizer = RobertaTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), model_max_length=64)
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=66, pad_token_id=1, **sizes)
    RobertaModel(config).save_pretrained(folder)
    return folder


def save_mpnet(folder):
    """An MPNet, whose attention has relative positions and whose configuration no segments."""
    from transformers import MPNetConfig, MPNetModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = MPNetConfig(vocab_size=len(VOCABULARY), max_position_embeddings=66, **sizes)
    MPNetModel(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("variant", "save"), [("roberta", save_roberta), ("mpnet", save_mpnet)])
def test_a_document_encoder_of_another_family_is_aligned_and_tuned(variant, save, tmp_path):
    folders = {"query": save_tiny_bert(tmp_path / "bert"), "document": save(tmp_path / variant)}
    settings = [f"model.encoder.{side}.backbone.source={str(folder)!r}" for side, folder in folders.items()]
    settings += [f"model.encoder.{side}.document.max_length=48" for side in folders]
    for stage in ("align", "fine-tune"):
        changes = {"steps": 2, "batch": 4, "warmup": 0, "cache.size": 16, "cache.groups": 4}
        settings += [f"stages.{stage}.{name}={value}" for name, value in changes.items()]
    recipe = change(load_recipe(f"daft-paper:{variant}"), settings)
    training_data = read_recipe_data(recipe, write_collection(tmp_path / "collection"))
    model = load_model(run_recipe(recipe, training_data, tmp_path / "run"))
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    trained = {line["stage"] for line in lines if "loss" in line}
    assert "fine-tune" in trained and all("nDCG@10" in line for line in lines if line["step"] == 0)
    text = [f"{WORDS[0]} {WORDS[1]}"]
    q, d = model.encode_query(text)["cls"].values, model.encode_document(text)["cls"].values
    assert q.shape == d.shape == (1, 512) and np.isfinite(q).all() and np.isfinite(d).all()
    assert not np.allclose(q, d)
