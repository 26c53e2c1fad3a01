import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.data import cut_passages
from counterpoint.data.sentences import count_words, sentences
from counterpoint.errors import ConfigError
from counterpoint.types import Document

ALPHABET = (
    "ab cd. Ef\n\n!? 3.1,\t\"'()-—…中文。字！ไทย ก็\u0301\u0e34\u2028\x1c日本語、Dr. e.g. ×\r\n• 1. #\u200d😀"
)
pieces = st.one_of(
    st.text(ALPHABET, max_size=60),
    st.text(max_size=30),
    st.sampled_from(
        [
            "Dr. Smith went. ",
            "x" * 70,
            "中" * 30,
            "ก" * 20 + "ิ" * 5,
            "\n\n",
            "1. One\n2. Two\n",
            "A sentence. ",
        ]
    ),
)
texts = st.lists(pieces, max_size=12).map("".join)


def solid(text):
    return [character for character in text if not character.isspace()]


def cut(text, **options):
    return list(cut_passages(Document("d", text), **options))


@settings(deadline=None)
@given(texts, st.integers(1, 12), st.lists(st.integers(0, 200), max_size=4))
def test_offsets_hold_and_nothing_is_lost_or_repeated(text, most, headings):
    marks = [[at, f"h{at}"] for at in headings]
    passages = list(cut_passages(Document("d", text, metadata={"headings": marks}), max_words=most))
    for passage in passages:
        assert text[passage.start : passage.start + len(passage.text)] == passage.text
        assert count_words(passage.text) <= most
    assert solid("".join(passage.text for passage in passages)) == solid(text)
    if len(passages) > 1:
        assert all(passage.text == passage.text.strip() != "" for passage in passages)
        ends = [passage.start + len(passage.text) for passage in passages]
        assert all(end <= passage.start for end, passage in zip(ends, passages[1:], strict=False))


@settings(deadline=None)
@given(texts, st.integers(2, 12), st.data())
def test_overlap_repeats_whole_ends_and_goes_forward(text, most, data):
    overlap = data.draw(st.integers(0, most - 1))
    passages = cut(text, max_words=most, overlap=overlap)
    covered = 0
    for before, passage in zip([None, *passages], passages, strict=False):
        assert text[passage.start : passage.start + len(passage.text)] == passage.text
        assert count_words(passage.text) <= most
        assert not text[covered : passage.start].strip()
        if before is not None:
            assert passage.start > before.start
            assert count_words(text[passage.start : covered]) <= overlap
        covered = passage.start + len(passage.text)
    assert not text[covered:].strip()


def test_ids_parents_and_metadata():
    document = Document("d", "One here. Two here.", "T", metadata={"k": 1})
    first, second = cut_passages(document, max_words=2)
    assert first == Document("d#1", "One here.", "T", "d", 0, {"k": 1})
    assert second == Document("d#2", "Two here.", "T", "d", 10, {"k": 1})


def test_short_and_empty_documents_come_back_as_they_are():
    short = Document("d", " One here. \n", "T", metadata={"headings": "not ours"})
    assert list(cut_passages(short)) == [short]
    assert list(cut_passages(Document("e", ""))) == [Document("e", "")]
    blank = Document("b", " \n" * 500)
    assert list(cut_passages(blank)) == [blank]


def test_overlap_by_sentences():
    found = cut("A a a. B b. C c. D d d.", max_words=5, overlap=2)
    assert [passage.text for passage in found] == ["A a a. B b.", "B b. C c.", "C c. D d d."]


def test_a_passage_closes_before_a_paragraph_when_it_is_nearly_full():
    text = "One two three. Four five six.\n\nSeven. Eight nine ten."
    assert [passage.text for passage in cut(text, max_words=8)] == [
        "One two three. Four five six.",
        "Seven. Eight nine ten.",
    ]


def test_sections_begin_passages_and_name_them():
    text = "Guide\n\nSetup\n\n" + "Run it now. " * 3 + "\n\nUse\n\nCall it. Then stop."
    marks = [(0, "Guide"), (7, "Setup"), (text.index("Use"), "Use")]
    document = Document("d", text, "Guide", metadata={"file": "f", "headings": marks})
    found = list(cut_passages(document, max_words=12))
    assert [passage.title for passage in found] == ["Guide", "Guide: Use"]
    assert [passage.metadata for passage in found] == [
        {"file": "f", "section": "Guide"},
        {"file": "f", "section": "Use"},
    ]
    assert found[1].text == "Use\n\nCall it. Then stop."
    assert list(cut_passages(document))[0].metadata == {"file": "f"}


def test_long_sentences_are_cut_between_words_and_long_words_between_characters():
    assert [p.text for p in cut("one two three four five", max_words=2)] == ["one two", "three four", "five"]
    assert [len(p.text) for p in cut("x" * 100, max_words=2)] == [40, 40, 20]
    assert [p.text for p in cut("one " + "y" * 30 + " two", max_words=2)] == ["one", "y" * 30, "two"]
    assert [p.text for p in cut("中文字" * 3, max_words=4)] == ["中文字中", "文字中文", "字"]
    assert [p.text for p in cut("กิขิคิ", max_words=3)] == ["กิ", "ขิ", "คิ"]  # vowels stay with their consonants


def test_impossible_lengths():
    for options in ({"max_words": 0}, {"max_words": 5, "overlap": 5}, {"overlap": -1}):
        with pytest.raises(ConfigError, match="max_words of at least 1 and an overlap from 0"):
            cut("text", **options)


@pytest.mark.parametrize(
    "parts",
    [
        ["One ends here.", "Another begins."],
        ["Does it?", "Yes!", "It does…", "Indeed."],
        ['He said "no."', "She left."],
        ["Dr. Smith and J. R. Jones met Mr. Poe.", "They spoke."],
        ["Pi is 3.14 and e is 2.71.", "Both are irrational."],
        ["See e.g. Figure two, fig. 3 and No. 5.", "The answer is no.", "Next."],
        ["The U.S. Army came in 1990.", "It left."],
        ["It costs approx. 5 euros, i.e. little.", "Good."],
        ["Visit example.com today.", "Use a.b.c now."],
        ["version 2. of it is lower case."],
        ["Steps:", "- Do this", "- Do that", "1. Install it. ", "2. Run it."],
        ["Heading without stop", "\n\nText below."],
        ["今天天气很好。", "我们去公园吧！", "好吗？"],
        ["「行きます。」", "と彼は言った。"],
        ["ฉันไปตลาด", "เขาอยู่บ้าน"],
        ["यह एक वाक्य है।", "यह दूसरा है।"],
        ["هل هذا سؤال؟", "نعم."],
    ],
)
def test_where_sentences_end(parts):
    joiner = "" if parts[0][0] in "今「" else "\n" if parts[0] == "Steps:" else " "
    text = joiner.join(parts)
    found = [text[sentence.start : sentence.end] for sentence in sentences(text)]
    assert found == [part.strip() for part in parts]


def test_words_of_scripts_with_and_without_spaces():
    assert count_words("two words") == 2
    assert count_words("中文, ไทย") == 6
    assert count_words("x" * 41) == 3
    assert count_words("one two three", 4, 7) == 1


@pytest.mark.parametrize(
    "text", ["." * 300_000, ' "' * 150_000, "\n \n" * 100_000, "x" * 300_000, "a. " * 100_000]
)
def test_hostile_texts_take_linear_time(text):
    began = time.perf_counter()
    list(cut_passages(Document("d", text)))
    assert time.perf_counter() - began < 5
