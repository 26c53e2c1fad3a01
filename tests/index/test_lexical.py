import math
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ConfigError
from counterpoint.identifiers import dotted_in, pieces_of
from counterpoint.index.analysis import Analyzer, AnalyzerName
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.lexical import Lexical, LexicalSettings
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.types import Span

TEXTS = ["a brown fox and a brown dog", "the dog sleeps", "", "foxes run, dogs run: 3.5 km", "zebra"]


@pytest.fixture
def lexical(tmp_path):
    return build(tmp_path, TEXTS)


def build(folder, texts, **settings):
    builder = LexicalBuilder(LexicalSettings(**settings))
    for text in texts:
        builder.add(text)
    builder.write(folder)
    return Lexical([(CheckedFolder(folder), None)], LexicalSettings(**settings))


def bm25_by_loops(query, texts, k1=0.9, b=0.4, analyzer="english", cut=None):
    """Lucene's formula, term by term."""
    cut = cut or Analyzer(analyzer).terms
    documents = [cut(text) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in cut(query):
            df = sum(term in other for other in documents)
            tf = document.count(term)
            if tf:
                idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
                score += idf * tf / (tf + k1 * (1 - b + b * len(document) / average))
        scores.append(score)
    return scores


@pytest.mark.parametrize("query", ["brown fox", "dog dog fox", "unknownword", "", "run"])
@pytest.mark.parametrize("analyzer", get_args(AnalyzerName))
def test_scores_are_lucenes_formula(tmp_path, query, analyzer):
    lexical = build(tmp_path, TEXTS, analyzer=analyzer)
    np.testing.assert_allclose(
        lexical.scores(query), bm25_by_loops(query, TEXTS, analyzer=analyzer), rtol=1e-5
    )


@pytest.mark.parametrize(("k1", "b"), [(0, 0.4), (1.2, 0), (2.0, 1)])
def test_k1_and_b_are_those_of_the_formula(tmp_path, k1, b):
    found = build(tmp_path, TEXTS, k1=k1, b=b).scores("brown fox dog run")
    np.testing.assert_allclose(found, bm25_by_loops("brown fox dog run", TEXTS, k1=k1, b=b), rtol=1e-5)


def test_settings_that_are_no_bm25_are_refused():
    for wrong in ({"k1": -0.1}, {"k1": math.inf}, {"k1": math.nan}, {"b": 1.1}, {"b": math.nan}):
        with pytest.raises(ConfigError, match=f"BM25: {next(iter(wrong))} must be"):
            LexicalSettings(**wrong)


def test_settings_load_no_word_list():
    code = "import sys, counterpoint.index; sys.exit('bm25s' in sys.modules or 'Stemmer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_matches_sum_to_the_score_and_point_at_the_query(lexical):
    query = "Dogs and a fox, dog"
    for document in range(len(TEXTS)):
        matches = lexical.matches(query, document)
        assert sum(m.score for m in matches) == pytest.approx(lexical.scores(query)[document], abs=1e-6)
        assert [m.query.text for m in matches] == ["Dogs", "fox", "dog"]
        assert all(query[m.query.start : m.query.end] == m.query.text for m in matches)


def test_no_score_reaches_the_ceiling_and_unknown_terms_raise_it(lexical):
    for query in ["brown fox", "dog dog", "run km"]:
        assert 0 < lexical.scores(query).max() < lexical.ceiling(query)
    assert lexical.ceiling("fox qqq") > lexical.ceiling("fox")
    assert lexical.ceiling("") == 0


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (0, 0.4), (1.2, 0), (2.0, 1)])
@pytest.mark.parametrize("query", ["brown fox", "dog dog fox", "unknownword", "", "run is_empty"])
def test_texts_of_the_collection_score_as_documents_to_the_last_bit(tmp_path, query, k1, b):
    lexical = build(tmp_path, TEXTS, k1=k1, b=b)
    np.testing.assert_array_equal(lexical.scores_of_texts(query, TEXTS), lexical.scores(query))


def test_other_texts_score_by_the_collections_statistics(lexical):
    """A term that no document has counts with df = 0; the ceiling has it, and so holds for every text."""
    others = ["a brown cat", "cats and dogs", "cat " * 50, "check_if_empty", ""]
    average = sum(len(Analyzer().terms(text)) for text in TEXTS) / len(TEXTS)
    found = lexical.scores_of_texts("brown cat", others)
    expected = [
        sum(
            math.log(1 + (5 - df + 0.5) / (df + 0.5)) * tf / (tf + 0.9 * (0.6 + 0.4 * length / average))
            for df, tf in matches
        )
        for matches, length in [([(1, 1), (0, 1)], 2), ([(0, 1)], 2), ([(0, 50)], 50), ([], 1), ([], 1)]
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for query in ("brown cat", "check_if_empty", "cat"):
        assert max(lexical.scores_of_texts(query, others)) <= lexical.ceiling(query)


def test_documents_without_any_term_are_possible(tmp_path):
    assert build(tmp_path, ["", "the"]).scores("fox").tolist() == [0, 0]


def test_analyzers_differ_in_stop_words_and_stems():
    text = "What were the foxes not running from?"
    assert {name: Analyzer(name).terms(text) for name in get_args(AnalyzerName)} == {
        "english": ["what", "were", "fox", "run", "from"],
        "english-long": ["fox", "run"],
        "simple": ["foxes", "running"],
        "none": ["what", "were", "the", "foxes", "not", "running", "from"],
    }


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Vitamin D and T cells", ["vitamin", "d", "t", "cell"]),
        ("PARKINSON'S, o’brien’s, Bell‘s, Graves´s; they'LL", ["parkinson", "o", "brien", "bell", "grave"]),
        ("don't I'd I'm we've aren't don`t", []),
        ("the 's of rock 'n' roll's x'ss 't", ["s", "rock", "n", "roll", "x", "ss", "t"]),
    ],
)
def test_an_ending_belongs_to_its_word_and_a_letter_does_not(text, terms):
    analyzer = Analyzer("english-long")
    assert analyzer.terms(text) == terms == [term for term, _ in analyzer.spans(text)]


def test_the_other_analyzers_leave_endings_to_themselves():
    for name in ("english", "none"):
        assert Analyzer(name).terms("Bell's") == ["bell", "s"]


def test_terms_of_scripts_without_spaces_are_characters():
    assert Analyzer("none").terms("東京 Tower") == ["東", "京", "tower"]


def test_spans_and_terms_agree():
    text = "don't: İstanbul's foxes’, naïve café — 東京 x2"
    for name in get_args(AnalyzerName):
        analyzer = Analyzer(name)
        spans = analyzer.spans(text)
        assert [term for term, _ in spans] == analyzer.terms(text)
        assert all(text[s.start : s.end] == s.text for _, s in spans)


CODE_LIKE = st.lists(
    st.sampled_from(["is", "the", "Empty", "a1", "HTTP", "é", "東", "don't", "_", ".", " ", "-", "x" * 70])
).map("".join)


@given(CODE_LIKE, st.sampled_from(get_args(AnalyzerName)))
def test_the_terms_of_names_are_those_of_their_places(text, name):
    analyzer = Analyzer(name, identifiers=True)
    plain = Analyzer(name)
    words = [span for _, span in Analyzer("none").spans(text)]
    pieces = [
        Span(word.text[start:end], word.start + start, word.start + end)
        for word in words
        for start, end in pieces_of(word.text)
    ]
    places = sorted([*words, *pieces, *dotted_in(text)], key=lambda span: (span.start, -span.end))
    if name != "english-long":  # its words end before an apostrophe
        assert [span for _, span in analyzer.spans(text)] == [s for s in places if kept(plain, s.text)]
    for _ in range(2):  # the second time every word is known
        assert analyzer.terms(text) == [term for term, _ in analyzer.spans(text)]
        assert all(text[span.start : span.end] == span.text for _, span in analyzer.spans(text))


def kept(analyzer, word):
    """Whether a word is more than stop words; a dotted name always is."""
    return "." in word or bool(analyzer.terms(word))


def test_an_unknown_analyzer_is_refused():
    with pytest.raises(ConfigError, match="choose english, english-long, simple or none"):
        Analyzer("klingon")


CODE = ["def is_empty(text)", "def checkIfEmpty(text)", "import datetime.date", "HTTP2Server starts", "prose"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("empty", [0, 1]),
        ("is_empty", [0, 1]),
        ("check", [1]),
        ("datetime", [2]),
        ("datetime.date", [2]),
        ("server", [3]),
        ("http2server", [3]),
    ],
)
def test_a_name_is_found_whole_and_by_its_pieces(tmp_path, query, found):
    scores = build(tmp_path, CODE).scores(query)
    assert sorted(np.flatnonzero(scores)) == found
    assert np.argmax(scores) == found[0], "the whole name counts in addition to its pieces"


def test_the_piece_that_matched_is_the_place(tmp_path):
    lexical = build(tmp_path, CODE)
    places = lexical.term_spans(CODE[1])
    assert places["empti"] == ("Empty", 11, 16)
    assert places["checkifempti"] == ("checkIfEmpty", 4, 16)
    matches = {match.query.text: match.score for match in lexical.matches("checkIfEmpty", 1)}
    assert matches.keys() == {"checkIfEmpty", "check", "Empty"}
    np.testing.assert_allclose(sum(matches.values()), lexical.scores("checkIfEmpty")[1], rtol=1e-6)


def test_the_whole_of_a_name_that_is_nowhere_does_not_raise_the_ceiling(tmp_path):
    lexical = build(tmp_path, CODE)
    assert lexical.ceiling("text.empty") == pytest.approx(lexical.ceiling("text empty"))
    assert lexical.ceiling("unknown_name") == pytest.approx(lexical.ceiling("unknown name"))
    assert lexical.ceiling("is_empty") > lexical.ceiling("empty")


def test_names_stay_whole_without_identifiers_and_in_indexes_of_before(tmp_path):
    plain = build(tmp_path, CODE, identifiers=False)
    assert not plain.scores("empty").any()
    assert plain.scores("is_empty").argmax() == 0
    old = {"k1": 0.9, "b": 0.4, "analyzer": "english"}
    assert LexicalSettings.from_dict(old) == LexicalSettings(identifiers=False)


@pytest.mark.parametrize("query", ["is_empty text", "check datetime.date", "HTTP2Server"])
def test_names_are_scored_by_lucenes_formula_over_their_terms(tmp_path, query):
    cut = Analyzer("english", identifiers=True).terms
    whole = build(tmp_path / "names", CODE).scores(query)
    by_terms = bm25_by_loops(" ".join(cut(query)), [" ".join(cut(text)) for text in CODE], cut=str.split)
    np.testing.assert_allclose(whole, by_terms, rtol=1e-5)


@pytest.mark.parametrize(
    "query", ["is_empty text text", "check datetime.date unknown", "HTTP2Server", "unknown"]
)
def test_a_score_is_the_product_of_two_sparse_vectors(tmp_path, query):
    lexical = build(tmp_path, CODE)
    asked = lexical.query_weights(query)
    weights = [lexical.document_weights(lexical.terms(text)) for text in CODE]
    products = [sum(asked[term] * each.get(term, 0.0) for term in asked) for each in weights]
    np.testing.assert_allclose(products, lexical.scores(query), rtol=1e-5)
    assert "unknown" not in asked
