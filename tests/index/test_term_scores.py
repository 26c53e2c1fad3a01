"""Scores from counts equal bm25s' own, those of loops, and of several parts those of one."""

from dataclasses import replace

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.test_lexical import TEXTS, build

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, Manifest, build_index
from counterpoint.index.analysis import Analyzer
from counterpoint.index.checked import CheckedFolder, write_blocks
from counterpoint.index.lexical import Lexical, LexicalSettings
from counterpoint.index.manifest import FileEntry
from counterpoint.index.term_files import TermFiles
from counterpoint.index.term_scores import ComputedScores, StoredScores, term_scores
from counterpoint.types import Document

QUERIES = ["brown fox", "dog dog fox", "unknownword", "", "run a brown dog", "zebra"]
NAMES = ("data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy", "params.index.json",
         "vocab.index.json")  # fmt: skip


def write_old(folder, texts, k1=0.9, b=0.4):
    """As versions of before wrote it."""
    analyzer, vocabulary = Analyzer("english", identifiers=True), {}
    documents = [
        [vocabulary.setdefault(term, len(vocabulary)) for term in analyzer.terms(text)] for text in texts
    ]
    model = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
    with np.errstate(invalid="ignore"):
        model.index((documents, vocabulary or {"": 0}), show_progress=False)
    model.save(str(folder))


def with_stored_scores(folder, texts):
    """Exchange an index's BM25 files for those that bm25s writes."""
    manifest = Manifest.read(folder)
    name = str(manifest.segments[0].lexical)
    files = {path: entry for path, entry in manifest.files.items() if not path.startswith("lexical/")}
    for path in (folder / name).glob("*.npy"):
        path.unlink()
    write_old(folder / name, texts)
    assert sorted(path.name for path in (folder / name).glob("*.*n*")) == sorted([*NAMES, ".counterpoint"])
    write_blocks(folder / name, [folder / name / file for file in NAMES])
    files |= {f"{name}/{file}": FileEntry.of(folder / name / file) for file in (*NAMES, "blocks.npy")}
    replace(manifest, files=files).write(folder)


def old(folder, texts, **given):
    write_old(folder, texts, **given)
    return Lexical([(CheckedFolder(folder), None)], LexicalSettings(**given))


TEXT = st.lists(st.sampled_from("fox dog cat the run_fast a.b bridge".split()), max_size=12).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(TEXT, min_size=1, max_size=12),
    st.lists(TEXT, min_size=1, max_size=3),
    st.sampled_from([(0.9, 0.4), (1.2, 0.75), (0.0, 1.0), (3.3, 0.0)]),
)
def test_scores_are_those_of_before_to_the_last_bit(tmp_path_factory, texts, queries, constants):
    folder = tmp_path_factory.mktemp("bm25")
    given = dict(zip(("k1", "b"), constants, strict=True))
    new, before = build(folder / "new", texts, **given), old(folder / "old", texts, **given)
    for query in queries:
        np.testing.assert_array_equal(new.scores(query), before.scores(query))
        assert new.ceiling(query) == before.ceiling(query) and new.known(query) == before.known(query)
        for document in range(len(texts)):
            assert new.matches(query, document) == before.matches(query, document)
    assert new.documents == before.documents == len(texts)


@pytest.mark.parametrize("texts", [["", "the"], ["fox"], ["", "fox fox", ""]])
def test_small_collections_of_both_formats(tmp_path, texts):
    new, before = build(tmp_path / "new", texts), old(tmp_path / "old", texts)
    for query in QUERIES:
        np.testing.assert_array_equal(new.scores(query), before.scores(query))


def test_an_index_of_before_answers_as_it_did(tmp_path):
    """Its BM25 files are exchanged for those that bm25s writes."""
    folder = tmp_path / "i"
    build_index([Document(f"d{i}", text) for i, text in enumerate(TEXTS)], None, folder)
    with Index(folder) as index:
        assert index.lexical is not None
        new = [index.lexical.scores(query) for query in QUERIES]
    with_stored_scores(folder, TEXTS)
    with Index(folder) as index:
        assert index.lexical is not None and isinstance(index.lexical._terms, StoredScores)
        for query, scores in zip(QUERIES, new, strict=True):
            np.testing.assert_array_equal(index.lexical.scores(query), scores)
        with pytest.raises(ConfigError, match="of an earlier version"):
            index.lexical.scores_of_texts("fox", ["a fox"])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"num_docs": "many"}', '{"num_docs": null}'])
def test_damaged_parameters_of_before_are_refused(tmp_path, content):
    write_old(tmp_path, TEXTS)
    (tmp_path / "params.index.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"the BM25 postings cannot be read .*; build the index again"):
        term_scores([(CheckedFolder(tmp_path), None)], 0.9, 0.4)


@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_several_parts_score_as_one(tmp_path, cut):
    """Idf and average length are those of all parts together."""
    whole = build(tmp_path / "whole", TEXTS)
    parts = []
    for name, texts in (("a", TEXTS[:cut]), ("b", TEXTS[cut:])):
        build(tmp_path / name, texts)
        parts.append(TermFiles(CheckedFolder(tmp_path / name)))
    terms = ComputedScores(parts, 0.9, 0.4)
    assert terms.documents == len(TEXTS)
    for term in ("brown", "fox", "dog", "run", "zebra", "unknown"):
        assert terms.frequency(term) == whole._terms.frequency(term)
        for found, expected in zip(terms.scores(term), whole._terms.scores(term), strict=True):
            np.testing.assert_array_equal(found, expected)
