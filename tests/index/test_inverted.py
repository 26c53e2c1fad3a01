"""The inverted index of exact words against the match matrix, by loops and by the torch scorer."""

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import DOCUMENTS, UniModel
from tests.score import oracle

from counterpoint.errors import ConfigError
from counterpoint.index import Asked, Index, IndexSettings, Manifest, SetLayout, build_index, paths
from counterpoint.index import inverted as inverted_module
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS
from counterpoint.index.kernels import maxsim_scores
from counterpoint.index.manifest import FileEntry
from counterpoint.index.paths import Meter
from counterpoint.index.piece import Piece
from counterpoint.index.rows import Rows
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.several import ExactStore
from counterpoint.score import MaxSim
from counterpoint.search import Searcher
from counterpoint.types import Document, Ragged

LAYOUT = {"w": SetLayout(oracle.DIM, "exact", "float32", ids=True)}
EXACT = IndexSettings(
    codec="float32", lexical=None, search={"weights": {"cls": 1.0, "words": 1.0}, "exact": ["words"]}
)


def packed(texts):
    rows = [np.array([row for row, _ in text], np.float32).reshape(-1, oracle.DIM) for text in texts]
    ids = [np.array([number for _, number in text], np.int64) for text in texts]
    return Ragged.from_list(rows, ids, dim=oracle.DIM)


@settings(deadline=None, max_examples=60)
@given(
    queries=oracle.sets(),
    texts=oracle.sets(max_texts=6, max_rows=6),
    batch=st.integers(1, 6),
    chunk=st.integers(1, 9),
)
def test_a_score_from_postings_is_the_one_of_the_match_matrix(queries, texts, batch, chunk):
    documents = [Document(str(i), "") for i in range(len(texts))]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(inverted_module, "CHUNK", chunk)
        folder = Path(name) / "s"
        with SegmentWriter(folder, LAYOUT) as writer:
            for at in range(0, len(texts), batch):
                writer.append(documents[at : at + batch], {"w": packed(texts[at : at + batch])})
        store = ExactStore("w", LAYOUT["w"], [Piece(CheckedFolder(folder), len(texts), LAYOUT["w"])])
        for query in queries:
            rows, ids = packed([query]).values, packed([query]).ids_of(0)
            wanted = [oracle.maxsim(query, text, exact=True, floor0=True) for text in texts]
            assert store.inverted_scores([Asked(rows, ids, True)])[0].tolist() == wanted
            assert maxsim_scores(rows, packed(texts), ids, floor=True).tolist() == wanted
            scorer = MaxSim("w", exact=True, floor0=True)
            matrix = scorer({"w": oracle.vectors([query])}, {"w": oracle.vectors(texts)})
            assert matrix[0].tolist() == wanted
        rows = np.load(folder / "w.postings.npy")
        words = np.array([*range(6), -1, 2**32, 2**32 + 1])
        for word, first, end in zip(words, *store.postings[0].lists_of(words), strict=True):
            assert rows[first:end].tolist() == np.flatnonzero(packed(texts).ids == word).tolist()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    codec_and_dim=st.one_of(
        st.just(("float16", 1)),
        st.tuples(st.just("int8"), st.integers(1, 40) | st.integers(60, 140)),
        st.tuples(st.just("int8"), st.sampled_from([4, 8, 16, 32])),  # rows that are multiplied in lanes
    ),
    kind=st.sampled_from(["normal", "zeros", "ties", "huge"]),
    texts=st.integers(0, 40),
    words=st.sampled_from([1, 3, 50]),
    floor=st.booleans(),
)
def test_compiled_kernels_equal_numpy(tmp_path_factory, seed, codec_and_dim, kind, texts, words, floor):
    """Postings, their rows sorted or not, and the match matrix, by numpy and compiled: the same bits."""
    (codec, dim), rng = codec_and_dim, np.random.default_rng(seed)
    made = [rng.normal(size=(rng.choice([0, 0, 1, 2, 9, 90]), dim)).astype(np.float32) for _ in range(texts)]
    made = [
        np.sign(rows) if kind == "ties" else rows * {"zeros": 0, "huge": 1e3}.get(kind, 1) for rows in made
    ]
    documents = Ragged.from_list(made, [rng.integers(0, words, len(rows)) for rows in made], dim=dim)
    layout, cut, segments = SetLayout(dim, "exact", codec, ids=True), int(rng.integers(0, texts + 1)), []
    for start, end in ((0, texts), (0, cut), (cut, texts)):
        folder = tmp_path_factory.mktemp("s")
        least = patch("counterpoint.index.rows_writer.LEAST", int(rng.choice([1, 10**6])))
        with least, SegmentWriter(folder, {"w": layout}) as writer:
            some = np.arange(start, end)
            writer.append([Document(str(i), "") for i in some], {"w": documents.take(some)})
        segments.append(Piece(CheckedFolder(folder), end - start, layout))
    rows = int(rng.integers(0, 9))
    query = rng.normal(size=(rows, dim)).astype(np.float32) * np.float32(rng.choice([0, 1e-3, 1, 1e3]))
    asked = Asked(query, rng.integers(-1, words + 1, rows), floor)
    positions = rng.integers(0, texts, 5) if texts else np.zeros(0, np.int64)
    every, scored, inverted = [], [], []
    for kernels in (Meter.kernels, lambda self, products: None):
        with patch("counterpoint.index.paths.WORTH", 0), patch.object(Meter, "kernels", kernels):
            for parts in (segments[:1], segments[1:]):
                store = ExactStore("w", layout, parts)
                every.append(store.all_scores([asked])[0].tobytes())
                scored.append(store.scores(asked, positions).tobytes())
                inverted.append(store.inverted_scores([asked])[0].tobytes())
    assert len(set(every)) == len(set(scored)) == len(set(inverted)) == 1
    assert scored[0] == np.frombuffer(every[0], np.float32)[positions].tobytes()
    assert not floor or every[0] == inverted[0]


@settings(deadline=None)
@given(queries=oracle.sets(), texts=oracle.sets(max_texts=6), exact=st.booleans(), floor=st.booleans())
def test_packed_scores_are_those_of_the_torch_scorer(queries, texts, exact, floor):
    scorer = MaxSim("w", exact=exact, floor0=floor)
    for query in queries:
        wanted = scorer({"w": oracle.vectors([query])}, {"w": oracle.vectors(texts)})[0]
        ids = packed([query]).ids_of(0) if exact else None
        found = maxsim_scores(packed([query]).values, packed(texts), ids, floor)
        assert torch.equal(torch.from_numpy(found), wanted.float())


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("codec", ["float32", "int8", "int4"])
def test_several_segments_are_searched_as_one(tmp_path, repeats, codec):
    """Whatever the codec, the postings lead to the very vectors that the match matrix is taken of."""
    model = UniModel(dim=5, repeats=repeats)
    whole = replace(EXACT, codec=codec)
    build_index(DOCUMENTS, model, tmp_path / "one", whole)
    first = build_index(DOCUMENTS[:4], model, tmp_path / "two", whole)
    second = build_index(DOCUMENTS[4:], model, tmp_path / "other", whole)
    shutil.copytree(tmp_path / "other" / "segments", tmp_path / "two" / "segments", dirs_exist_ok=True)
    both = {"segments": first.segments + second.segments, "files": {**first.files, **second.files}}
    replace(first, **both).write(tmp_path / "two")
    query = model.encode_query(["the Brown fox and a fox under the box"])["words"]
    with Index(tmp_path / "one") as one, Index(tmp_path / "two") as two:
        assert len(two.segments) == 2
        # Queries are rounded where vectors are integers: their arithmetic is tested in test_bits.py.
        whole = CODECS["int8"].asked(query[0])
        rows = whole.rows * whole.scales[:, None] if codec == "int8" else query[0]
        wanted = maxsim_scores(rows, one.take("words", np.arange(6)), query.ids_of(0), floor=True)
        assert (wanted > 0).sum() >= 3
        for index in (one, two):
            asked, store = Asked(query[0], query.ids_of(0), True), index.sets["words"]
            np.testing.assert_allclose(store.inverted_scores([asked])[0], wanted, atol=1e-5)
            every = store.all_scores([asked])
            np.testing.assert_allclose(every[0], wanted, atol=1e-5)


def test_only_the_postings_of_the_querys_words_are_read(tmp_path, monkeypatch):
    build_index(DOCUMENTS, UniModel(), tmp_path / "i", EXACT)
    read = []
    with Index(tmp_path / "i") as index:
        original = Rows.values
        monkeypatch.setattr(
            Rows, "values", lambda self, rows: read.extend(rows.tolist()) or original(self, rows)
        )
        query = UniModel().encode_query(["fox unheard"])["words"]
        index.sets["words"].look([Asked(query[0], query.ids_of(0), True)])
    words = [word for d in DOCUMENTS for word in UniModel().words(d.full_text)]
    assert [words[row] for row in read] == ["fox", "fox"]


def test_postings_are_listed_with_the_files_and_only_for_exact_sets(tmp_path):
    manifest = build_index(DOCUMENTS, UniModel(), tmp_path / "exact", EXACT)
    plain = build_index(DOCUMENTS, UniModel(), tmp_path / "plain", replace(EXACT, search=None))
    ends = {name.rsplit("/")[-1] for name in manifest.files}
    assert {"words.postings.npy", "words.starts.npy"} < ends
    assert ends - {name.rsplit("/")[-1] for name in plain.files} == {"words.postings.npy", "words.starts.npy"}


def test_documents_without_any_word(tmp_path):
    build_index([Document("a", ""), Document("b", "")], UniModel(), tmp_path / "i", EXACT)
    query = UniModel().encode_query(["fox"])["words"]
    with Index(tmp_path / "i") as index:
        asked = Asked(query[0], query.ids_of(0), True)
        assert index.sets["words"].inverted_scores([asked]).tolist() == [[0, 0]]


def test_small_vectors_are_stored_as_halves(tmp_path):
    for codec, stored in (("int4", "float16"), ("int8", "float16"), ("float16", "float16"), ("float32",) * 2):
        layouts = replace(EXACT, codec=codec).layouts(UniModel(dim=1))
        assert layouts["words"].codec == stored
    assert replace(EXACT, codec="int4").layouts(UniModel(dim=3))["words"].codec == "float16"
    assert replace(EXACT, codec="int4").layouts(UniModel(dim=4))["words"].codec == "int4"


@pytest.mark.parametrize(
    "search, message",
    [
        ({"exact": ["wrods"]}, "search.exact: no vector set 'wrods'; there are cls, words"),
        ({"floor": ["cls"]}, "search.floor: 'cls' is pooled"),
        ({"exact": ["cls"]}, "search.exact: 'cls' is pooled"),
    ],
)
def test_sets_that_cannot_match_so_are_refused_before_anything_is_written(tmp_path, search, message):
    with pytest.raises(ConfigError, match=message):
        build_index(DOCUMENTS, UniModel(), tmp_path / "i", replace(EXACT, search=search))
    assert not (tmp_path / "i").exists()


def as_format_1(folder):
    """Rewrite an index as the first format had it: where vectors begin in place of how many there are."""
    manifest = Manifest.read(folder)
    for entry in manifest.segments:
        segment = folder / "segments" / entry.name
        lengths = np.load(segment / "words.lengths.npy")
        np.save(segment / "words.offsets.npy", np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64))
        for name in ("words.lengths.npy", "words.postings.npy", "words.starts.npy", "blocks.npy"):
            (segment / name).unlink(missing_ok=True)
    layouts = {
        name: {"dim": layout["dim"], "pooled": name == "cls", "codec": layout["codec"], "ids": layout["ids"]}
        for name, layout in manifest.settings["layouts"].items()
    }
    files = {
        path.relative_to(folder).as_posix(): FileEntry.of(path)
        for path in (folder / "segments").rglob("*")
        if path.is_file()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("counterpoint.index.manifest.VERSION", 1)
        settings = {**manifest.settings, "layouts": layouts}
        replace(manifest, settings=settings, files=files).write(folder)


def test_an_index_of_the_first_format_opens_and_answers_alike(tmp_path):
    build_index(DOCUMENTS, UniModel(), tmp_path / "new", EXACT)
    build_index(DOCUMENTS, UniModel(), tmp_path / "old", EXACT)
    as_format_1(tmp_path / "old")
    assert json.loads((tmp_path / "old" / "manifest.json").read_text())["version"] == 1
    with Index(tmp_path / "new") as new, Index(tmp_path / "old") as old:
        assert (old.layouts["words"].kind, new.layouts["words"].kind) == ("several", "exact")
        for workflow in ("hybrid", "words", "words-dense", "dense-words"):
            runs = [
                Searcher(index, UniModel()).run({"q": "brown fox in a box"}, 6, workflow=workflow)
                for index in (new, old)
            ]
            assert runs[0].queries and dict(runs[0]["q"]) == pytest.approx(dict(runs[1]["q"]), rel=1e-5)


def test_words_of_many_documents_are_added_in_the_order_of_the_query():
    """More documents than are added to at a time, some with several rows of a word."""
    kernels = paths._loaded()
    if kernels is None:
        pytest.skip("numba is not installed")
    rng, documents, lengths = np.random.default_rng(0), 200_000, [3000, 1, 0, 60_000]
    owners = [np.sort(rng.integers(0, documents, length)) for length in lengths]
    ends = np.cumsum(lengths)
    values = rng.integers(-127, 128, (ends[-1], 8), np.int8)
    factors, scales = rng.random(ends[-1]).astype(np.float16), rng.random(4).astype(np.float32)
    query, scores, first = rng.integers(-127, 128, (4, 8), np.int8), np.zeros(documents, np.float32), 0
    for row, scale, rows in zip(query.astype(int), scales, owners, strict=True):
        best = {}
        for at, owner in enumerate(rows.tolist(), start=first):
            similarity = np.float32(values[at].astype(int) @ row) * np.float32(factors[at]) * scale
            best[owner] = max(best.get(owner, np.float32(0)), similarity)
        for owner, similarity in best.items():
            scores[owner] += similarity
        first += len(rows)
    found = np.zeros(documents, np.float32)
    stored = values, factors.view(np.uint16), kernels.halves
    lists, of_rows = (ends - lengths, ends), np.concatenate(owners).astype(np.uint32)
    kernels.add_sorted(found, (query, scales), lists, stored, of_rows)
    assert found.tobytes() == scores.tobytes()
