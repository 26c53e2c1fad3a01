"""Words, stems and ids, against the golden examples and by cases."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.encode.heads import mean_by_row
from counterpoint.encode.words import WordSettings, is_punctuation, split_words, stem, unique_words, word_id
from counterpoint.errors import ConfigError


def texts_of(spans):
    return [span.text for span in spans]


@pytest.fixture(scope="module")
def golden(shared):
    return {case["id"]: case for case in json.loads((shared / "golden" / "golden.json").read_text())["cases"]}


@pytest.mark.shared
def test_golden_hashes(golden):
    case = golden["word_hash32"]
    assert [word_id(word) for word in case["inputs"]["words"]] == case["expected"]["ids"]


@pytest.mark.shared
def test_golden_collisions(golden):
    """As many pairs of words share an id as of numbers drawn evenly would, within five standard deviations.

    With a sixteenth of the words and eight bits less as many are expected, and the test is quick.
    """
    case = golden["hash_collisions"]
    count, bits = case["inputs"]["n"] // 16, case["inputs"]["bits"] - 8
    expected = case["expected"]["expected"]
    _, counts = np.unique([word_id(f"w{at}", bits) for at in range(count)], return_counts=True)
    pairs = (counts * (counts - 1) // 2).sum()
    assert pairs == pytest.approx(expected, abs=5 * expected**0.5)


@pytest.mark.shared
def test_golden_token_counts(golden):
    case = golden["bow2_tokens_fig1"]
    text = case["inputs"]["text"]
    assert len(split_words(text)) == case["expected"]["all"]
    for method, count in (("lower", "unique_lower"), ("nltk", "unique_stem"), ("snowball", "unique_stem")):
        assert len(unique_words(text, WordSettings(method))[0]) == case["expected"][count]


@pytest.mark.shared
def test_golden_aggregate(golden):
    case = golden["bow2_aggregate"]
    ids = case["inputs"]["word_ids"]
    rows = [case["expected"]["words"].index(number) if number else -1 for number in ids]
    vectors = torch.tensor(case["inputs"]["subword_vecs"])
    made = mean_by_row(vectors[None], torch.tensor([rows])[..., None], len(case["expected"]["words"]))
    assert made[0].tolist() == pytest.approx(np.array(case["expected"]["vecs"]), abs=case["tol"])


def test_bert_splits_at_every_punctuation_sign():
    assert texts_of(split_words("didn't  cost $3.50!")) == "didn ' t cost $ 3 . 50 !".split()


def test_a_chinese_character_is_a_word_and_a_thai_run_is_one():
    assert texts_of(split_words("中文字a ภาษาไทย かな𠀀")) == ["中", "文", "字", "a", "ภาษาไทย", "かな", "𠀀"]


@given(st.text())
def test_spans_are_where_they_say(text):
    for word in split_words(text):
        assert word.text == text[word.start : word.end] or "\ufffd" in word.text
        assert word.text


def test_half_characters_are_words_like_any_other():
    assert texts_of(split_words("a \ud83d b")) == ["a", "\ufffd", "b"]


@pytest.mark.parametrize(
    ("method", "expected"),
    [("snowball", "fair"), ("porter", "fairli"), ("nltk", "fairli"), ("lower", "fairly"), ("none", "Fairly")],
)
def test_stems(method, expected):
    assert stem("Fairly", method) == expected


def test_nltk_differs_from_porter_where_the_paper_says_it_does():
    assert stem("dying", "nltk") == "die" != stem("dying", "porter")


def test_ids_are_unique_in_order_of_first_occurrence():
    ids, spans = unique_words(
        "Running dogs ran; dog running.", WordSettings("snowball", drop_punctuation=True)
    )
    assert texts_of(spans) == ["Running", "dogs", "ran"]
    assert ids.tolist() == [word_id("run"), word_id("dog"), word_id("ran")]
    assert ids.dtype == np.int64


def test_few_bits_force_collisions_and_zero_becomes_one():
    ids, spans = unique_words(" ".join(f"word{i}" for i in range(200)), WordSettings("none", hash_bits=4))
    assert sorted(ids.tolist()) == list(range(1, 16))
    assert len(spans) == 15 and spans[0].text == "word0"
    with pytest.raises(ConfigError, match="between 1 and 32"):
        WordSettings(hash_bits=33)


@pytest.mark.parametrize("word", [".", "$", "+", "`", "。", "“", "—"])
def test_punctuation(word):
    assert is_punctuation(word)


@pytest.mark.parametrize("word", ["a", "1", "中", "...", "€"])
def test_no_punctuation(word):
    assert not is_punctuation(word)


def test_empty():
    ids, spans = unique_words("  \n ", WordSettings())
    assert len(ids) == 0 and spans == []


def test_words_do_not_bring_torch():
    code = (
        "import sys, counterpoint.encode.words as w; w.unique_words('a b'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
