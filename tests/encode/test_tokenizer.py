"""A tokenizer of a saved model that is missing or damaged: what and where is told."""

import json

import pytest

from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.errors import ArtifactError, ConfigError


@pytest.fixture
def saved(tiny_bert_folder, tmp_path):
    Tokenizer.from_pretrained(tiny_bert_folder).save(tmp_path)
    return tmp_path


def test_what_was_saved_is_read_again(saved, tiny_bert_folder):
    assert Tokenizer.load(saved).to_text() == Tokenizer.from_pretrained(tiny_bert_folder).to_text()


@pytest.mark.parametrize("name", ["tokenizer.json", "special_tokens_map.json"])
@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"model": 1}', "\udcff"])
def test_damage_is_an_artifact_error_that_names_the_folder(saved, name, text):
    (saved / name).unlink()
    if text is not None:
        (saved / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ArtifactError, match=str(saved)):
        Tokenizer.load(saved)


def test_a_vocabulary_without_its_padding_is_refused(saved):
    """Half of a tokenizer is none: the names of the special tokens must be those of the vocabulary."""
    (saved / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[NONE]", "mask_token": None}))
    with pytest.raises(ConfigError, match=r"\[NONE\]"):
        Tokenizer.load(saved)


def test_a_vocabulary_without_its_unknown_token_is_refused_when_it_is_read(saved):
    """Otherwise a build fails in its middle, at the first text with an unknown character."""
    told = json.loads((saved / "tokenizer.json").read_text())
    told["model"]["unk_token"] = "[NO]"
    (saved / "tokenizer.json").write_text(json.dumps(told))
    with pytest.raises(ArtifactError, match=r"tokenizer.json: the tokenizer cannot be read: .*\[UNK\]"):
        Tokenizer.load(saved)
