"""BM25's files of several segments become the very files of a build of the live documents."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.index import term_files, term_runs
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.lexical import LexicalSettings
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.index.term_files import TermFiles
from counterpoint.index.term_runs import merge_terms

TEXTS = st.lists(st.sampled_from("a b ba bb c é 東 𝔘 z".split()), max_size=9).map(" ".join)
SEGMENTS = st.lists(st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=9), min_size=1, max_size=4)


def built(folder, texts):
    folder.mkdir()
    builder = LexicalBuilder(LexicalSettings(), folder)
    for text in texts:
        builder.add(text)
    builder.write(folder)
    return TermFiles(CheckedFolder(folder))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(deadline=None)
@given(SEGMENTS, st.integers(1, 5))
def test_files_are_those_of_a_build(tmp_path_factory, segments, together):
    folder, parts = tmp_path_factory.mktemp("terms"), []
    for number, segment in enumerate(segments):
        terms = built(folder / str(number), [text for text, _ in segment])
        live = np.array([kept for _, kept in segment])
        parts.append((terms, None if live.all() else live))
    (folder / "merged").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_files, "TOGETHER", together)
        patch.setattr(term_runs, "POSTINGS", together)
        patch.setattr(term_runs, "READ", 2)
        merge_terms(parts, folder / "merged")
    built(folder / "at once", [text for segment in segments for text, kept in segment if kept])
    assert contents(folder / "merged") == contents(folder / "at once")


def test_a_rare_word_and_one_that_every_document_has(tmp_path):
    texts = [f"all n{number}" + " often" * (number % 70) for number in range(3000)]
    parts = []
    for number, at in enumerate(range(0, 3000, 1000)):
        live = np.arange(1000) % (number + 2) != 0
        parts.append((built(tmp_path / str(number), texts[at : at + 1000]), live))
    (tmp_path / "merged").mkdir()
    merge_terms(parts, tmp_path / "merged")
    left = np.concatenate([live for _, live in parts])
    built(tmp_path / "at once", [text for text, kept in zip(texts, left, strict=True) if kept])
    assert contents(tmp_path / "merged") == contents(tmp_path / "at once")
