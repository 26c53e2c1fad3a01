"""The columns of ColBERTer's table 1."""

import pytest

from counterpoint.encode.words import split_words
from counterpoint.errors import DataError
from counterpoint.measure.token_counts import count_tokens


def letters(texts):
    """A tokenizer whose pieces are characters."""
    return [[ord(letter) for letter in text if letter != " "] for text in texts]


def test_means_over_texts_by_hand():
    found = count_tokens(["The cat, the CAT", "cats"], letters, "snowball")
    assert found.texts == 2
    assert (found.pieces, found.unique_pieces) == ((13 + 4) / 2, (len({*"Thecat,CA"}) + 4) / 2)
    assert (found.words, found.unique_words, found.unique_stems) == ((5 + 1) / 2, (3 + 1) / 2, (3 + 1) / 2)
    assert found.retained == 2 / 8.5
    assert count_tokens(["cat cats CATS"], letters, "lower").unique_stems == 2
    assert count_tokens(["cat cats CATS"], letters, "nltk").unique_stems == 1
    assert count_tokens(["cat cats CATS"], letters, "none").unique_stems == 3


def test_more_texts_than_are_tokenised_at_once():
    texts = [f"word{number} again" for number in range(1100)]
    sizes = []

    def encode(batch):
        sizes.append(len(batch))
        return letters(batch)

    assert count_tokens(iter(texts), encode).texts == 1100 and sizes == [512, 512, 76]


def test_nothing_to_count_is_said():
    with pytest.raises(DataError, match="0 texts"):
        count_tokens([], letters)
    with pytest.raises(DataError, match="2 texts without a single word"):
        count_tokens(["", " "], letters)


@pytest.mark.shared
def test_golden_figure_1(golden):
    case = golden("bow2_tokens_fig1")
    text, expected = case["inputs"]["text"], case["expected"]
    found = count_tokens([text], letters, "nltk")
    assert (found.words, found.unique_words, found.unique_stems) == (
        expected["all"], expected["unique_lower"], expected["unique_stem"]
    )  # fmt: skip
    assert found.words == len(split_words(text))


@pytest.mark.shared
def test_golden_table_1_is_stems_for_word_pieces(golden):
    case = golden("table1_percent")
    from counterpoint.measure.token_counts import TokenCounts

    for (stems, pieces), percent in zip(case["inputs"]["pairs"], case["expected"]["percent"], strict=True):
        assert 100 * TokenCounts(1, pieces, 0, 0, 0, stems).retained == pytest.approx(
            percent, abs=case["tol"]
        )
